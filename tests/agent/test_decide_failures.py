"""Failures are retried until the timeout; lagging metadata and clock jumps are ignored."""

import pytest

from headwater.agent.decide.values import CallbackCalled, Expand, Unconfirmed, Unreadable
from headwater.agent.events import (
    ApplicationRefused,
    AttemptFailed,
    ClusterReadable,
    ClusterUnreadable,
    GaveUp,
    Notified,
)
from headwater.agent.state import Outcome, Phase
from headwater.model.expansions import Stage
from headwater.model.problems import Problem, ProblemCode
from tests.agent.simulation import CHANGELOG, ORDERS, REPARTITION, leading_agent

TIMEOUT_MS = 900_000


def test_failure_clock_starts_at_first_failure_and_counts_timeout_once() -> None:
    simulation = leading_agent(ORDERS)
    simulation.outcome = lambda _: Outcome.FAILED
    simulation.counts["orders"] = 8
    simulation.pass_time(30_000 + TIMEOUT_MS - 1)
    assert simulation.state.failures == 0
    simulation.pass_time(1)
    assert simulation.state.failures == 1
    assert simulation.app().phase is Phase.GIVEN_UP
    simulation.pass_time(2 * TIMEOUT_MS)
    assert simulation.state.failures == 1
    assert len(simulation.reported(GaveUp)) == 1
    assert simulation.stages() == [Stage.STARTED, Stage.GIVEN_UP]
    assert simulation.journal[-1].after == {REPARTITION: 4, CHANGELOG: 4, "totals": 4}
    assert simulation.journal[-1].sources_after == {"orders": 8, "returns": 4}


def test_new_expansion_starts_when_source_changes_after_giving_up() -> None:
    simulation = leading_agent(ORDERS)
    simulation.outcome = lambda _: Outcome.FAILED
    simulation.counts["orders"] = 8
    simulation.pass_time(40_000 + TIMEOUT_MS)
    simulation.outcome = lambda _: None
    simulation.pass_time(60_000)
    assert simulation.counts[CHANGELOG] == 4
    simulation.counts["orders"] = 10
    simulation.pass_time(60_000)
    assert simulation.counts[CHANGELOG] == 10
    assert simulation.calls == [("totals-app", 2, 4, 10)]


def test_any_success_resets_failure_clock() -> None:
    simulation = leading_agent(ORDERS)
    simulation.outcome = lambda _: Outcome.FAILED
    simulation.counts["orders"] = 8
    simulation.pass_time(TIMEOUT_MS)
    simulation.outcome = lambda topic: Outcome.FAILED if topic == REPARTITION else None
    simulation.pass_time(TIMEOUT_MS - 1_000)
    assert simulation.state.failures == 0
    assert simulation.counts[CHANGELOG] == 8
    simulation.pass_time(60_000)
    assert simulation.state.failures == 1


def test_failure_clock_stops_while_application_waits_for_another() -> None:
    simulation = leading_agent()
    simulation.outcome = lambda topic: Outcome.FAILED if topic == CHANGELOG else None
    simulation.counts["orders"] = 8
    simulation.pass_time(TIMEOUT_MS - 10_000)
    simulation.outcome = lambda _: Outcome.FAILED
    simulation.counts["orders"] = 9
    simulation.pass_time(60_000)
    assert simulation.app("totals-app").phase is Phase.GIVEN_UP
    assert simulation.app("ranks-app").phase is Phase.WAITING
    simulation.pass_time(2 * TIMEOUT_MS)
    simulation.outcome = lambda _: None
    simulation.counts["orders"] = 13
    simulation.pass_time(60_000)
    assert simulation.counts["ranks-app-latest-changelog"] == 13
    [given_up] = simulation.reported(GaveUp)
    assert isinstance(given_up, GaveUp)
    assert given_up.application == "totals-app"


def test_failure_clock_stops_while_application_is_refused() -> None:
    simulation = leading_agent(ORDERS)
    simulation.outcome = lambda _: Outcome.FAILED
    simulation.counts["orders"] = 8
    simulation.pass_time(60_000)
    returns = simulation.counts.pop("returns")
    simulation.pass_time(2 * TIMEOUT_MS)
    assert simulation.app().phase is Phase.REFUSED
    simulation.counts["returns"] = returns
    simulation.outcome = lambda _: None
    simulation.pass_time(60_000)
    assert simulation.counts[CHANGELOG] == 8
    assert not simulation.reported(GaveUp)


def test_request_without_answer_succeeded_if_metadata_shows_partitions() -> None:
    simulation = leading_agent(ORDERS)
    simulation.is_answer_lost = True
    simulation.counts["orders"] = 8
    simulation.pass_time(60_000)
    assert simulation.calls == [("totals-app", 1, 4, 8)]
    assert len([action for action in simulation.actions if isinstance(action, Expand)]) == 1
    assert simulation.state.failures == 0


def test_success_shown_only_by_metadata_resets_failure_clock() -> None:
    simulation = leading_agent(ORDERS)
    simulation.outcome = lambda _: Outcome.FAILED
    simulation.counts["orders"] = 8
    simulation.pass_time(TIMEOUT_MS - 60_000)
    simulation.is_answer_lost = True
    simulation.outcome = lambda topic: Outcome.FAILED if topic == REPARTITION else None
    simulation.pass_time(60_000)
    assert simulation.counts[CHANGELOG] == 8
    simulation.outcome = lambda _: Outcome.FAILED
    simulation.pass_time(TIMEOUT_MS - 90_000)
    assert simulation.state.failures == 0
    simulation.pass_time(120_000)
    assert simulation.state.failures == 1


def test_pauses_between_attempts_increase_and_each_attempt_reads_metadata() -> None:
    simulation = leading_agent(ORDERS)
    simulation.outcome = lambda _: Outcome.FAILED
    simulation.counts["orders"] = 8
    simulation.pass_time(120_000)
    pauses = [
        event.retry_in_ms for event in simulation.reported(AttemptFailed) if isinstance(event, AttemptFailed)
    ]
    assert pauses[:7] == [450, 900, 1_800, 3_600, 7_200, 14_400, 27_000]
    kinds = [type(action) for action in simulation.actions]
    assert all(kinds[index - 1] is not Expand for index, kind in enumerate(kinds) if kind is Expand)


def test_backward_clock_step_changes_nothing() -> None:
    simulation = leading_agent(ORDERS)
    simulation.outcome = lambda _: Outcome.FAILED
    simulation.counts["orders"] = 8
    simulation.pass_time(30_000 + TIMEOUT_MS // 2)
    simulation.monotonic_ms -= 10 * TIMEOUT_MS
    simulation.pass_time(TIMEOUT_MS // 2 - 60_000)
    assert simulation.state.failures == 0
    simulation.pass_time(120_000)
    assert simulation.state.failures == 1


def test_unreachable_cluster_fails_running_expansions() -> None:
    simulation = leading_agent(ORDERS)
    simulation.outcome = lambda _: Outcome.FAILED
    simulation.counts["orders"] = 8
    simulation.pass_time(31_000)
    simulation.is_unreadable = True
    simulation.pass_time(TIMEOUT_MS)
    assert simulation.state.failures == 1
    assert simulation.state.read_problems


def test_unreachable_cluster_is_reported_once_and_again_with_another_reason() -> None:
    simulation = leading_agent(ORDERS)
    first, other = (
        (Problem(code=ProblemCode.CLUSTER_UNREACHABLE, summary="No broker can be reached.", found=found),)
        for found in ("timed out", "refused")
    )
    for problems in (first, first, other):
        simulation.run(Unreadable(problems))
    assert simulation.reported(ClusterUnreadable) == [ClusterUnreadable(first), ClusterUnreadable(other)]
    simulation.pass_time(60_000)
    assert simulation.reported(ClusterReadable) == [ClusterReadable()]


def test_observations_of_an_expansion_that_is_over_change_nothing() -> None:
    simulation = leading_agent(ORDERS)
    before = simulation.state.applications
    for application in ("totals-app", "unknown-app"):
        simulation.run(Unconfirmed(application))
        simulation.run(CallbackCalled(application, "refused"))
    assert simulation.state.applications == before


def test_error_of_callback_is_in_the_journal() -> None:
    simulation = leading_agent(ORDERS)
    simulation.is_unconfirmed = True
    simulation.counts["orders"] = 8
    simulation.pass_time(60_000)
    simulation.run(CallbackCalled("totals-app", "refused"))
    assert [entry.reason for entry in simulation.journal if entry.stage is Stage.NOTIFIED] == ["refused"]
    assert [event.error for event in simulation.reported(Notified) if isinstance(event, Notified)] == [
        "refused"
    ]


def test_unreachable_cluster_is_no_failure_without_expansion() -> None:
    simulation = leading_agent(ORDERS)
    simulation.is_unreadable = True
    simulation.pass_time(2 * TIMEOUT_MS)
    assert simulation.state.failures == 0
    simulation.is_unreadable = False
    simulation.counts["orders"] = 8
    simulation.pass_time(60_000)
    assert simulation.calls == [("totals-app", 1, 4, 8)]


@pytest.mark.parametrize("topic", ["orders", CHANGELOG])
def test_counts_of_lagging_broker_are_not_used(topic: str) -> None:
    simulation = leading_agent(ORDERS)
    before = dict(simulation.counts)
    simulation.counts["orders"] = 8
    simulation.pass_time(30_000)
    attempts = len([action for action in simulation.actions if isinstance(action, Expand)])
    simulation.stale = {**simulation.counts, topic: before[topic]}
    simulation.pass_time(15_000)
    simulation.stale = None
    simulation.pass_time(60_000)
    assert len([action for action in simulation.actions if isinstance(action, Expand)]) == attempts
    assert not simulation.reported(ApplicationRefused)
    assert simulation.calls == [("totals-app", 1, 4, 8)]
