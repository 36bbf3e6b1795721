import attrs
import pytest

from infra.model.problems import ProblemCode
from spark_jobs.agent.decide import Expand, Led, Notify, Observe
from spark_jobs.agent.events import (
    ApplicationRefused,
    ApplicationStopped,
    ApplicationWarned,
    AttemptFailed,
    Cancelled,
    Expanded,
    ExpansionStarted,
    GaveUp,
    Notified,
    ProblemsSolved,
)
from spark_jobs.agent.state import (
    INCOMPLETE_SOURCE_TOPIC_METADATA,
    Outcome,
    Parallelism,
    Phase,
    Stage,
)
from tests.agent.simulation import ORDERS, RANKS, Simulation, documents, set_up

REPARTITION = "totals-app-by-customer-repartition"
CHANGELOG = "totals-app-counts-changelog"
TIMEOUT_MS = 900_000
STATIC = ', static.partitioner.class: "tenants:ByTenant"'


def agent(*texts: str) -> Simulation:
    """A leading agent on a cluster with 4 partitions each, which it has looked at once."""
    parsed = documents(*(texts or (ORDERS, RANKS)))
    simulation = Simulation(parsed, set_up(parsed, {"orders": 4, "returns": 4}))
    simulation.lead()
    return simulation


def test_nothing_is_done_while_counts_agree() -> None:
    simulation = agent()
    simulation.pass_time(600_000)
    assert {type(action) for action in simulation.actions[1:]} == {Observe}
    assert not simulation.journal
    assert {app.phase for app in simulation.state.applications.values()} == {Phase.STEADY}


def test_a_look_is_one_request_each_interval() -> None:
    simulation = agent()
    simulation.actions.clear()
    simulation.pass_time(10 * 30_000)
    assert simulation.actions == [Observe()] * 10


def test_the_interval_is_the_least_metadata_max_age_of_the_applications() -> None:
    simulation = agent(ORDERS.replace("config: {", "config: {metadata.max.age.ms: 7000, "), RANKS)
    simulation.policy = attrs.evolve(simulation.policy, poll_ms=None)
    simulation.run(Led(simulation.term))
    simulation.actions.clear()
    simulation.pass_time(70_000)
    assert simulation.actions == [Observe()] * 10


def test_the_first_of_several_sources_starts_an_expansion_downstream_first_over_applications() -> None:
    simulation = agent()
    simulation.counts["returns"] = 6
    simulation.pass_time(30_000)
    (expand,) = [action for action in simulation.actions if isinstance(action, Expand)]
    topics = [sorted(item.topic for item in wave) for wave in expand.waves]
    assert topics == [["ranks-app-latest-changelog", CHANGELOG], ["totals"], [REPARTITION]]
    assert {simulation.counts[topic] for wave in topics for topic in wave} == {6}


def test_the_journal_knows_before_anything_changes_and_the_callback_comes_ten_seconds_after() -> None:
    simulation = agent(ORDERS)
    simulation.counts["orders"] = 9
    simulation.pass_time(30_000)
    assert simulation.stages() == [Stage.STARTED, Stage.EXPANDED]
    assert simulation.app().phase is Phase.SETTLING
    simulation.pass_time(9_999)
    assert not simulation.calls
    simulation.pass_time(1)
    assert simulation.calls == [("totals-app", 1, 4, 9)]
    assert simulation.stages() == [Stage.STARTED, Stage.EXPANDED, Stage.NOTIFIED]
    assert simulation.app().phase is Phase.STEADY
    kinds = [type(action).__name__ for action in simulation.actions]
    assert kinds == [
        *("Recover", "Observe"),
        *("Observe", "Record", "Expand", "Record"),
        *("Observe", "Notify", "Record"),
    ]


def test_the_journal_says_who_expanded_what_when_and_why() -> None:
    simulation = agent(ORDERS)
    simulation.counts["orders"] = 9
    simulation.pass_time(60_000)
    first, last = simulation.journal[0], simulation.journal[-1]
    assert first.client_id == "agent-1"
    assert (first.before, first.after) == (
        {REPARTITION: 4, CHANGELOG: 4, "totals": 4},
        {REPARTITION: 9, CHANGELOG: 9, "totals": 9},
    )
    assert (first.sources_before["orders"], first.sources_after["orders"]) == (4, 9)
    assert (first.reason, first.wall_ms) == ("orders grew from 4 to 9", 30_000)
    assert last.after == first.after
    assert set(last.done) == {REPARTITION, CHANGELOG, "totals"}


def test_parallelism_is_current_and_expected() -> None:
    simulation = agent(ORDERS)
    simulation.outcome = lambda topic: Outcome.FAILED if topic == CHANGELOG else None
    simulation.counts["orders"] = 9
    simulation.pass_time(30_000)
    assert simulation.app().parallelism == (Parallelism(0, 9, 9), Parallelism(1, 4, 9))
    simulation.outcome = lambda _: None
    simulation.pass_time(30_000)
    assert simulation.app().parallelism == (Parallelism(0, 9, 9), Parallelism(1, 9, 9))


def test_an_over_partitioned_topic_is_an_error_and_nothing_is_touched() -> None:
    simulation = agent(ORDERS)
    simulation.counts |= {CHANGELOG: 20, "orders": 8}
    simulation.pass_time(60_000)
    assert simulation.app().phase is Phase.REFUSED
    assert [problem.code for problem in simulation.app().problems] == [ProblemCode.OVER_PARTITIONED]
    assert len(simulation.told(ApplicationRefused)) == 1
    assert simulation.counts[REPARTITION] == 4
    simulation.counts["orders"] = 20
    simulation.pass_time(60_000)
    assert simulation.counts[REPARTITION] == 20
    assert len(simulation.told(ProblemsSolved)) == 1


def test_over_partitioning_is_an_error_with_the_flag_off_too() -> None:
    simulation = agent(ORDERS.replace("enabled: true", "enabled: false"))
    simulation.counts[CHANGELOG] = 20
    simulation.pass_time(60_000)
    assert simulation.app().phase is Phase.REFUSED


def test_with_the_flag_off_the_application_stops_with_the_details() -> None:
    simulation = agent(ORDERS.replace("enabled: true", "enabled: false"))
    simulation.counts["orders"] = 8
    simulation.pass_time(60_000)
    assert simulation.app().phase is Phase.STOPPED
    assert simulation.app().error_code == INCOMPLETE_SOURCE_TOPIC_METADATA
    (stopped,) = simulation.told(ApplicationStopped)
    assert isinstance(stopped, ApplicationStopped)
    assert {problem.topic for problem in stopped.problems} == {REPARTITION, CHANGELOG}
    assert not simulation.journal
    assert simulation.counts[CHANGELOG] == 4


def test_the_flag_can_be_switched_on_and_off_while_running() -> None:
    simulation = agent(ORDERS)
    on, off = simulation.documents, documents(ORDERS.replace("enabled: true", "enabled: false"))
    simulation.outcome = lambda _: Outcome.FAILED
    simulation.counts["orders"] = 8
    simulation.pass_time(30_000)
    simulation.documents = off
    simulation.pass_time(30_000)
    assert simulation.app().phase is Phase.STOPPED
    assert len(simulation.told(Cancelled)) == 1
    simulation.outcome = lambda _: None
    simulation.documents = on
    simulation.pass_time(60_000)
    assert simulation.app().phase is Phase.STEADY
    assert simulation.calls == [("totals-app", 2, 4, 8)]


def test_state_that_is_not_statically_partitioned_is_refused_unless_acknowledged() -> None:
    simulation = agent(ORDERS.replace(STATIC, ""))
    simulation.counts["orders"] = 8
    simulation.pass_time(30_000)
    assert [problem.code for problem in simulation.app().problems] == [ProblemCode.UNSAFE_EXPANSION]
    assert simulation.counts[CHANGELOG] == 4
    acknowledged = ORDERS.replace(STATIC, "").replace(
        "application:", "application:\n  setup: {allowUnsafeExpansion: true}"
    )
    simulation.documents = documents(acknowledged)
    simulation.pass_time(30_000)
    assert simulation.counts[CHANGELOG] == 8


def test_a_deleted_source_is_reported_and_a_smaller_one_makes_topics_over_partitioned() -> None:
    simulation = agent(ORDERS)
    del simulation.counts["orders"]
    simulation.pass_time(60_000)
    assert [problem.code for problem in simulation.app().problems] == [ProblemCode.MISSING_SOURCE_TOPIC]
    simulation.counts |= {"orders": 2, "returns": 2}
    simulation.pass_time(60_000)
    problems = simulation.app().problems
    assert {problem.code for problem in problems} == {ProblemCode.OVER_PARTITIONED}
    assert "were they created anew?" in problems[0].summary
    assert "setup.reinitialize" in problems[0].fix


def test_a_missing_internal_topic_is_reported_and_not_created() -> None:
    simulation = agent(ORDERS)
    del simulation.counts[CHANGELOG]
    simulation.pass_time(60_000)
    (warned,) = simulation.told(ApplicationWarned)
    assert isinstance(warned, ApplicationWarned)
    assert [problem.topic for problem in warned.problems] == [CHANGELOG]
    simulation.counts["orders"] = 8
    simulation.pass_time(60_000)
    assert CHANGELOG not in simulation.counts
    assert simulation.counts[REPARTITION] == 8
    assert simulation.app().parallelism[1] == Parallelism(1, 0, 8)


def test_the_clock_starts_at_the_first_failure_and_expiry_counts_once() -> None:
    simulation = agent(ORDERS)
    simulation.outcome = lambda _: Outcome.FAILED
    simulation.counts["orders"] = 8
    simulation.pass_time(30_000 + TIMEOUT_MS - 1)
    assert simulation.state.failures == 0
    simulation.pass_time(1)
    assert simulation.state.failures == 1
    assert simulation.app().phase is Phase.GIVEN_UP
    simulation.pass_time(2 * TIMEOUT_MS)
    assert simulation.state.failures == 1
    assert len(simulation.told(GaveUp)) == 1
    assert simulation.stages() == [Stage.STARTED, Stage.GIVEN_UP]


def test_after_giving_up_a_later_change_of_a_source_starts_anew() -> None:
    simulation = agent(ORDERS)
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
    simulation = agent(ORDERS)
    simulation.outcome = lambda _: Outcome.FAILED
    simulation.counts["orders"] = 8
    simulation.pass_time(TIMEOUT_MS)
    simulation.outcome = lambda topic: Outcome.FAILED if topic == REPARTITION else None
    simulation.pass_time(TIMEOUT_MS - 1_000)
    assert simulation.state.failures == 0
    assert simulation.counts[CHANGELOG] == 8
    simulation.pass_time(60_000)
    assert simulation.state.failures == 1


def test_a_request_that_was_done_without_an_answer_is_a_success_when_metadata_shows_it() -> None:
    simulation = agent(ORDERS)
    simulation.is_answer_lost = True
    simulation.counts["orders"] = 8
    simulation.pass_time(60_000)
    assert simulation.calls == [("totals-app", 1, 4, 8)]
    assert len([action for action in simulation.actions if isinstance(action, Expand)]) == 1
    assert simulation.state.failures == 0


def test_a_success_that_only_metadata_shows_resets_the_clock() -> None:
    simulation = agent(ORDERS)
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


def test_growth_by_somebody_else_is_not_told_while_the_flag_is_off() -> None:
    simulation = agent(ORDERS.replace("enabled: true", "enabled: false"))
    simulation.counts = set_up(simulation.documents, {"orders": 8, "returns": 4})
    simulation.pass_time(60_000)
    assert simulation.app().phase is Phase.STEADY
    assert not simulation.calls
    assert not simulation.journal


def test_pauses_between_attempts_grow_and_each_goes_by_fresh_metadata() -> None:
    simulation = agent(ORDERS)
    simulation.outcome = lambda _: Outcome.FAILED
    simulation.counts["orders"] = 8
    simulation.pass_time(120_000)
    pauses = [
        event.retry_in_ms for event in simulation.told(AttemptFailed) if isinstance(event, AttemptFailed)
    ]
    assert pauses[:7] == [450, 900, 1_800, 3_600, 7_200, 14_400, 27_000]
    kinds = [type(action) for action in simulation.actions]
    assert all(kinds[index - 1] is not Expand for index, kind in enumerate(kinds) if kind is Expand)


def test_a_step_back_of_the_clock_neither_stops_nor_restarts_anything() -> None:
    simulation = agent(ORDERS)
    simulation.outcome = lambda _: Outcome.FAILED
    simulation.counts["orders"] = 8
    simulation.pass_time(30_000 + TIMEOUT_MS // 2)
    simulation.monotonic_ms -= 10 * TIMEOUT_MS
    simulation.pass_time(TIMEOUT_MS // 2 - 60_000)
    assert simulation.state.failures == 0
    simulation.pass_time(120_000)
    assert simulation.state.failures == 1


def test_an_unreachable_cluster_is_a_failure_of_what_is_going_on() -> None:
    simulation = agent(ORDERS)
    simulation.outcome = lambda _: Outcome.FAILED
    simulation.counts["orders"] = 8
    simulation.pass_time(31_000)
    simulation.is_unreadable = True
    simulation.pass_time(TIMEOUT_MS)
    assert simulation.state.failures == 1
    assert simulation.state.unreadable


def test_an_unreachable_cluster_is_no_failure_when_there_is_nothing_to_expand() -> None:
    simulation = agent(ORDERS)
    simulation.is_unreadable = True
    simulation.pass_time(2 * TIMEOUT_MS)
    assert simulation.state.failures == 0
    simulation.is_unreadable = False
    simulation.counts["orders"] = 8
    simulation.pass_time(60_000)
    assert simulation.calls == [("totals-app", 1, 4, 8)]


def test_nothing_is_expanded_that_cannot_be_written_down() -> None:
    simulation = agent(ORDERS)
    simulation.is_journal_down = True
    simulation.counts["orders"] = 8
    simulation.pass_time(60_000)
    assert simulation.counts[CHANGELOG] == 4
    assert simulation.app().expansion is not None
    simulation.is_journal_down = False
    simulation.pass_time(60_000)
    assert simulation.calls == [("totals-app", 1, 4, 8)]


@pytest.mark.parametrize("topic", ["orders", CHANGELOG])
def test_a_broker_that_lags_behind_is_not_believed(topic: str) -> None:
    simulation = agent(ORDERS)
    before = dict(simulation.counts)
    simulation.counts["orders"] = 8
    simulation.pass_time(30_000)
    attempts = len([action for action in simulation.actions if isinstance(action, Expand)])
    simulation.stale = {**simulation.counts, topic: before[topic]}
    simulation.pass_time(15_000)
    simulation.stale = None
    simulation.pass_time(60_000)
    assert len([action for action in simulation.actions if isinstance(action, Expand)]) == attempts
    assert not simulation.told(ApplicationRefused)
    assert simulation.calls == [("totals-app", 1, 4, 8)]


def test_the_callback_waits_until_metadata_shows_all_partitions() -> None:
    simulation = agent(ORDERS)
    before = dict(simulation.counts)
    simulation.counts["orders"] = 8
    simulation.pass_time(30_000)
    simulation.stale = {**simulation.counts, CHANGELOG: before[CHANGELOG]}
    simulation.pass_time(15_000)
    assert not simulation.calls
    simulation.stale = None
    simulation.pass_time(1_000)
    assert simulation.calls


def test_an_expansion_by_somebody_else_is_told_to_the_callback_too() -> None:
    simulation = agent(ORDERS)
    simulation.counts = set_up(simulation.documents, {"orders": 8, "returns": 4})
    simulation.pass_time(60_000)
    assert not [action for action in simulation.actions if isinstance(action, Expand)]
    assert simulation.calls == [("totals-app", 1, 4, 8)]
    assert simulation.journal[-1].done == ()


def test_a_source_that_grows_again_while_it_settles_goes_into_the_same_expansion() -> None:
    simulation = agent(ORDERS)
    simulation.policy = attrs.evolve(simulation.policy, poll_ms=2_000)
    simulation.counts["orders"] = 8
    simulation.pass_time(34_000)
    assert simulation.app().phase is Phase.SETTLING
    simulation.counts["orders"] = 12
    simulation.pass_time(60_000)
    assert simulation.calls == [("totals-app", 1, 4, 12)]
    assert len(simulation.told(Expanded)) == 2
    assert len(simulation.told(ExpansionStarted)) == 1


def test_a_follower_only_looks() -> None:
    simulation = agent(ORDERS)
    simulation.run(Led(None))
    simulation.counts["orders"] = 8
    simulation.pass_time(60_000)
    assert simulation.app().phase is Phase.WAITING
    assert simulation.app().parallelism[1] == Parallelism(1, 4, 8)
    assert simulation.counts[CHANGELOG] == 4


def test_an_unconfirmed_leader_does_not_call() -> None:
    simulation = agent(ORDERS)
    simulation.is_unconfirmed = True
    simulation.counts["orders"] = 8
    simulation.pass_time(60_000)
    assert not simulation.calls
    simulation.is_unconfirmed = False
    simulation.pass_time(5_000)
    assert simulation.calls == [("totals-app", 1, 4, 8)]


def test_the_callback_is_not_called_again_when_only_the_journal_failed() -> None:
    simulation = agent(ORDERS)
    simulation.counts["orders"] = 8
    simulation.pass_time(35_000)
    simulation.is_journal_down = True
    simulation.pass_time(60_000)
    assert len(simulation.calls) == 1
    assert len(simulation.told(Notified)) == 1
    simulation.lead()
    simulation.is_journal_down = False
    simulation.pass_time(120_000)
    assert len(simulation.calls) == 1
    assert simulation.stages()[-1] is Stage.NOTIFIED


def test_documents_are_compiled_again_only_when_a_count_that_matters_changes() -> None:
    simulation = agent()
    before = simulation.state.wanted
    simulation.counts |= {"somebody-elses": 7, CHANGELOG: 4}
    simulation.pass_time(60_000)
    assert simulation.state.wanted is before
    simulation.counts["orders"] = 5
    simulation.pass_time(60_000)
    assert simulation.state.wanted is not before


def test_what_waited_for_the_journal_goes_with_the_leadership() -> None:
    simulation = agent(ORDERS)
    simulation.is_journal_down = True
    simulation.counts["orders"] = 8
    simulation.pass_time(31_000)
    assert simulation.state.outbox
    simulation.lead()
    simulation.is_journal_down = False
    simulation.pass_time(60_000)
    assert simulation.stages() == [Stage.STARTED, Stage.EXPANDED, Stage.NOTIFIED]


def test_growth_after_a_call_that_could_not_be_written_down_is_told_by_itself() -> None:
    simulation = agent(ORDERS)
    simulation.counts["orders"] = 8
    simulation.pass_time(35_000)
    simulation.is_journal_down = True
    simulation.pass_time(10_000)
    assert simulation.calls == [("totals-app", 1, 4, 8)]
    simulation.is_journal_down = False
    simulation.counts["orders"] = 10
    simulation.lead()
    simulation.pass_time(60_000)
    assert simulation.calls == [("totals-app", 1, 4, 8), ("totals-app", 2, 8, 10)]
    assert simulation.stages() == [
        *(Stage.STARTED, Stage.EXPANDED, Stage.NOTIFIED),
        *(Stage.STARTED, Stage.EXPANDED, Stage.NOTIFIED),
    ]


def test_a_reader_waits_for_a_sink_topic_that_its_writer_does_not_expand() -> None:
    simulation = agent(ORDERS.replace("enabled: true", "enabled: false"), RANKS)
    simulation.counts["orders"] = 8
    simulation.pass_time(60_000)
    assert simulation.app("ranks-app").phase is Phase.WAITING
    assert simulation.counts["ranks-app-latest-changelog"] == 4


def test_a_reader_waits_for_a_sink_topic_that_its_writer_has_given_up() -> None:
    simulation = agent(ORDERS, RANKS.replace("enabled: true", "enabled: false"))
    simulation.outcome = lambda topic: Outcome.FAILED if topic == "totals" else None
    simulation.counts["orders"] = 8
    simulation.pass_time(40_000 + TIMEOUT_MS)
    assert simulation.app().phase is Phase.GIVEN_UP
    simulation.documents = documents(ORDERS, RANKS)
    simulation.pass_time(60_000)
    assert simulation.app("ranks-app").phase is Phase.WAITING
    assert simulation.counts["ranks-app-latest-changelog"] == 4


@pytest.mark.parametrize("step", range(12))
def test_killed_after_any_step_another_agent_finishes(step: int) -> None:
    simulation = agent()
    simulation.crash_after = step
    simulation.counts["orders"] = 8
    simulation.pass_time(120_000)
    assert {name for name, count in simulation.counts.items() if count != 8} == {"returns"}
    assert {entry.stage for entry in simulation.last_entries().values()} == {Stage.NOTIFIED}
    for application in ("totals-app", "ranks-app"):
        calls = [call for call in simulation.calls if call[0] == application]
        assert set(calls) == {(application, 1, 4, 8)}
        assert len(calls) <= 2


def test_what_was_expanded_before_giving_up_is_told_with_the_expansion_that_succeeds() -> None:
    simulation = agent(ORDERS)
    simulation.outcome = lambda topic: Outcome.FAILED if topic == REPARTITION else None
    simulation.counts["orders"] = 8
    simulation.pass_time(40_000 + TIMEOUT_MS)
    assert simulation.stages()[-1] is Stage.GIVEN_UP
    simulation.crash()
    simulation.outcome = lambda _: None
    simulation.counts["orders"] = 10
    simulation.run(Led(simulation.term))
    simulation.pass_time(60_000)
    assert simulation.journal[-1].before == {REPARTITION: 4, CHANGELOG: 4, "totals": 4}
    assert simulation.calls == [("totals-app", 2, 4, 10)]


def test_only_a_kill_between_callback_and_journal_calls_twice() -> None:
    simulation = agent(ORDERS)
    simulation.counts["orders"] = 8
    simulation.pass_time(35_000)
    simulation.crash_after = 2
    simulation.pass_time(120_000)
    assert [type(action) for action in simulation.actions].count(Notify) == 2
    assert len(simulation.calls) == 2
