"""Co-partition groups of topics, as `InternalTopologyBuilder` merges them (facts 2.4)."""

from collections.abc import Iterable, Mapping

import attrs

from infra.compiler.broker_counts import status_text
from infra.compiler.java.collections import copy_order, set_hash, string_set_order
from infra.compiler.topic_groups import Naming, Sources
from infra.model.nodes import NodeTopology, RepartitionTopic, SourceNode
from infra.model.problems import Problem, ProblemCode, Severity


def copartition_groups(topology: NodeTopology, sources: Sources) -> tuple[frozenset[str], ...]:
    """Groups of full topic names in the order in which the assignor enforces them.

    A registered group joins the first known group that shares a topic; two groups that are already known are
    never united, so that topics may end up in two groups. Names of nodes that do not exist vanish.
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
    """`InternalTopologyBuilder#validateCopartition`: groups of nothing but explicit counts that differ."""
    topics_of = {node.name: node.topics for node in topology.nodes if isinstance(node, SourceNode)}
    problems: dict[frozenset[str], Problem] = {}
    for members in topology.copartition_groups:
        group = frozenset(topic for node in members for topic in topics_of.get(node, ()))
        if not group <= naming.internal.keys():
            continue
        explicit = {name: naming.internal[name].partitions for name in sorted(group)}
        if None not in explicit.values() and len(set(explicit.values())) > 1:
            problems[group] = _conflict(explicit, naming)
    return tuple(problems.values())


def _conflict(explicit: dict[str, int | None], naming: Naming) -> Problem:
    counts = ", ".join(f"{name}={count}" for name, count in explicit.items())
    first = min(explicit)
    return Problem(
        code=ProblemCode.CONFLICTING_PARTITIONS,
        summary=(
            "Repartition topics that must be co-partitioned have different explicit partition counts: "
            f"{counts}."
        ),
        topic=naming.topic(first),
        expected="equal explicit counts",
        found=counts,
        why="Kafka Streams throws TopologyException when the topology is built.",
        fix="Give the repartition() calls the same `partitions`, or leave it out of all but one.",
        location=naming.internal[first].at,
    )


@attrs.frozen
class EnforcedCounts:
    """Counts after enforcement, with what could not be made equal."""

    counts: Mapping[str, int]
    problems: tuple[Problem, ...] = ()


def enforce(
    groups: Iterable[frozenset[str]],
    counts: Mapping[str, int],
    repartition: Mapping[str, RepartitionTopic],
    *,
    explicit_count: int | None = None,
    by_broker: bool = False,
) -> EnforcedCounts:
    """Set the repartition topics of each group, in order, to one count.

    It is that of the group's external topics, else the fixed one, else the largest.

    Groups with an undecided member are left alone. With `explicit_count` (the streams protocol's known fault)
    groups of repartition topics only take this count instead, whether it is theirs or not. `by_broker`: the
    group coordinator decides (KIP-1071), so the problems say how a broker refuses.
    """
    decided = dict(counts)
    problems: list[Problem] = []
    for group in groups:
        if not all(topic in decided for topic in group):
            continue
        external = {topic: decided[topic] for topic in sorted(group) if topic not in repartition}
        fixed = {
            topic: decided[topic]
            for topic in sorted(group)
            if topic in repartition and repartition[topic].partitions
        }
        if external:
            if len(set(external.values())) > 1:
                problems.append(not_copartitioned(external, by_broker=by_broker))
                continue
            wanted = next(iter(external.values()))
        elif explicit_count is not None:
            wanted = explicit_count
        elif fixed:
            if len(set(fixed.values())) > 1:
                # all of them explicit: the build refuses that already
                if len(fixed) != len(group):
                    problems.append(_explicit_counts_differ(fixed, repartition, by_broker=by_broker))
                continue
            wanted = next(iter(fixed.values()))
        else:
            wanted = max((decided[topic] for topic in group), default=0)
        problems += [
            _explicit_count_mismatch(t, c, wanted, external, repartition, by_broker=by_broker)
            for t, c in fixed.items()
            if c != wanted
        ]
        decided.update((topic, wanted) for topic in group if topic in repartition and topic not in fixed)
    return EnforcedCounts(decided, tuple(problems))


def not_copartitioned(external: Mapping[str, int], *, by_broker: bool = False) -> Problem:
    """Source topics of one group with different counts, as the assignor or the broker refuses them."""
    return Problem(
        code=ProblemCode.NOT_COPARTITIONED,
        summary=f"Source topics that are joined have different partition counts: {listed(external)}.",
        topic=next(iter(external)),
        expected="equal partition counts",
        found=listed(external),
        why=status_text(ProblemCode.NOT_COPARTITIONED)
        if by_broker
        else 'Kafka Streams throws TopologyException ("Topics not co-partitioned") and the application '
        "stops.",
        fix=(
            "Expand the smaller topics to the largest count (keys then move between partitions), or put "
            "repartition() before the join."
        ),
    )


def unchecked(groups: Iterable[frozenset[str]], counts: Mapping[str, int]) -> tuple[Problem, ...]:
    """Groups that the assignor would refuse if it looked: it does not without a repartition topic."""
    problems = []
    for group in groups:
        found = {topic: counts[topic] for topic in sorted(group) if topic in counts}
        if len(set(found.values())) > 1:
            problems.append(
                Problem(
                    code=ProblemCode.UNCHECKED_COPARTITIONING,
                    summary=(
                        f"Joined topics have different partition counts, {listed(found)}, and Kafka "
                        "Streams does not check them."
                    ),
                    topic=next(iter(found)),
                    expected="equal partition counts",
                    found=listed(found),
                    why=(
                        "Kafka Streams checks co-partitioning only if the topology has a repartition topic. "
                        "This one has none: it starts, tasks beyond the smallest count read only one "
                        "side, and joins silently miss records."
                    ),
                    fix=(
                        "Expand the smaller topics to the largest count, or put repartition() before the "
                        "join."
                    ),
                    severity=Severity.WARNING,
                )
            )
    return tuple(problems)


def listed(counts: Mapping[str, int]) -> str:
    """`topic=count, topic=count`."""
    return ", ".join(f"{topic}={count}" for topic, count in counts.items())


def _explicit_counts_differ(
    fixed: Mapping[str, int], repartition: Mapping[str, RepartitionTopic], *, by_broker: bool
) -> Problem:
    first = next(iter(fixed))
    return Problem(
        code=ProblemCode.CONFLICTING_PARTITIONS,
        summary=(
            "Repartition topics that must be co-partitioned have different explicit partition counts: "
            f"{listed(fixed)}."
        ),
        topic=first,
        expected="equal explicit counts",
        found=listed(fixed),
        why=status_text(ProblemCode.CONFLICTING_PARTITIONS)
        if by_broker
        else 'Kafka Streams throws TopologyException ("Following topics do not have the same number of '
        'partitions") and the application stops.',
        fix="Give the repartition() calls the same `partitions`, or leave it out of all but one.",
        location=repartition[first].at,
    )


def _explicit_count_mismatch(
    topic: str,
    count: int,
    wanted: int,
    external: Mapping[str, int],
    repartition: Mapping[str, RepartitionTopic],
    *,
    by_broker: bool,
) -> Problem:
    against = listed(external) or f"{wanted} partitions of the topics it is joined with"
    return Problem(
        code=ProblemCode.CONFLICTING_PARTITIONS,
        summary=(
            f"Repartition topic {topic} has {count} partitions by its explicit count but must be "
            f"co-partitioned with {against}."
        ),
        topic=topic,
        expected=str(wanted),
        found=str(count),
        why=status_text(ProblemCode.CONFLICTING_PARTITIONS)
        if by_broker
        else "Kafka Streams throws TopologyException (the count of the repartition topic does not match) and "
        "the application stops.",
        fix=f"Set `partitions` of the repartition() call to {wanted}, or leave it out.",
        location=repartition[topic].at,
    )
