"""What Kafka Streams checks once the topology is written, and what it should."""

from collections.abc import Iterator

from infra.compiler.dsl.builder import Builder
from infra.compiler.dsl.declarations import WritesRepartition
from infra.compiler.dsl.graph import GraphNode
from infra.compiler.dsl.optimise.self_joins import reachable
from infra.compiler.dsl.refusals import lint, refused
from infra.compiler.dsl.topology import TopologyUnderConstruction
from infra.model.problems import Problem, ProblemCode, Severity

_SHOWN = 10


def check(builder: Builder, topology: TopologyUnderConstruction) -> Iterator[Problem]:
    yield from _unnamed_resources(builder, topology)
    yield from _lost_members(builder, topology)
    yield from _dropped_null_keys(builder)


def _unnamed_resources(builder: Builder, topology: TopologyUnderConstruction) -> Iterator[Problem]:
    unnamed = builder.unnamed
    lists = (
        ("changelog topics", unnamed.changelogs),
        ("state stores", unnamed.stores),
        ("repartition topics", unnamed.repartitions),
    )
    found = "; ".join(f"{what}: {_shortened(names)}" for what, names in lists if names)
    if builder.config.explicit_naming and unnamed:
        yield refused(
            "Internal resources have no names of their own, and the application demands them.",
            code=ProblemCode.UNNAMED_RESOURCES,
            expected="a name for each (ensure.explicit.internal.resource.naming=true)",
            found=found,
            fix="Name the operators and stores (`name`, `materialized`, `storeName`), or set "
            "ensure.explicit.internal.resource.naming to false.",
        )
        return
    generated = generated_names(builder, topology)
    if generated:
        yield lint(
            ProblemCode.RENUMBERING_HAZARD,
            f"{len(generated)} names of internal topics and stores carry a generated number.",
            expected="names given by the user",
            found=_shortened(sorted(generated)),
            why="The numbers count the calls before: a call added or removed shifts them. Kafka Streams then "
            "makes new topics, and the state and the records in the old ones are left behind.",
            fix="Name operators and stores (`name`, `materialized`, `storeName`) while there is no state.",
        )


def generated_names(builder: Builder, topology: TopologyUnderConstruction) -> frozenset[str]:
    """Stores with a changelog and internal topics whose names carry an index."""
    stores = (store.name for store in topology.stores() if store.logged)
    topics = (topic.name for topic in topology.repartition_topics)
    return frozenset(name for name in (*stores, *topics) if builder.names.carries_index(name))


def _lost_members(builder: Builder, topology: TopologyUnderConstruction) -> Iterator[Problem]:
    """Names in groups that are no sources vanish; the topic really read is not held to the others then."""
    for group, at in zip(builder.copartition_groups, builder.group_origins, strict=True):
        for name in sorted(group):
            lost = builder.lost_sources.get(name)
            if lost is None or topology.is_source(name):
                continue
            instead = {builder.renamed_sources.get(each, each) for each in lost.instead}
            if instead <= group:
                continue
            kept = sorted({topic for source in group for topic in topology.source_topics(source)})
            missing = sorted(
                {topic for source in instead for topic in topology.source_topics(source)} - set(kept)
            )
            if not missing:
                continue
            yield lint(
                ProblemCode.COPARTITION_GROUP_LOST_MEMBER,
                "A join does not hold " + ", ".join(missing) + " to the partition count of its other side.",
                topic=missing[0],
                node=name,
                expected="co-partitioned: " + ", ".join(sorted({*kept, *missing})),
                found="co-partitioned: " + (", ".join(kept) or "nothing"),
                why=f"{lost.reason}, so Kafka Streams drops it from the group in silence. With unequal "
                "counts records that belong together land in different tasks and are not joined.",
                at=at,
                fix="Keep the counts equal yourself, or `repartition` with an explicit count before it.",
            )


def _dropped_null_keys(builder: Builder) -> Iterator[Problem]:
    """An explicit repartition filters null keys unless a join that takes them lies below (facts 2.2)."""
    relaxed = _with_relaxed_join_below(builder.graph.root)
    for node in reachable(builder.graph.root):
        declares = node.declares
        if isinstance(declares, WritesRepartition) and declares.explicit and node not in relaxed:
            yield lint(
                ProblemCode.NULL_KEYS_DROPPED,
                f"`repartition` drops records without a key ({declares.topic}).",
                topic=declares.topic,
                node=declares.filter,
                expected="records with a key",
                found="a filter before the topic",
                why="Kafka Streams keeps null keys only where a left or outer join of streams, or a left "
                "join with a table, lies below.",
                at=node.at,
                fix="Give such records a key before, if they matter.",
                severity=Severity.INFO,
            )


def _with_relaxed_join_below(root: GraphNode) -> set[GraphNode]:
    """Nodes with a join below that takes null keys."""
    above: set[GraphNode] = set()
    pending = [parent for node in reachable(root) if node.relaxes_null_keys for parent in node.parents]
    while pending:
        node = pending.pop()
        if node not in above:
            above.add(node)
            pending.extend(node.parents)
    return above


def _shortened(names: list[str]) -> str:
    rest = len(names) - _SHOWN
    return ", ".join(names[:_SHOWN]) + (f" and {rest} more" if rest > 0 else "")
