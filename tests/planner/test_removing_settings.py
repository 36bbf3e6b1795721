"""Settings of the stack's own topics with which Kafka removes records that it keeps now."""

from collections.abc import Mapping

import attrs
import pytest

from headwater.model.compiled import CompiledApplication
from headwater.model.problems import Problem, ProblemCode, Severity
from headwater.model.topology import Sink
from headwater.planner import ActionKind
from tests.planner.simulated_cluster import MANUAL, SimulatedCluster, application

CHANGELOG = "orders-counts-changelog"
OUT = "orders-out"


def with_sink(config: Mapping[str, str]) -> Sink:
    return Sink(OUT, partitions=4, config=dict(config))


def removing(before: Mapping[str, str], after: Mapping[str, str]) -> tuple[Problem, ...]:
    cluster = SimulatedCluster.set_up(application(sink=with_sink(before)))
    planned = cluster.plan(application(sink=with_sink(after)))
    assert planned.is_applicable
    return tuple(each for each in planned.problems if each.code is ProblemCode.SETTING_REMOVES_DATA)


@pytest.mark.parametrize(
    ("before", "after"),
    [
        ({"retention.ms": "604800000"}, {"retention.ms": "1"}),
        ({"retention.ms": "-1"}, {"retention.ms": "604800000"}),
        ({"retention.bytes": "-1"}, {"retention.bytes": "1000000"}),
        ({"retention.bytes": "1000000"}, {"retention.bytes": "1000"}),
        ({"cleanup.policy": "delete"}, {"cleanup.policy": "compact"}),
        ({"cleanup.policy": "delete"}, {"cleanup.policy": "compact,delete"}),
        ({"cleanup.policy": "compact"}, {"cleanup.policy": "delete"}),
        ({"cleanup.policy": "compact"}, {"cleanup.policy": "compact,delete"}),
        (
            {"cleanup.policy": "compact", "min.compaction.lag.ms": "1000"},
            {"cleanup.policy": "compact", "min.compaction.lag.ms": "0"},
        ),
        ({}, {"retention.ms": "1000"}),
    ],
)
def test_a_sink_that_will_keep_less_is_a_warning(before: Mapping[str, str], after: Mapping[str, str]) -> None:
    (problem,) = removing(before, after)
    assert (problem.topic, problem.severity) == (OUT, Severity.WARNING)
    assert all(key in (problem.expected or "") for key in after.keys() - before.keys())


@pytest.mark.parametrize(
    ("before", "after"),
    [
        ({"retention.ms": "1000"}, {"retention.ms": "604800000"}),
        ({"retention.ms": "604800000"}, {"retention.ms": "-1"}),
        ({"cleanup.policy": "compact,delete", "retention.ms": "1000"}, {"cleanup.policy": "compact"}),
        ({"min.insync.replicas": "2"}, {"min.insync.replicas": "1"}),
        ({"cleanup.policy": "delete"}, {"cleanup.policy": "delete", "min.compaction.lag.ms": "0"}),
        ({"retention.ms": "1000"}, {"retention.ms": "1000"}),
    ],
)
def test_a_sink_that_keeps_as_much_is_no_problem(before: Mapping[str, str], after: Mapping[str, str]) -> None:
    assert removing(before, after) == ()


def test_a_repair_of_an_internal_topic_is_no_removal() -> None:
    """Another rule reports it: the application needs the setting."""
    cluster = SimulatedCluster.set_up(application())
    cluster.configure(CHANGELOG, cleanup_policy="delete")
    planned = cluster.plan(application())
    assert [each.kind for each in planned.actions if each.name == CHANGELOG] == [ActionKind.RECONFIGURE]
    assert {each.code for each in planned.problems} == {ProblemCode.MISCONFIGURED_INTERNAL_TOPIC}


def test_a_document_that_shortens_the_retention_of_a_changelog_is_a_warning() -> None:
    def windowed(retention: str) -> CompiledApplication:
        compiled = application()
        topics = tuple(
            attrs.evolve(topic, config={"cleanup.policy": "compact,delete", "retention.ms": retention})
            if topic.name == CHANGELOG
            else topic
            for topic in compiled.internal_topics
        )
        return attrs.evolve(compiled, internal_topics=topics)

    cluster = SimulatedCluster.set_up(windowed("90000000"))
    planned = cluster.plan(windowed("60000"))
    assert {each.code for each in planned.problems} == {ProblemCode.SETTING_REMOVES_DATA}


def test_nothing_is_changed_with_manual_setup() -> None:
    cluster = SimulatedCluster.set_up(application(config=MANUAL, sink=with_sink({"retention.ms": "1000000"})))
    planned = cluster.plan(application(config=MANUAL, sink=with_sink({"retention.ms": "1"})))
    assert ProblemCode.SETTING_REMOVES_DATA not in {each.code for each in planned.problems}
    assert not planned.has_changes
    assert [action.changes for action in planned.actions if action.changes] == []
