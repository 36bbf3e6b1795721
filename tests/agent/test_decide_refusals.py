"""Cases in which the agent changes nothing, and the problems that it reports."""

import pytest

from headwater.agent.decide.assessment import assess_application
from headwater.agent.events import (
    ApplicationRefused,
    ApplicationStopped,
    ApplicationWarned,
    Cancelled,
    ProblemsSolved,
)
from headwater.agent.state import INCOMPLETE_SOURCE_TOPIC_METADATA, Outcome, Parallelism, Phase
from headwater.compiler import compile_documents
from headwater.model.expansions import Stage
from headwater.model.problems import AGENT, ProblemCode, Severity, errors
from tests.agent.simulation import CHANGELOG, ORDERS, RANKS, REPARTITION, documents, leading_agent

TIMEOUT_MS = 900_000
STATIC = ', static.partitioner.class: "tenants:ByTenant"'


def test_over_partitioned_topic_blocks_expansion() -> None:
    simulation = leading_agent(ORDERS)
    simulation.counts |= {CHANGELOG: 20, "orders": 8}
    simulation.pass_time(60_000)
    assert simulation.app().phase is Phase.REFUSED
    (problem,) = simulation.app().problems
    assert problem.code is ProblemCode.OVER_PARTITIONED
    assert problem.summary.endswith("it was set up with 4, and another client expanded it.")
    assert simulation.reported(ApplicationRefused) == [
        ApplicationRefused("totals-app", simulation.app().problems)
    ]
    assert simulation.counts[REPARTITION] == 4
    simulation.counts["orders"] = 20
    simulation.pass_time(60_000)
    assert simulation.counts[REPARTITION] == 20
    assert len(simulation.reported(ProblemsSolved)) == 1


def test_over_partitioned_topic_is_error_with_autoscaling_off() -> None:
    simulation = leading_agent(ORDERS.replace("enabled: true", "enabled: false"))
    simulation.counts[CHANGELOG] = 20
    simulation.pass_time(60_000)
    assert simulation.app().phase is Phase.REFUSED


def test_application_stops_with_details_when_autoscaling_is_off() -> None:
    simulation = leading_agent(ORDERS.replace("enabled: true", "enabled: false"))
    simulation.counts["orders"] = 8
    simulation.pass_time(60_000)
    assert simulation.app().phase is Phase.STOPPED
    assert simulation.app().error_code == INCOMPLETE_SOURCE_TOPIC_METADATA
    (stopped,) = simulation.reported(ApplicationStopped)
    assert isinstance(stopped, ApplicationStopped)
    assert {problem.topic for problem in stopped.problems} == {REPARTITION, CHANGELOG}
    assert not simulation.journal
    assert simulation.counts[CHANGELOG] == 4


def test_autoscaling_can_be_switched_while_running() -> None:
    simulation = leading_agent(ORDERS)
    on, off = simulation.documents, documents(ORDERS.replace("enabled: true", "enabled: false"))
    simulation.outcome = lambda _: Outcome.FAILED
    simulation.counts["orders"] = 8
    simulation.pass_time(30_000)
    simulation.documents = off
    simulation.pass_time(30_000)
    assert simulation.app().phase is Phase.STOPPED
    assert len(simulation.reported(Cancelled)) == 1
    assert simulation.journal[-1].after[CHANGELOG] == 4
    simulation.outcome = lambda _: None
    simulation.documents = on
    simulation.pass_time(60_000)
    assert simulation.app().phase is Phase.STEADY
    assert simulation.calls == [("totals-app", 2, 4, 8)]


def test_switching_autoscaling_off_and_on_tries_again_after_giving_up() -> None:
    simulation = leading_agent(ORDERS)
    on, off = simulation.documents, documents(ORDERS.replace("enabled: true", "enabled: false"))
    simulation.outcome = lambda _: Outcome.FAILED
    simulation.counts["orders"] = 8
    simulation.pass_time(1_000_000)
    assert simulation.app().phase is Phase.GIVEN_UP
    simulation.documents = off
    simulation.pass_time(30_000)
    assert simulation.app().given_up == {}
    simulation.documents, simulation.outcome = on, lambda _: None
    simulation.pass_time(60_000)
    assert simulation.calls == [("totals-app", 2, 4, 8)]


def test_removed_document_cancels_its_expansion() -> None:
    simulation = leading_agent()
    simulation.outcome = lambda _: Outcome.FAILED
    simulation.counts["orders"] = 8
    simulation.pass_time(31_000)
    simulation.documents = documents(RANKS)
    simulation.pass_time(60_000)
    assert set(simulation.state.applications) == {"ranks-app"}
    assert simulation.reported(Cancelled) == [Cancelled("totals-app", 1, "its document was removed")]
    entry = simulation.last_entries()["totals-app"]
    assert (entry.stage, entry.reason) == (Stage.CANCELLED, "its document was removed")


def test_state_without_static_partitioning_is_refused_unless_acknowledged() -> None:
    simulation = leading_agent(ORDERS.replace(STATIC, ""))
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


PROCESSORS = ORDERS.replace(STATIC, ", processing.guarantee: exactly_once_v2").replace(
    "id: totals-app", "id: totals-app\n  processors: 4"
)


def test_processors_grow_repartition_topics_and_keep_changelogs() -> None:
    simulation = leading_agent(PROCESSORS)
    simulation.counts |= {"orders": 8, "returns": 8}
    simulation.pass_time(30_000)
    assert not simulation.app().problems
    assert {name: simulation.counts[name] for name in (REPARTITION, CHANGELOG, "totals")} == {
        REPARTITION: 8,
        CHANGELOG: 4,
        "totals": 8,
    }


def test_processors_between_two_doublings_keep_their_initial_number() -> None:
    """12 partitions would be doubled ones of an application that had 6 processors at first, not 4."""
    simulation = leading_agent(PROCESSORS)
    simulation.counts |= {"orders": 8, "returns": 8}
    simulation.pass_time(30_000)
    simulation.counts[CHANGELOG] = 6
    simulation.documents = documents(PROCESSORS.replace("processors: 4", "processors: 6"))
    simulation.pass_time(30_000)
    assert not simulation.app().problems
    simulation.counts |= {"orders": 12, "returns": 12}
    simulation.pass_time(30_000)
    assert [problem.code for problem in simulation.app().problems] == [ProblemCode.UNSAFE_EXPANSION]
    assert simulation.counts[REPARTITION] == 8
    simulation.counts |= {"orders": 16, "returns": 16}
    simulation.pass_time(30_000)
    assert (simulation.counts[REPARTITION], simulation.counts[CHANGELOG]) == (16, 6)


@pytest.mark.parametrize("count", [6, 12])
def test_counts_that_move_keys_to_other_processors_are_refused(count: int) -> None:
    simulation = leading_agent(PROCESSORS)
    simulation.counts |= {"orders": count, "returns": count}
    simulation.pass_time(30_000)
    assert [problem.code for problem in simulation.app().problems] == [ProblemCode.UNSAFE_EXPANSION]
    assert simulation.counts[REPARTITION] == 4


def test_more_processors_may_be_declared_before_partitions_are_added() -> None:
    """The application adds the processors while it runs; the agent only says that they are missing."""
    simulation = leading_agent(PROCESSORS)
    simulation.documents = documents(PROCESSORS.replace("processors: 4", "processors: 8"))
    simulation.counts |= {"orders": 8, "returns": 8}
    simulation.pass_time(30_000)
    assert not errors(simulation.app().problems)
    assert (simulation.counts[REPARTITION], simulation.counts[CHANGELOG]) == (8, 4)
    [warned] = simulation.reported(ApplicationWarned)
    assert "has 4 of 8 declared processors" in str(warned)


def test_fewer_processors_are_refused() -> None:
    simulation = leading_agent(PROCESSORS)
    simulation.documents = documents(PROCESSORS.replace("processors: 4", "processors: 2"))
    simulation.counts |= {"orders": 8, "returns": 8}
    simulation.pass_time(30_000)
    assert [problem.code for problem in simulation.app().problems] == [ProblemCode.PROCESSOR_COUNT]
    assert (simulation.counts[REPARTITION], simulation.counts[CHANGELOG]) == (4, 4)


def test_removed_processors_are_known_from_committed_offsets() -> None:
    """A read that fails once changes nothing; before the first one that succeeds, the problem says why."""
    simulation = leading_agent(PROCESSORS)
    simulation.documents = documents(PROCESSORS.replace("processors: 4", "processors: 2"))
    simulation.are_offsets_unreadable = True
    simulation.counts |= {"orders": 8, "returns": 8}
    simulation.pass_time(30_000)
    [problem] = simulation.app().problems
    assert problem.code is ProblemCode.PROCESSOR_COUNT
    assert "these could not be read: No Kafka broker can be reached." in problem.why
    simulation.are_offsets_unreadable, simulation.processors = False, 2
    simulation.pass_time(30_000)
    assert (simulation.counts[REPARTITION], simulation.counts[CHANGELOG]) == (8, 4)
    refused = simulation.reported(ApplicationRefused)
    simulation.are_offsets_unreadable = True
    simulation.counts |= {"orders": 16, "returns": 16}
    simulation.pass_time(30_000)
    assert (simulation.counts[REPARTITION], simulation.counts[CHANGELOG]) == (16, 4)
    simulation.are_offsets_unreadable, simulation.processors = False, None
    simulation.pass_time(30_000)
    assert [problem.code for problem in simulation.app().problems] == [ProblemCode.PROCESSOR_COUNT]
    assert simulation.reported(ApplicationRefused)[:-1] == refused


def test_deleted_source_is_reported_and_smaller_source_is_over_partitioning() -> None:
    simulation = leading_agent(ORDERS)
    del simulation.counts["orders"]
    simulation.pass_time(60_000)
    assert [problem.code for problem in simulation.app().problems] == [ProblemCode.MISSING_SOURCE_TOPIC]
    simulation.counts |= {"orders": 2, "returns": 2}
    simulation.pass_time(60_000)
    problems = simulation.app().problems
    assert {problem.code for problem in problems} == {ProblemCode.OVER_PARTITIONED}
    assert "were they re-created" in problems[0].summary
    assert "Expand orders and returns to 4 partitions" in problems[0].fix


def test_missing_internal_topic_is_reported_and_not_created() -> None:
    simulation = leading_agent(ORDERS)
    del simulation.counts[CHANGELOG]
    simulation.pass_time(60_000)
    (warned,) = simulation.reported(ApplicationWarned)
    assert isinstance(warned, ApplicationWarned)
    (problem,) = warned.problems
    assert (problem.topic, problem.severity) == (CHANGELOG, Severity.WARNING)
    assert (problem.expected, problem.found) == ("4 partitions", "none")
    assert "Then run `pulumi up`" in problem.fix
    simulation.counts["orders"] = 8
    simulation.pass_time(60_000)
    assert CHANGELOG not in simulation.counts
    assert simulation.counts[REPARTITION] == 8
    assert simulation.app().parallelism[1] == Parallelism(1, 0, 8)


def test_reader_waits_for_sink_topic_that_writer_does_not_expand() -> None:
    simulation = leading_agent(ORDERS.replace("enabled: true", "enabled: false"), RANKS)
    simulation.counts["orders"] = 8
    simulation.pass_time(60_000)
    assert simulation.app("ranks-app").phase is Phase.WAITING
    assert simulation.counts["ranks-app-latest-changelog"] == 4


def test_reader_waits_for_sink_topic_that_writer_gave_up() -> None:
    simulation = leading_agent(ORDERS, RANKS.replace("enabled: true", "enabled: false"))
    simulation.outcome = lambda topic: Outcome.FAILED if topic == "totals" else None
    simulation.counts["orders"] = 8
    simulation.pass_time(40_000 + TIMEOUT_MS)
    assert simulation.app().phase is Phase.GIVEN_UP
    simulation.documents = documents(ORDERS, RANKS)
    simulation.pass_time(60_000)
    assert simulation.app("ranks-app").phase is Phase.WAITING
    assert simulation.counts["ranks-app-latest-changelog"] == 4


@pytest.mark.parametrize(("committed", "codes"), [(2, []), (None, [ProblemCode.PROCESSOR_COUNT])])
def test_changelogs_keep_the_partitions_of_removed_processors(
    committed: int | None, codes: list[ProblemCode]
) -> None:
    live = {"orders": 8, "returns": 8, REPARTITION: 4, CHANGELOG: 4, "totals": 4}
    text = PROCESSORS.replace("processors: 4", "processors: 2")
    [compiled] = compile_documents(documents(text), live, AGENT)
    found = assess_application(compiled, live, {REPARTITION: 4, CHANGELOG: 4, "totals": 4}, committed)
    assert [problem.code for problem in found.refusals] == codes
    assert {shortfall.topic for shortfall in found.shortfalls} == {REPARTITION, "totals"}
    assert found.is_expandable == (not codes)
