"""What fails is tried again until the timeout; what lags or jumps is not believed."""

import pytest

from spark_jobs.agent.decide import Expand
from spark_jobs.agent.events import ApplicationRefused, AttemptFailed, GaveUp
from spark_jobs.agent.state import Outcome, Phase, Stage
from tests.agent.simulation import CHANGELOG, ORDERS, REPARTITION, leading_agent

TIMEOUT_MS = 900_000


def test_the_clock_starts_at_the_first_failure_and_expiry_counts_once() -> None:
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


def test_after_giving_up_a_later_change_of_a_source_starts_anew() -> None:
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


def test_any_success_resets_the_clock() -> None:
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


def test_the_clock_stops_while_an_application_waits_for_another_one() -> None:
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


def test_the_clock_stops_while_an_application_is_refused() -> None:
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


def test_a_request_that_was_done_without_an_answer_is_a_success_when_metadata_shows_it() -> None:
    simulation = leading_agent(ORDERS)
    simulation.is_answer_lost = True
    simulation.counts["orders"] = 8
    simulation.pass_time(60_000)
    assert simulation.calls == [("totals-app", 1, 4, 8)]
    assert len([action for action in simulation.actions if isinstance(action, Expand)]) == 1
    assert simulation.state.failures == 0


def test_a_success_that_only_metadata_shows_resets_the_clock() -> None:
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


def test_pauses_between_attempts_grow_and_each_goes_by_fresh_metadata() -> None:
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


def test_a_step_back_of_the_clock_neither_stops_nor_restarts_anything() -> None:
    simulation = leading_agent(ORDERS)
    simulation.outcome = lambda _: Outcome.FAILED
    simulation.counts["orders"] = 8
    simulation.pass_time(30_000 + TIMEOUT_MS // 2)
    simulation.monotonic_ms -= 10 * TIMEOUT_MS
    simulation.pass_time(TIMEOUT_MS // 2 - 60_000)
    assert simulation.state.failures == 0
    simulation.pass_time(120_000)
    assert simulation.state.failures == 1


def test_an_unreachable_cluster_is_a_failure_of_what_is_going_on() -> None:
    simulation = leading_agent(ORDERS)
    simulation.outcome = lambda _: Outcome.FAILED
    simulation.counts["orders"] = 8
    simulation.pass_time(31_000)
    simulation.is_unreadable = True
    simulation.pass_time(TIMEOUT_MS)
    assert simulation.state.failures == 1
    assert simulation.state.read_problems


def test_an_unreachable_cluster_is_no_failure_when_there_is_nothing_to_expand() -> None:
    simulation = leading_agent(ORDERS)
    simulation.is_unreadable = True
    simulation.pass_time(2 * TIMEOUT_MS)
    assert simulation.state.failures == 0
    simulation.is_unreadable = False
    simulation.counts["orders"] = 8
    simulation.pass_time(60_000)
    assert simulation.calls == [("totals-app", 1, 4, 8)]


@pytest.mark.parametrize("topic", ["orders", CHANGELOG])
def test_a_broker_that_lags_behind_is_not_believed(topic: str) -> None:
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
