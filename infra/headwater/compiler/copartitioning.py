"""Co-partition groups as `InternalTopologyBuilder` builds them, and their enforcement (facts 2.4, 4.3)."""

from collections.abc import Iterable, Mapping

import attrs

from headwater.compiler.broker_counts import status_text
from headwater.compiler.java.collections import copy_order, set_hash, string_set_order
from headwater.compiler.topic_groups import Naming, Sources
from headwater.model.nodes import NodeTopology, RepartitionTopic, SourceNode
from headwater.model.problems import Location, Problem, ProblemCode, Severity


def copartition_groups(topology: NodeTopology, sources: Sources) -> tuple[frozenset[str], ...]:
    """Return groups of full topic names in the order in which the assignor enforces them.

    A registered group is added to the first known group that shares a topic. Two known groups are never
    merged, so a topic may be in two groups. Names of nodes that do not exist are dropped.

    Source: `InternalTopologyBuilder#copartitionGroups`.
    """
    known: dict[str, set[str]] = {}
    for members in topology.copartition_groups:
        topics = string_set_order(
            topic for node in string_set_order(sorted(members)) for topic in sources.topics.get(node, ())
        )
        group = next((known[topic] for topic in topics if topic in known), set())
        group.update(topics)
        known.update(dict.fromkeys(topics, group))
    objects = {id(group): group for group in known.values()}
    distinct = dict.fromkeys(map(frozenset, objects.values()))
    return copy_order(distinct, set_hash, size=len(known))


def check_explicit_counts(topology: NodeTopology, naming: Naming) -> tuple[Problem, ...]:
    """Return a problem for each group whose counts are all explicit and differ.

    Source: `InternalTopologyBuilder#validateCopartition`.
    """
    topics_of = {node.name: node.topics for node in topology.nodes if isinstance(node, SourceNode)}
    problems: dict[frozenset[str], Problem] = {}
    for members in topology.copartition_groups:
        group = frozenset(topic for node in members for topic in topics_of.get(node, ()))
        if not group <= naming.internal.keys():
            continue
        explicit = {name: naming.internal[name].partitions for name in sorted(group)}
        if None not in explicit.values() and len(set(explicit.values())) > 1:
            problems[group] = _conflicting_counts(explicit, naming)
    return tuple(problems.values())


@attrs.frozen
class EnforcedCounts:
    """Topic → count after enforcement, and problems for groups whose counts cannot be equal."""

    counts: Mapping[str, int]
    problems: tuple[Problem, ...] = ()


def enforce_counts(
    groups: Iterable[frozenset[str]],
    counts: Mapping[str, int],
    repartition: Mapping[str, RepartitionTopic],
    *,
    explicit_count: int | None = None,
    by_broker: bool = False,
) -> EnforcedCounts:
    """Return the counts after all repartition topics of each group, in order, are set to one count.

    The group's external topics have the count, else it is the explicit count, else the largest. Groups with
    an undecided member do not change. With `explicit_count` (a known bug of the streams protocol), groups of
    only repartition topics take that count, even if it is set on another topic. `by_broker`: the group
    coordinator decides (KIP-1071), so problems give the broker's response.

    Source: `CopartitionedTopicsEnforcer#enforce`.
    """
    decided = dict(counts)
    problems: list[Problem] = []
    for group in groups:
        if not all(topic in decided for topic in group):
            continue
        external = {topic: decided[topic] for topic in sorted(group) if topic not in repartition}
        explicit = {
            topic: decided[topic]
            for topic in sorted(group)
            if topic in repartition and repartition[topic].partitions
        }
        if external:
            if len(set(external.values())) > 1:
                problems.append(not_copartitioned(external, by_broker=by_broker))
                continue
            required = next(iter(external.values()))
        elif explicit_count is not None:
            required = explicit_count
        elif explicit:
            if len(set(explicit.values())) > 1:
                # if all are explicit, building the topology fails already
                if len(explicit) != len(group):
                    problems.append(_explicit_counts_differ(explicit, repartition, by_broker=by_broker))
                continue
            required = next(iter(explicit.values()))
        else:
            required = max((decided[topic] for topic in group), default=0)
        problems += [
            _explicit_count_mismatch(t, c, required, external, repartition, by_broker=by_broker)
            for t, c in explicit.items()
            if c != required
        ]
        decided.update((topic, required) for topic in group if topic in repartition and topic not in explicit)
    return EnforcedCounts(decided, tuple(problems))


def not_copartitioned(external: Mapping[str, int], *, by_broker: bool = False) -> Problem:
    """Return the problem of source topics in one group with different counts."""
    return Problem(
        code=ProblemCode.NOT_COPARTITIONED,
        summary="Source topics that must be co-partitioned have different partition counts: "
        f"{list_counts(external)}.",
        topic=next(iter(external)),
        expected="equal partition counts",
        found=list_counts(external),
        why=status_text(ProblemCode.NOT_COPARTITIONED)
        if by_broker
        else 'Kafka Streams throws TopologyException ("Topics not co-partitioned") and the application '
        "stops.",
        fix=_EQUAL_COUNTS,
    )


_EQUAL_COUNTS = (
    "Expand the smaller topics to the largest count (keys then move between partitions), or put "
    "repartition() before the join or cogroup."
)


def find_unchecked(groups: Iterable[frozenset[str]], counts: Mapping[str, int]) -> tuple[Problem, ...]:
    """Return warnings for groups with different counts in a topology without repartition topics.

    The assignor enforces co-partitioning only if there is a repartition topic.
    """
    problems = []
    for group in groups:
        found = {topic: counts[topic] for topic in sorted(group) if topic in counts}
        if len(set(found.values())) > 1:
            problems.append(
                Problem(
                    code=ProblemCode.UNCHECKED_COPARTITIONING,
                    summary="Topics that must be co-partitioned have different partition counts, "
                    f"{list_counts(found)}, and Kafka Streams does not check them.",
                    topic=next(iter(found)),
                    expected="equal partition counts",
                    found=list_counts(found),
                    why="Kafka Streams checks co-partitioning only if the topology has a repartition topic. "
                    "This one has none: it starts, and tasks beyond the smallest count do not read all "
                    "topics. Joins silently miss records, and cogroups aggregate a key in two tasks.",
                    fix=_EQUAL_COUNTS,
                    severity=Severity.WARNING,
                )
            )
    return tuple(problems)


def list_counts(counts: Mapping[str, int]) -> str:
    """Return `topic=count, topic=count`."""
    return ", ".join(f"{topic}={count}" for topic, count in counts.items())


def _explicit_counts_differ(
    explicit: Mapping[str, int], repartition: Mapping[str, RepartitionTopic], *, by_broker: bool
) -> Problem:
    first = next(iter(explicit))
    why = (
        status_text(ProblemCode.CONFLICTING_PARTITIONS)
        if by_broker
        else 'Kafka Streams throws TopologyException ("Following topics do not have the same number of '
        'partitions") and the application stops.'
    )
    return _different_counts(list_counts(explicit), first, why, repartition[first].at)


def _different_counts(counts: str, topic: str, why: str, at: Location | None) -> Problem:
    return Problem(
        code=ProblemCode.CONFLICTING_PARTITIONS,
        summary="Repartition topics that must be co-partitioned have different explicit partition counts: "
        f"{counts}.",
        topic=topic,
        expected="equal explicit counts",
        found=counts,
        why=why,
        fix="Give the repartition() calls the same `partitions`, or leave it out of all but one.",
        location=at,
    )


def _explicit_count_mismatch(
    topic: str,
    count: int,
    required: int,
    external: Mapping[str, int],
    repartition: Mapping[str, RepartitionTopic],
    *,
    by_broker: bool,
) -> Problem:
    against = list_counts(external) or f"{required} partitions of the topics it is joined with"
    return Problem(
        code=ProblemCode.CONFLICTING_PARTITIONS,
        summary=f"Repartition topic {topic} has {count} partitions by its explicit count but must be "
        f"co-partitioned with {against}.",
        topic=topic,
        expected=str(required),
        found=str(count),
        why=status_text(ProblemCode.CONFLICTING_PARTITIONS)
        if by_broker
        else "Kafka Streams throws TopologyException (the count of the repartition topic does not match) and "
        "the application stops.",
        fix=f"Set `partitions` of the repartition() call to {required}, or leave it out.",
        location=repartition[topic].at,
    )


def _conflicting_counts(explicit: dict[str, int | None], naming: Naming) -> Problem:
    counts = ", ".join(f"{name}={count}" for name, count in explicit.items())
    first = min(explicit)
    why = "Kafka Streams throws TopologyException when the topology is built."
    return _different_counts(counts, naming.topic(first), why, naming.internal[first].at)
