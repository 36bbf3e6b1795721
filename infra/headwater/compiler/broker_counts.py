"""Partition counts as the group coordinator decides them with `group.protocol=streams` (KIP-1071, facts 4.6).

The broker iterates over the sub-topologies in the order of a `HashMap` of their ids, so counts do not depend
on the application id. It always enforces co-partitioning.
"""

from collections.abc import Iterable, Mapping, Sequence

from headwater.compiler.assignor_counts import TopicGraph
from headwater.compiler.java.collections import string_set_order
from headwater.compiler.messages import scattered_group, unsupported_document
from headwater.compiler.topic_groups import TopicGroup
from headwater.model.nodes import NodeTopology
from headwater.model.problems import Problem, ProblemCode

EQUAL_EXPLICIT_COUNTS = "equal explicit counts throughout the topology"
"""`expected` of the problem of unrelated explicit counts; no other problem has this value."""


def broker_order(groups: Iterable[TopicGroup]) -> tuple[TopicGroup, ...]:
    """Return the groups in the order of a `HashMap` with their ids as strings."""
    by_id = {str(group.id): group for group in groups}
    return tuple(by_id[id_] for id_ in string_set_order(sorted(by_id)))


def count_by_broker(topic_graph: TopicGraph, order: Sequence[TopicGroup]) -> dict[str, int]:
    """Return topic → count of all topics that are read.

    An undecided topic takes the largest count that is known to the *first* sub-topology that writes it
    (`RepartitionTopics` of the group coordinator).
    """
    counts = dict(topic_graph.known)
    peak = {
        group.id: max((counts[source] for source in group.sources if source in counts), default=0)
        for group in order
    }
    pending = [group.id for group in order if topic_graph.writes[group.id]]
    progress = True
    while pending and progress:
        progress, waiting = False, []
        for group in pending:
            if not peak[group]:
                waiting.append(group)
                continue
            for topic in sorted(topic_graph.writes[group]):
                if topic not in counts:
                    progress = True
                    counts[topic] = peak[group]
                    for reader in topic_graph.readers[topic]:
                        peak[reader] = max(peak[reader], peak[group])
        pending = waiting
    return counts


def client_errors(
    topology: NodeTopology, groups: Iterable[TopicGroup], copartitioned: Iterable[frozenset[str]]
) -> tuple[Problem, ...]:
    """Return what the client rejects before it joins the group.

    The client does not support patterns, named topologies and co-partition groups over several
    sub-topologies.
    """
    readers = {topic: group.id for group in groups for topic in group.sources}
    problems = [
        unsupported_document(f"source {node} with a pattern", "Read the topics by name", node)
        for node in (n.name for n in topology.nodes if getattr(n, "pattern", None) is not None)
    ]
    if topology.name is not None:
        problems.append(
            unsupported_document(
                f"the named topology {topology.name}", "Build the topology without a name", None
            )
        )
    problems += [
        scattered_group(group) for group in copartitioned if len({readers.get(t) for t in group}) > 1
    ]
    return tuple(problems)


def explicit_counts_conflict(
    copartitioned: Iterable[frozenset[str]], topic_graph: TopicGraph
) -> tuple[int | None, tuple[Problem, ...]]:
    """Return the explicit count that groups of only repartition topics take, and a problem if counts differ.

    A known bug of the broker: it compares such groups with *all* explicit counts of the topology. None =
    there is no explicit count.
    """
    explicit = {
        topic: topic_graph.known[topic] for topic in sorted(topic_graph.writers) if topic in topic_graph.known
    }
    if not explicit:
        return None, ()
    affected = sorted(min(group) for group in copartitioned if group and group <= topic_graph.writers.keys())
    if affected and len(set(explicit.values())) > 1:
        return None, (_explicit_counts_differ(affected[0], explicit),)
    return next(iter(explicit.values())), ()


def undersized_source_changelogs(
    groups: Iterable[TopicGroup], counts: Mapping[str, int], tasks: Mapping[int, int]
) -> tuple[Problem, ...]:
    """Return a problem for each source topic that is reused as changelog and has too few partitions."""
    return tuple(
        _undersized_topic(topic, counts[topic], tasks[group.id])
        for group in groups
        if group.id in tasks
        for topic, store in sorted(group.changelogs.items())
        if store.changelog_topic is not None and counts.get(topic, tasks[group.id]) != tasks[group.id]
    )


def status_text(problem_code: ProblemCode) -> str:
    """Return the consequence of a problem, with the status in the broker's response."""
    if problem_code is ProblemCode.UNDECIDABLE_PARTITIONS:
        return "The broker rejects the topology (STREAMS_INVALID_TOPOLOGY)."
    status, thrown = {
        ProblemCode.MISSING_SOURCE_TOPIC: ("status 1, MISSING_SOURCE_TOPICS", "MissingSourceTopicException"),
        ProblemCode.NOT_COPARTITIONED: _INCORRECTLY_PARTITIONED,
        ProblemCode.CONFLICTING_PARTITIONS: _INCORRECTLY_PARTITIONED,
    }[problem_code]
    return (
        f"The broker answers with {status}. Since Kafka Streams 4.2 every instance then throws {thrown}; a "
        "4.1 instance only logs the status, reports RUNNING and gets no task."
    )


_INCORRECTLY_PARTITIONED = ("status 2, INCORRECTLY_PARTITIONED_TOPICS", "TopologyException")


def _undersized_topic(topic: str, count: int, tasks: int) -> Problem:
    return Problem(
        code=ProblemCode.CONFLICTING_PARTITIONS,
        summary=(
            f"Source topic {topic} serves as changelog but has fewer partitions than its sub-topology has "
            "tasks."
        ),
        topic=topic,
        expected=f"{tasks} partitions, the largest count among the sub-topology's sources",
        found=f"{count}",
        why="The broker requires one changelog partition for each task, also where a source topic is "
        f"reused as changelog. {status_text(ProblemCode.CONFLICTING_PARTITIONS)}",
        fix="Remove reuse.ktable.source.topics from topology.optimization, give the sources equal counts, "
        "or use `protocol: classic`.",
    )


def _explicit_counts_differ(topic: str, explicit: Mapping[str, int]) -> Problem:
    counts = ", ".join(f"{name}={count}" for name, count in explicit.items())
    return Problem(
        code=ProblemCode.CONFLICTING_PARTITIONS,
        summary=(
            f"The broker rejects the join over {topic}: explicit counts of other repartition topics differ "
            f"({counts})."
        ),
        topic=topic,
        expected=EQUAL_EXPLICIT_COUNTS,
        found=counts,
        why="Brokers up to 4.3.1 check a join of repartition topics against all explicit counts of the "
        f"topology, including unrelated ones. {status_text(ProblemCode.CONFLICTING_PARTITIONS)}",
        fix="Give all repartition() calls the same `partitions`, or use `protocol: classic`.",
    )
