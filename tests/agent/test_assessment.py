"""The comparison of one application with the cluster, value by value."""

from collections.abc import Mapping

import attrs

from headwater.agent.decide.assessment import Assessment, assess_application, held_back
from headwater.agent.state import Parallelism, Shortfall
from headwater.compiler import compile_documents
from headwater.model.problems import AGENT, Location, Problem, ProblemCode, Severity
from tests.agent.simulation import CHANGELOG, ORDERS, RANKS, REPARTITION, documents

LIVE = {"orders": 8, "returns": 4, REPARTITION: 4, CHANGELOG: 8, "totals": 4, "another-topic": 3}
SETTLED = {REPARTITION: 4, CHANGELOG: 4, "totals": 4}
OFF = ORDERS.replace("enabled: true", "enabled: false")


def assessed(text: str, live: Mapping[str, int], settled: Mapping[str, int]) -> Assessment:
    [compiled] = compile_documents(documents(text), live, AGENT)
    return assess_application(compiled, live, settled)


def test_missing_partitions_are_shortfalls_and_limit_the_tasks() -> None:
    assert assessed(ORDERS, LIVE, SETTLED) == Assessment(
        id="totals-app",
        is_enabled=True,
        timeout_ms=900_000,
        counts={REPARTITION: 4, CHANGELOG: 8, "totals": 4},
        required={REPARTITION: 8, CHANGELOG: 8, "totals": 8},
        sources={"orders": 8, "returns": 4},
        reads=frozenset({"orders", "returns"}),
        sinks=frozenset({"totals"}),
        shortfalls=(
            Shortfall("totals-app", REPARTITION, 4, 8),
            Shortfall("totals-app", "totals", 4, 8),
        ),
        parallelism=(Parallelism(0, 8, 8), Parallelism(1, 4, 8)),
        refusals=(),
        expanded=(),
        warnings=(),
    )


def test_without_autoscaling_only_internal_topics_are_reported() -> None:
    assessment = assessed(OFF, LIVE, SETTLED)
    assert not assessment.is_enabled
    assert assessment.shortfalls == (Shortfall("totals-app", REPARTITION, 4, 8),)
    [problem] = assessment.expanded
    assert (problem.code, problem.topic) == (ProblemCode.SOURCE_TOPICS_EXPANDED, REPARTITION)


def test_an_expansion_is_possible_with_shortfalls_autoscaling_and_no_refusal() -> None:
    assert assessed(ORDERS, LIVE, SETTLED).is_expandable
    assert not assessed(OFF, LIVE, SETTLED).is_expandable
    assert not assessed(ORDERS, LIVE | {REPARTITION: 8, "totals": 8}, SETTLED).is_expandable
    assert not assessed(ORDERS, LIVE | {CHANGELOG: 9}, SETTLED).is_expandable


def test_a_missing_internal_topic_is_a_warning_and_no_shortfall() -> None:
    live = {name: count for name, count in LIVE.items() if name != CHANGELOG} | {REPARTITION: 8, "totals": 8}
    assessment = assessed(ORDERS, live, SETTLED)
    assert assessment.shortfalls == ()
    assert assessment.counts == {REPARTITION: 8, "totals": 8}
    assert assessment.parallelism == (Parallelism(0, 8, 8), Parallelism(1, 0, 8))
    [warning] = assessment.warnings
    assert attrs.evolve(warning, location=None) == Problem(
        code=ProblemCode.MISSING_INTERNAL_TOPICS,
        summary=f"Internal topic {CHANGELOG} does not exist.",
        application="totals-app",
        topic=CHANGELOG,
        node=warning.node,
        expected="8 partitions",
        found="none",
        why="The agent adds partitions and creates no topics: a deleted topic may have held state.",
        fix="If `headwater drift` with another user finds the topic, grant the agent's user "
        "Describe and Alter on it. If not, and the application has run before, stop the "
        "application. Then run `pulumi up`, which distinguishes a first start from a loss.",
        severity=Severity.WARNING,
    )
    assert warning.node
    assert isinstance(warning.location, Location)


def test_no_task_runs_without_a_topic_even_if_it_needs_one_partition() -> None:
    live = {"orders": 1, "returns": 1, REPARTITION: 1, "totals": 1}
    assert assessed(ORDERS, live, {}).parallelism == (Parallelism(0, 1, 1), Parallelism(1, 0, 1))


def test_the_former_count_of_a_topic_that_never_settled_is_not_known() -> None:
    [problem] = assessed(ORDERS, LIVE | {CHANGELOG: 20}, {}).refusals
    assert problem.summary == f"Internal topic {CHANGELOG} has more partitions than expected."
    [settled] = assessed(ORDERS, LIVE | {CHANGELOG: 20}, {CHANGELOG: 8}).refusals
    assert settled.summary.endswith("it was set up with 8, and another client expanded it.")


def test_a_topic_that_never_settled_may_be_too_small_without_an_expanded_source() -> None:
    [problem] = assessed(OFF, LIVE, {}).expanded
    assert (problem.code, problem.topic) == (ProblemCode.UNDER_PARTITIONED, REPARTITION)
    assert problem.expected == "8 partitions, as many as orders"


def test_a_fix_that_expands_a_source_topic_warns_of_its_other_readers() -> None:
    [problem] = assessed(ORDERS, LIVE | {CHANGELOG: 20}, {}).refusals
    assert "Expand orders to 20 partitions" in problem.fix
    assert "check every other application that reads it" in problem.fix


def test_a_source_topic_can_be_missing_because_of_the_permissions_of_the_agent() -> None:
    text = """
application: {id: copy-app}
topology:
  - stream: {topic: orders}
  - to: {topic: copies}
"""
    [problem] = assessed(text, {"copies": 4}, {}).refusals
    assert (problem.code, problem.topic) == (ProblemCode.MISSING_SOURCE_TOPIC, "orders")
    assert problem.fix.endswith("If it exists, grant the agent's user permission to describe it.")


def test_a_reader_is_held_back_by_each_sink_topic_that_stays_short() -> None:
    counts = LIVE | {"ranks-app-latest-changelog": 4}
    writer, reader = (
        assess_application(compiled, counts, {})
        for compiled in compile_documents(documents(ORDERS, RANKS), counts, AGENT)
    )
    both = {"totals-app": writer, "ranks-app": reader}
    assert held_back(both, ["totals-app", "ranks-app"]) == frozenset()
    assert held_back(both, ["ranks-app"]) == {"ranks-app"}
    missing = both | {"totals-app": attrs.evolve(writer, counts={})}
    assert held_back(missing, ["totals-app", "ranks-app"]) == {"ranks-app"}
    enough = both | {"totals-app": attrs.evolve(writer, counts={"totals": 8})}
    assert held_back(enough, ["ranks-app"]) == frozenset()
