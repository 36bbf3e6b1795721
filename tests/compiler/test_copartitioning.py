"""Counting and co-partitioning in small graphs of topics, value by value."""

from collections.abc import Mapping

import attrs
import pytest

from headwater.compiler.assignor_counts import TopicGraph, count_by_assignor, count_in_dependency_order
from headwater.compiler.broker_counts import (
    count_by_broker,
    explicit_counts_conflict,
    status_text,
    undersized_source_changelogs,
)
from headwater.compiler.copartitioning import EnforcedCounts, enforce_counts, not_copartitioned
from headwater.compiler.topic_groups import NodeGroup, TopicGroup
from headwater.model.nodes import ChangelogKind, RepartitionTopic, StateStore
from headwater.model.problems import Location, Problem, ProblemCode

AT = Location("app.yaml", 3)
STREAMS_STATUS = status_text(ProblemCode.CONFLICTING_PARTITIONS)
TOPICS = {
    name: RepartitionTopic(name, partitions=partitions, at=AT)
    for name, partitions in {"r1": None, "r2": None, "x3": 3, "x4": 4}.items()
}


def group(*topics: str) -> frozenset[str]:
    return frozenset(topics)


def mismatch(topic: str, count: int, required: int, against: str, why: str) -> Problem:
    return Problem(
        code=ProblemCode.CONFLICTING_PARTITIONS,
        summary=f"Repartition topic {topic} has {count} partitions by its explicit count but must be "
        f"co-partitioned with {against}.",
        topic=topic,
        expected=str(required),
        found=str(count),
        why=why,
        fix=f"Set `partitions` of the repartition() call to {required}, or leave it out.",
        location=AT,
    )


TOPOLOGY_EXCEPTION = (
    "Kafka Streams throws TopologyException (the count of the repartition topic does not match) and the "
    "application stops."
)
DIFFER = Problem(
    code=ProblemCode.CONFLICTING_PARTITIONS,
    summary="Repartition topics that must be co-partitioned have different explicit partition counts: "
    "x3=3, x4=4.",
    topic="x3",
    expected="equal explicit counts",
    found="x3=3, x4=4",
    why='Kafka Streams throws TopologyException ("Following topics do not have the same number of '
    'partitions") and the application stops.',
    fix="Give the repartition() calls the same `partitions`, or leave it out of all but one.",
    location=AT,
)


@pytest.mark.parametrize(
    ("groups", "counts", "expected", "problems"),
    [
        ([group("a", "r1", "r2")], {"a": 5, "r1": 1, "r2": 9}, {"r1": 5, "r2": 5}, ()),
        ([group("r1", "r2")], {"r1": 1, "r2": 9}, {"r1": 9, "r2": 9}, ()),
        ([group("r1", "x3")], {"r1": 9, "x3": 3}, {"r1": 3}, ()),
        ([group("r1", "undecided"), group("r1", "a")], {"r1": 1, "a": 3}, {"r1": 3}, ()),
        ([group(), group("r1", "a")], {"r1": 1, "a": 3}, {"r1": 3}, ()),
        (
            [group("a", "b", "r2"), group("a", "x4", "r1")],
            {"a": 5, "b": 2, "r1": 1, "r2": 1, "x4": 4},
            {"r1": 5},
            (not_copartitioned({"a": 5, "b": 2}), mismatch("x4", 4, 5, "a=5", TOPOLOGY_EXCEPTION)),
        ),
        (
            [group("x3", "x4", "r1"), group("r2", "a")],
            {"a": 5, "r1": 1, "r2": 1, "x3": 3, "x4": 4},
            {"r2": 5},
            (DIFFER,),
        ),
        ([group("x3", "x4"), group("r2", "a")], {"a": 5, "r2": 1, "x3": 3, "x4": 4}, {"r2": 5}, ()),
    ],
)
def test_the_groups_of_the_assignor(
    groups: list[frozenset[str]],
    counts: Mapping[str, int],
    expected: Mapping[str, int],
    problems: tuple[Problem, ...],
) -> None:
    """`expected` are the counts that change. Building the topology fails for groups that are all explicit."""
    assert enforce_counts(groups, counts, TOPICS) == EnforcedCounts({**counts, **expected}, problems)


def test_the_groups_of_the_broker() -> None:
    counts = {"a": 5, "b": 2, "r1": 1, "r2": 9, "x3": 3, "x4": 4}
    groups = [group("a", "b"), group("x4", "r1"), group("x3", "a"), group("r2")]
    enforced = enforce_counts(groups, counts, TOPICS, explicit_count=3, by_broker=True)
    assert enforced.counts == {**counts, "r1": 3, "r2": 3}
    assert enforced.problems == (
        not_copartitioned({"a": 5, "b": 2}, by_broker=True),
        mismatch("x4", 4, 3, "3 partitions of the topics it is joined with", STREAMS_STATUS),
        mismatch("x3", 3, 5, "a=5", STREAMS_STATUS),
    )
    differing = enforce_counts([group("x3", "x4", "r1")], counts, TOPICS, by_broker=True)
    assert differing.problems == (attrs.evolve(DIFFER, why=STREAMS_STATUS),)


def subtopology(
    id_: int, reads: str, writes: str = "", changelogs: Mapping[str, StateStore] | None = None
) -> TopicGroup:
    """Return a sub-topology; names that begin with r or x are repartition topics."""
    sources = tuple(reads.split())
    return TopicGroup(
        id=id_,
        nodes=NodeGroup(id_, ()),
        sources=sources,
        sinks=tuple(writes.split()),
        repartition={
            name: TOPICS.get(name, RepartitionTopic(name)) for name in sources if name.startswith(("r", "x"))
        },
        changelogs=changelogs or {},
        stores=(),
    )


def test_the_broker_repeats_until_nothing_more_is_decided() -> None:
    """It comes to the reader of r1 before it has counted r1, and r9 waits for itself forever."""
    order = [
        subtopology(1, "r1", "r2"),
        subtopology(3, "r9", "r9"),
        subtopology(0, "a", "r1"),
        subtopology(2, "r2"),
    ]
    assert count_by_broker(TopicGraph.from_groups(order, {"a": 3}), order) == {"a": 3, "r1": 3, "r2": 3}


def test_the_broker_takes_the_count_of_the_first_writer() -> None:
    groups = [subtopology(0, "a", "r1"), subtopology(1, "b c", "r1"), subtopology(2, "r1")]
    graph = TopicGraph.from_groups(groups, {"a": 3, "b": 5, "c": 2})
    assert count_by_broker(graph, groups)["r1"] == 3
    assert count_by_broker(graph, groups[::-1])["r1"] == 5
    assert count_in_dependency_order(graph)["r1"] == 5


def test_a_topic_waits_until_all_inputs_are_counted() -> None:
    groups = [
        subtopology(0, "a r2", "r1"),
        subtopology(1, "a b", "r2"),
        subtopology(2, "r1"),
        subtopology(3, "gone", "r3"),
        subtopology(4, "r3"),
    ]
    graph = TopicGraph.from_groups(groups, {"a": 5, "b": 2})
    assert graph.missing == {"gone"}
    assert count_in_dependency_order(graph) == {"a": 5, "b": 2, "r2": 5, "r1": 5}


def test_the_assignor_decides_a_topic_once_in_the_pass_that_comes_to_it() -> None:
    """In the first pass r1 has no input yet, and r3 only the smaller one."""
    producer, second = subtopology(0, "a", "r2"), subtopology(1, "r2", "r1")
    third, last = subtopology(2, "c r1", "r3"), subtopology(3, "r3")
    graph = TopicGraph.from_groups([producer, second, third, last], {"a": 5, "c": 2})
    found = count_by_assignor(graph, [producer, third, second, last])
    assert found == {"a": 5, "c": 2, "r1": 5, "r2": 5, "r3": 2}
    assert count_by_assignor(graph, [producer, second, third, last])["r3"] == 5
    assert count_in_dependency_order(graph)["r3"] == 5


def test_the_assignor_keeps_the_count_from_the_first_writer_that_has_one() -> None:
    groups = [
        subtopology(0, "r3"),
        subtopology(1, "r2", "r1"),
        subtopology(2, "r1", "r3"),
        subtopology(3, "a", "r2"),
        subtopology(4, "c", "r3"),
    ]
    graph = TopicGraph.from_groups(groups, {"a": 5, "c": 2})
    assert count_by_assignor(graph, groups) == {"a": 5, "c": 2, "r1": 5, "r2": 5, "r3": 2}


def test_the_assignor_uses_what_it_has_decided_earlier_in_the_same_pass() -> None:
    producer, reader, last = subtopology(0, "a", "r1"), subtopology(1, "c r1", "r2"), subtopology(2, "r2")
    graph = TopicGraph.from_groups([producer, reader, last], {"a": 5, "c": 2})
    assert count_by_assignor(graph, [producer, reader, last])["r2"] == 5
    assert count_by_assignor(graph, [last, producer, reader])["r2"] == 2


def test_explicit_counts_conflict_only_with_groups_of_repartition_topics() -> None:
    groups = [subtopology(0, "a", "x3 x4 r1"), subtopology(1, "x3 x4 r1")]
    graph = TopicGraph.from_groups(groups, {"a": 5})
    assert explicit_counts_conflict([group("a", "r1"), group()], graph) == (3, ())
    for copartitioned in (group("r1"), group("x3", "x4", "r1")):
        count, [problem] = explicit_counts_conflict([copartitioned], graph)
        assert count is None
        assert (problem.topic, problem.found) == (min(copartitioned), "x3=3, x4=4")
    without = TopicGraph.from_groups([subtopology(0, "a", "r1"), subtopology(1, "r1")], {"a": 5})
    assert explicit_counts_conflict([group("r1")], without) == (None, ())


def test_a_source_that_serves_as_changelog_has_one_partition_for_each_task() -> None:
    reused = StateStore("s", ChangelogKind.KEY_VALUE, changelog_topic="a")
    own = StateStore("t", ChangelogKind.KEY_VALUE)
    groups = [subtopology(0, "a b", changelogs={"a": reused, "t-changelog": own})]
    [problem] = undersized_source_changelogs(groups, {"a": 3, "b": 5}, {0: 5})
    assert (problem.topic, problem.found) == ("a", "3")
    assert not undersized_source_changelogs(groups, {"a": 5, "b": 5}, {0: 5})
    assert not undersized_source_changelogs(groups, {"b": 5}, {0: 5})
    assert not undersized_source_changelogs(groups, {"a": 3, "b": 5}, {})


def test_the_broker_rejects_a_topology_that_it_cannot_count() -> None:
    assert status_text(ProblemCode.UNDECIDABLE_PARTITIONS) == (
        "The broker rejects the topology (STREAMS_INVALID_TOPOLOGY)."
    )
