"""PURE. Co-partition groups of topics, as `InternalTopologyBuilder` merges them (facts 2.4)."""

from infra.compiler.java.collections import copy_order, set_hash, string_set_order
from infra.compiler.topic_groups import Naming, Sources
from infra.model.nodes import NodeTopology, SourceNode
from infra.model.problems import Problem, ProblemCode


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
