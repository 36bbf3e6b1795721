"""Partition counts by the group coordinator (KIP-1071, facts 4.6): `group.protocol=streams`.

The broker goes through the sub-topologies in the order of a Java hash map of their ids, so counts do not
depend on the application id; co-partitioning is always enforced.
"""

from collections.abc import Iterable, Mapping, Sequence

from infra.compiler.assignor_counts import TopicGraph
from infra.compiler.java.collections import string_set_order
from infra.compiler.topic_groups import TopicGroup
from infra.model.nodes import NodeTopology
from infra.model.problems import Problem, ProblemCode


def broker_order(groups: Iterable[TopicGroup]) -> tuple[TopicGroup, ...]:
    """The order of the ids as strings in a hash map."""
    by_id = {str(group.id): group for group in groups}
    return tuple(by_id[id_] for id_ in string_set_order(sorted(by_id)))


def count_by_broker(topic_graph: TopicGraph, order: Sequence[TopicGroup]) -> dict[str, int]:
    """Counts of all topics read: an undecided one takes the largest count known to its *first* writer."""
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
                    for reader in topic_graph.readers.get(topic, ()):
                        peak[reader] = max(peak[reader], peak[group])
        pending = waiting
    return counts


def client_errors(
    topology: NodeTopology, groups: Iterable[TopicGroup], copartitioned: Iterable[frozenset[str]]
) -> tuple[Problem, ...]:
    """What the client refuses before it joins: patterns, named topologies, scattered co-partition groups."""
    readers = {topic: group.id for group in groups for topic in group.sources}
    problems = [
        _unsupported(f"source {node} with a pattern", "Read the topics by name", node)
        for node in (n.name for n in topology.nodes if getattr(n, "pattern", None) is not None)
    ]
    if topology.name is not None:
        problems.append(
            _unsupported(f"the named topology {topology.name}", "Build the topology without a name", None)
        )
    problems += [_scattered(group) for group in copartitioned if len({readers.get(t) for t in group}) > 1]
    return tuple(problems)


def explicit_counts_conflict(
    copartitioned: Iterable[frozenset[str]], topic_graph: TopicGraph
) -> tuple[int | None, tuple[Problem, ...]]:
    """The broker's known fault: it holds a group of repartition topics only against *all* explicit counts.

    Returns the count that such groups take (None: nothing is explicit) and the refusal if the explicit counts
    differ.
    """
    fixed = {
        topic: topic_graph.known[topic] for topic in sorted(topic_graph.writers) if topic in topic_graph.known
    }
    if not fixed:
        return None, ()
    affected = sorted(min(group) for group in copartitioned if group and group <= topic_graph.writers.keys())
    if affected and len(set(fixed.values())) > 1:
        return None, (_explicit_counts_differ(affected[0], fixed),)
    return next(iter(fixed.values())), ()


def undersized_source_changelogs(
    groups: Iterable[TopicGroup], counts: Mapping[str, int], tasks: Mapping[int, int]
) -> tuple[Problem, ...]:
    """Source topics that serve as changelog (`reuse.ktable.source.topics`), too small for its tasks."""
    return tuple(
        _undersized(topic, counts[topic], tasks[group.id])
        for group in groups
        if group.id in tasks
        for topic, store in sorted(group.changelogs.items())
        if store.changelog_topic is not None and counts.get(topic, tasks[group.id]) != tasks[group.id]
    )


def status_text(problem_code: ProblemCode) -> str:
    """What happens to the application in 4.1, by the status that the broker answers with."""
    status = {
        ProblemCode.MISSING_SOURCE_TOPIC: "status 1, MISSING_SOURCE_TOPICS",
        ProblemCode.NOT_COPARTITIONED: "status 2, INCORRECTLY_PARTITIONED_TOPICS",
        ProblemCode.CONFLICTING_PARTITIONS: "status 2, INCORRECTLY_PARTITIONED_TOPICS",
        ProblemCode.UNDECIDABLE_PARTITIONS: "STREAMS_INVALID_TOPOLOGY",
    }[problem_code]
    if problem_code is ProblemCode.UNDECIDABLE_PARTITIONS:
        return f"The broker rejects the topology ({status})."
    return f"The broker answers with {status}; a 4.1 client only logs that, reports RUNNING and gets no task."


def _unsupported(what: str, remedy: str, node: str | None) -> Problem:
    return Problem(
        code=ProblemCode.INVALID_TOPOLOGY,
        summary=f"The streams protocol does not support {what}.",
        node=node,
        expected="sources with topic names in an unnamed topology",
        found=what,
        why="Kafka Streams throws UnsupportedOperationException when the application is constructed.",
        fix=f"{remedy}, or use `protocol: classic`.",
    )


def _scattered(group: frozenset[str]) -> Problem:
    topics = ", ".join(sorted(group))
    return Problem(
        code=ProblemCode.INVALID_TOPOLOGY,
        summary=f"The topics {topics} must be co-partitioned but are read by different sub-topologies.",
        topic=min(group),
        expected="a co-partition group within one sub-topology",
        found=topics,
        why=(
            'Kafka Streams throws IllegalStateException ("Not all copartition groups were converted to '
            'broker topology") '
            "when the application is constructed; cogroup() over repartitioned inputs does this."
        ),
        fix="Group the inputs without a key change, or use `protocol: classic`.",
    )


def _undersized(topic: str, count: int, tasks: int) -> Problem:
    return Problem(
        code=ProblemCode.CONFLICTING_PARTITIONS,
        summary=(
            f"Source topic {topic} serves as changelog but has fewer partitions than its sub-topology has "
            "tasks."
        ),
        topic=topic,
        expected=f"{tasks} partitions, the largest count among the sub-topology's sources",
        found=f"{count}",
        why=(
            "The broker requires one changelog partition for each task, also where a source topic is "
            "reused as changelog. {status_text(ProblemCode.CONFLICTING_PARTITIONS)}"
        ),
        fix="Remove reuse.ktable.source.topics from topology.optimization, give the sources equal counts, "
        "or use `protocol: classic`.",
    )


def _explicit_counts_differ(topic: str, fixed: Mapping[str, int]) -> Problem:
    counts = ", ".join(f"{name}={count}" for name, count in fixed.items())
    return Problem(
        code=ProblemCode.CONFLICTING_PARTITIONS,
        summary=(
            f"The broker rejects the join over {topic}: explicit counts of other repartition topics differ "
            f"({counts})."
        ),
        topic=topic,
        expected="equal explicit counts throughout the topology",
        found=counts,
        why=(
            "Brokers up to 4.3.1 check a join of repartition topics against all explicit counts of the "
            "topology, including unrelated ones. {status_text(ProblemCode.CONFLICTING_PARTITIONS)}"
        ),
        fix="Give all repartition() calls the same `partitions`, or use `protocol: classic`.",
    )
