"""The next action of the agent, or the time until it: both follow from the state."""

from typing import Any

import attrs
import pytest

from headwater.agent.decide.decision import next_step
from headwater.agent.decide.values import (
    AgentPolicy,
    Expand,
    Notify,
    Observe,
    ReadOffsetMetadata,
    Record,
    Recover,
)
from headwater.agent.state import (
    AgentState,
    ApplicationState,
    Expansion,
    ObservedCount,
    Phase,
    Requirements,
    Retry,
    Shortfall,
)
from headwater.compiler import compile_documents
from headwater.model.expansions import ExpansionEntry, Stage
from headwater.model.problems import AGENT, Problem, ProblemCode
from tests.agent.simulation import CHANGELOG, ORDERS, RANKS, REPARTITION, documents

POLICY = AgentPolicy(client_id="agent-1", poll_ms=30_000)
NOW, READ_AT = 50_000, 49_000
NEXT_READ = READ_AT + 30_000 - NOW
SHORTFALL = Shortfall("app", "a", 4, 6)
EXPANSION = Expansion(number=3, started_ms=40_000, before={"a": 4})
APP = ApplicationState(
    id="app", phase=Phase.EXPANDING, expansion=EXPANSION, shortfalls=(SHORTFALL,), timeout_ms=20_000
)
STATE = AgentState(
    clock_ms=NOW, observed_at_ms=READ_AT, is_read_requested=False, term=5, is_recovered=True, reads=1
)
ENTRY = ExpansionEntry(
    application="app", number=1, stage=Stage.STARTED, wall_ms=1, client_id="agent-1", before={}, after={}
)
UNREACHABLE = (Problem(code=ProblemCode.CLUSTER_UNREACHABLE, summary="No Kafka broker can be reached."),)


def with_app(app: ApplicationState, state: AgentState = STATE) -> AgentState:
    return attrs.evolve(state, applications={app.id: app})


def expanding(**fields: Any) -> ApplicationState:  # noqa: ANN401 - the fields of Expansion
    return attrs.evolve(APP, expansion=attrs.evolve(EXPANSION, **fields))


@pytest.mark.parametrize(
    ("change", "expected"),
    [
        ({}, (None, NEXT_READ)),
        ({"observed_at_ms": None}, (Observe(), 0)),
        ({"is_read_requested": True}, (Observe(), 0)),
        ({"observed_at_ms": NOW - 30_000}, (Observe(), 0)),
        ({"observed_at_ms": NOW - 29_999}, (None, 1)),
        ({"read_problems": UNREACHABLE}, (Observe(), 0)),
        ({"read_problems": UNREACHABLE, "read_retry": Retry(1, NOW)}, (Observe(), 0)),
        ({"read_problems": UNREACHABLE, "read_retry": Retry(1, NOW + 7)}, (None, 7)),
    ],
)
def test_the_cluster_is_read_when_it_is_due(
    change: dict[str, Any], expected: tuple[Observe | None, int]
) -> None:
    assert next_step(attrs.evolve(STATE, **change), POLICY) == expected


def test_offset_metadata_are_read_before_anything_is_decided() -> None:
    """Of at most 16 groups at the same time: the election must be polled."""
    topics = {str(number): {"in": 4} for number in range(17)}
    due = attrs.evolve(with_app(APP), due_metadata=topics, is_read_requested=True)
    action, wake_ms = next_step(due, POLICY)
    assert isinstance(action, ReadOffsetMetadata)
    assert (list(action.topics), wake_ms) == (list(topics)[:16], 0)


def test_offset_metadata_that_could_not_be_read_are_read_again_soon() -> None:
    unread = attrs.evolve(STATE, unread_metadata={"a": UNREACHABLE[0]})
    slow = attrs.evolve(POLICY, poll_ms=300_000)
    assert next_step(unread, slow) == (None, READ_AT + slow.backoff_max_ms - NOW)
    assert next_step(STATE, slow) == (None, READ_AT + 300_000 - NOW)


@pytest.mark.parametrize("retry", [Retry(), Retry(1, NOW), Retry(1, NOW - 1)])
def test_the_journal_comes_first(retry: Retry) -> None:
    requested = attrs.evolve(STATE, is_read_requested=True, journal_retry=retry)
    assert next_step(attrs.evolve(requested, outbox=(ENTRY,)), POLICY) == (Record((ENTRY,)), 0)
    assert next_step(attrs.evolve(requested, is_recovered=False), POLICY) == (Recover(), 0)
    assert next_step(attrs.evolve(requested, is_recovered=False, term=None), POLICY) == (Observe(), 0)


@pytest.mark.parametrize("change", [{"outbox": (ENTRY,)}, {"is_recovered": False}])
def test_nothing_is_changed_while_the_journal_fails(change: dict[str, Any]) -> None:
    state = attrs.evolve(with_app(APP), journal_retry=Retry(1, NOW + 9), **change)
    assert next_step(state, POLICY) == (None, 9)
    later = attrs.evolve(state, journal_retry=Retry(1, NOW + NEXT_READ + 1))
    assert next_step(later, POLICY) == (None, NEXT_READ)
    assert next_step(attrs.evolve(state, is_read_requested=True), POLICY) == (Observe(), 0)


@pytest.mark.parametrize("app", [APP, expanding(retry_at_ms=READ_AT)])
def test_missing_partitions_are_added_by_the_leader(app: ApplicationState) -> None:
    assert next_step(with_app(app), POLICY) == (Expand(((SHORTFALL,),)), 0)
    assert next_step(with_app(app, attrs.evolve(STATE, term=None)), POLICY) == (None, NEXT_READ)


@pytest.mark.parametrize("phase", [phase for phase in Phase if phase is not Phase.EXPANDING])
def test_nothing_is_expanded_in_another_phase(phase: Phase) -> None:
    assert next_step(with_app(attrs.evolve(APP, phase=phase)), POLICY) == (None, NEXT_READ)


@pytest.mark.parametrize("field", ["retry_at_ms", "follow_up_at_ms"])
def test_the_cluster_is_read_before_each_attempt_and_follow_up(field: str) -> None:
    due = attrs.evolve(expanding(**{field: NOW}), phase=Phase.SETTLING)
    assert next_step(with_app(due), POLICY) == (Observe(), 0)
    later = attrs.evolve(expanding(**{field: NOW + 8}), phase=Phase.SETTLING)
    assert next_step(with_app(later), POLICY) == (None, 8)
    read = attrs.evolve(expanding(**{field: READ_AT}), phase=Phase.REFUSED)
    assert next_step(with_app(read), POLICY) == (None, NEXT_READ)


def test_a_failing_expansion_is_given_up_in_time() -> None:
    """The next attempt is later than the timeout."""
    failing = expanding(failing_since_ms=NOW - 19_000, retry_at_ms=NOW + 5_000)
    assert next_step(with_app(failing), POLICY) == (None, 1_000)
    assert next_step(with_app(attrs.evolve(failing, timeout_ms=18_000)), POLICY) == (None, 0)
    waiting = attrs.evolve(failing, phase=Phase.WAITING)
    assert next_step(with_app(waiting), POLICY) == (None, 5_000)


def test_a_lower_count_is_confirmed_in_time() -> None:
    """Only counts of the applications matter: other topics may be deleted at any time."""
    lower = attrs.evolve(STATE, observed_counts={"a": ObservedCount(4, NOW - 8_000), "b": ObservedCount(4)})
    assert next_step(lower, POLICY) == (None, NEXT_READ)
    required = attrs.evolve(lower, requirements=Requirements(counts={"a": 4, "b": 4, "missing": 4}))
    assert next_step(required, POLICY) == (None, 2_000)
    assert next_step(with_app(ApplicationState(id="app"), required), POLICY) == (None, 2_000)
    settled = ApplicationState(id="app", settled={"a": 4, "b": 4, "missing": 4})
    assert next_step(with_app(settled, lower), POLICY) == (None, 2_000)
    read = attrs.evolve(required, observed_counts={"a": ObservedCount(4, READ_AT - POLICY.lag_ms)})
    assert next_step(read, POLICY) == (None, NEXT_READ)


def test_the_callback_is_called_after_the_final_follow_up() -> None:
    settling = attrs.evolve(expanding(follow_up_at_ms=READ_AT), phase=Phase.SETTLING, shortfalls=())
    state = attrs.evolve(STATE, observed_counts={"a": ObservedCount(6)})
    assert next_step(with_app(settling, state), POLICY) == (Notify("app", 4, 6), 0)
    steady = attrs.evolve(settling, phase=Phase.STEADY)
    assert next_step(with_app(steady, state), POLICY) == (None, NEXT_READ)
    follower = attrs.evolve(state, term=None)
    assert next_step(with_app(settling, follower), POLICY) == (None, NEXT_READ)
    unchanged = attrs.evolve(state, observed_counts={"a": ObservedCount(4)})
    assert next_step(with_app(settling, unchanged), POLICY) == (None, NEXT_READ)


def test_one_attempt_expands_downstream_topics_of_all_applications_first() -> None:
    counts = {"orders": 8, "returns": 4}
    requirements = Requirements(applications=compile_documents(documents(ORDERS, RANKS), counts, AGENT))
    latest = Shortfall("ranks-app", "ranks-app-latest-changelog", 4, 8)
    changelog, repartition, totals = (
        Shortfall("totals-app", topic, 4, 8) for topic in (CHANGELOG, REPARTITION, "totals")
    )
    apps = (
        attrs.evolve(APP, id="totals-app", shortfalls=(repartition, changelog, totals)),
        attrs.evolve(APP, id="ranks-app", shortfalls=(latest,)),
        attrs.evolve(APP, id="other-app", phase=Phase.WAITING),
    )
    state = attrs.evolve(STATE, requirements=requirements, applications={app.id: app for app in apps})
    assert next_step(state, POLICY) == (Expand(((changelog, latest), (totals,), (repartition,))), 0)
