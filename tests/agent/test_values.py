"""The clock of an agent, and when it reads the cluster and tries again."""

import pytest

from headwater.agent.decide.values import AgentPolicy, Moment, advance_clock
from headwater.agent.state import AgentState
from headwater.compiler import compile_document
from tests.compiler.applications import document

POLICY = AgentPolicy(client_id="agent-1", backoff_ms=500, backoff_max_ms=30_000)


def test_the_clock_follows_the_monotonic_time_and_never_runs_backward() -> None:
    state = advance_clock(AgentState(), Moment(1_000))
    assert (state.clock_ms, state.monotonic_ms) == (0, 1_000)
    state = advance_clock(state, Moment(1_700))
    assert state.clock_ms == 700
    state = advance_clock(state, Moment(200))
    assert (state.clock_ms, state.monotonic_ms) == (700, 200)
    assert advance_clock(state, Moment(300)).clock_ms == 800


@pytest.mark.parametrize(
    ("attempts", "jitter", "pause"),
    [(1, 0.0, 500), (2, 0.0, 1_000), (3, 0.0, 2_000), (7, 0.0, 30_000), (10_000, 0.0, 30_000), (1, 1.0, 400)],
)
def test_the_pause_doubles_up_to_its_maximum_less_a_fifth(attempts: int, jitter: float, pause: int) -> None:
    assert POLICY.backoff(attempts, jitter) == pause


def test_the_cluster_is_read_as_often_as_the_least_metadata_age_of_the_applications() -> None:
    applications = [
        compile_document(
            document(
                f"application: {{id: a{age}, config: {{metadata.max.age.ms: {age}}}}}\n"
                "topology: [{stream: {topic: in}}]"
            ),
            {},
        )
        for age in (9_000, 5_000, 7_000)
    ]
    assert POLICY.interval_ms(applications) == 5_000
    assert AgentPolicy(client_id="agent-1", poll_ms=3).interval_ms(applications) == 3
    assert POLICY.interval_ms(()) == 300_000
