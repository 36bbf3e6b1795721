"""What an application does about its topics, and which problems of a check it tolerates for a while."""

import attrs
import pytest

from headwater.compiler import StreamsConfig
from headwater.model.compiled import CompiledApplication
from headwater.model.problems import APPLICATION, Problem, ProblemCode, errors
from headwater.model.topology import Sink
from headwater.planner import plan
from headwater_spark.driver.topics.topic_check import (
    UnevenExpansion,
    own_change,
    topic_problems,
    without_expansion,
)
from tests.planner.simulated_cluster import MANUAL, NO_LIMITS, SimulatedCluster, application

UNEVEN = Problem(code=ProblemCode.NOT_COPARTITIONED, summary="orders=4, customers=2")
MISSING = Problem(code=ProblemCode.MISSING_SOURCE_TOPIC, summary="orders does not exist")


def test_uneven_counts_are_tolerated_for_the_timeout_of_one_expansion() -> None:
    uneven = UnevenExpansion.from_config(StreamsConfig(autoscaling=True, autoscaling_timeout_ms=10_000))
    assert not uneven.is_tolerated([], 0)
    assert uneven.is_tolerated([UNEVEN], 100)
    assert uneven.is_tolerated([UNEVEN], 109.9)
    assert not uneven.is_tolerated([UNEVEN], 110)
    assert not uneven.is_tolerated([], 111)
    assert uneven.is_tolerated([UNEVEN, UNEVEN], 200)


@pytest.mark.parametrize(
    ("autoscaling", "errors"), [(False, [UNEVEN]), (True, [MISSING]), (True, [UNEVEN, MISSING])]
)
def test_other_errors_are_not_tolerated(autoscaling: bool, errors: list[Problem]) -> None:  # noqa: FBT001
    uneven = UnevenExpansion.from_config(StreamsConfig(autoscaling=autoscaling))
    assert not uneven.is_tolerated(errors, 0)


def _missing(compiled: CompiledApplication, cluster: SimulatedCluster) -> list[str]:
    made = plan([compiled], cluster.snapshot, cluster.records, NO_LIMITS, caller=APPLICATION)
    is_manual = compiled.application.config == MANUAL
    found = list(topic_problems(compiled, made, is_manual=is_manual))
    assert found[: len(made.problems)] == list(made.problems)
    missing = [each for each in errors(found) if each.code is ProblemCode.MISSING_INTERNAL_TOPICS]
    return sorted(each.topic or "" for each in missing)


_SINK = Sink("orders-out", 4)
_INTERNAL = ["orders-counts-changelog", "orders-step1-repartition"]


@pytest.mark.parametrize("missing", [[], _INTERNAL[:1], _INTERNAL[1:], _INTERNAL])
def test_with_manual_setup_each_missing_internal_topic_is_a_problem(missing: list[str]) -> None:
    manual = application(config=MANUAL, sink=_SINK)
    cluster = SimulatedCluster.set_up(manual)
    for recorded in (True, False):
        if not recorded:
            cluster.records.clear()
        for name in (*missing, "orders-out"):
            cluster.topics.pop(name, None)
        assert _missing(manual, cluster) == missing


def test_with_automatic_setup_the_application_creates_missing_topics() -> None:
    automatic = application(sink=_SINK)
    cluster = SimulatedCluster()
    assert _missing(automatic, cluster) == []
    made = plan([automatic], cluster.snapshot, {}, NO_LIMITS, caller=APPLICATION)
    changes = {action.name: own_change(action) for action in made.actions}
    assert changes.keys() == {*_INTERNAL, "orders-out"}
    for action in made.actions:
        change = changes[action.name]
        assert change is not None
        assert (change.create, change.partitions, change.config) == (True, 4, action.config)


def test_an_application_repairs_settings_of_its_internal_topics_and_adds_no_partitions() -> None:
    grown = application(sources={"orders": 8}, sink=attrs.evolve(_SINK, config={"retention.ms": "5"}))
    cluster = SimulatedCluster.set_up(application(sink=_SINK))
    cluster.configure("orders-counts-changelog", cleanup_policy="delete")
    made = plan([grown], cluster.snapshot, cluster.records, NO_LIMITS, caller=APPLICATION)
    changes = {action.name: own_change(action) for action in made.actions}
    repaired = changes.pop("orders-counts-changelog")
    assert repaired is not None
    assert (repaired.create, repaired.partitions) == (False, None)
    assert repaired.config == {"cleanup.policy": "compact"}
    assert changes == {"orders-step1-repartition": None, "orders-out": None}


@pytest.mark.parametrize(
    ("code", "topic", "target", "is_reported"),
    [
        (ProblemCode.PROCESSOR_COUNT, "orders-counts-changelog", 4, False),
        (ProblemCode.PROCESSOR_COUNT, "orders-counts-changelog", 8, True),
        (ProblemCode.PROCESSOR_COUNT, "orders-counts-changelog", None, True),
        (ProblemCode.PROCESSOR_COUNT, "another-changelog", 4, True),
        (ProblemCode.PROCESSOR_COUNT, None, 4, True),
        (ProblemCode.OVER_PARTITIONED, "orders-counts-changelog", 4, True),
    ],
)
def test_topics_that_an_expansion_of_processors_has_expanded_are_no_problem(
    code: ProblemCode, topic: str | None, target: int | None, *, is_reported: bool
) -> None:
    problem = Problem(code=code, summary="", topic=topic)
    compiled = application()
    assert {name for part in compiled.subtopologies for name in part.changelog_topics} == set(_INTERNAL[:1])
    counts = {"orders-counts-changelog": 4, "another-changelog": 4}
    assert list(without_expansion([problem], compiled, counts, target)) == [problem] * is_reported
