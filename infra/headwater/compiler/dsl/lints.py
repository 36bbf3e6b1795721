"""Warnings of what Kafka Streams accepts silently, and the error of unnamed resources."""

from collections.abc import Callable, Iterable, Iterator, Sequence

from headwater.compiler.dsl.builder import Builder, NonSource
from headwater.compiler.dsl.declarations import RepartitionDeclaration
from headwater.compiler.dsl.graph import reachable_nodes
from headwater.compiler.dsl.messages import lint_problem, topology_error
from headwater.compiler.dsl.topology import TopologyUnderConstruction
from headwater.model.nodes import SourceNode
from headwater.model.problems import Location, Problem, ProblemCode, Severity, first_names

_MOST_NAMES = 10


def _unnamed_resources(builder: Builder, topology: TopologyUnderConstruction) -> Iterator[Problem]:
    """Return an error if `ensure.explicit.internal.resource.naming` is set, else a warning (facts 1.8)."""
    unnamed = builder.unnamed
    lists = (
        ("changelog topics", unnamed.changelogs),
        ("state stores", unnamed.stores),
        ("repartition topics", unnamed.repartitions),
    )
    found = "; ".join(f"{what}: {first_names(names, _MOST_NAMES)}" for what, names in lists if names)
    if builder.config.explicit_naming and unnamed:
        yield topology_error(
            "Internal topics or stores have generated names, but the application requires explicit ones.",
            code=ProblemCode.UNNAMED_RESOURCES,
            expected="a name for each (ensure.explicit.internal.resource.naming=true)",
            found=found,
            fix="Name the operators and stores (`name`, `materialized`, `storeName`), or set "
            "ensure.explicit.internal.resource.naming to false.",
        )
        return
    generated = generated_names(builder, topology)
    if generated:
        yield lint_problem(
            ProblemCode.RENUMBERING_HAZARD,
            f"Names of internal topics and stores contain generated numbers ({len(generated)}).",
            expected="names given by the user",
            found=first_names(sorted(generated), _MOST_NAMES),
            why="The numbers count the preceding calls: adding or removing a call shifts them. Kafka "
            "Streams then creates new topics and no longer uses the old ones with their state and "
            "records.",
            fix="Name operators and stores (`name`, `materialized`, `storeName`) before there is state.",
        )


def generated_names(builder: Builder, topology: TopologyUnderConstruction) -> frozenset[str]:
    """Return the names of stores with a changelog and of internal topics that contain a generated index."""
    stores = topology.logged_stores()
    topics = (topic.name for topic in topology.repartition_topics)
    return frozenset(name for name in (*stores, *topics) if builder.names.carries_index(name))


def _lost_group_members(builder: Builder, topology: TopologyUnderConstruction) -> Iterator[Problem]:
    """Warn of topics that are not co-partitioned because a group does not name their source (facts 2.4)."""
    for group, at in zip(builder.copartition_groups, builder.group_origins, strict=True):
        kept = _topics_of(topology, group)
        sources = {
            name: _topics_of(topology, _actual_sources(builder, topology, name)) for name in sorted(group)
        }
        lost = [name for name, topics in sources.items() if topics - kept]
        missing = {topic for name in lost for topic in sources[name]} - kept
        if missing and len(missing | kept) > 1:
            yield _lost_members([builder.non_sources[name] for name in lost], lost, missing, kept, at)


def _actual_sources(builder: Builder, topology: TopologyUnderConstruction, name: str) -> set[str]:
    """Return the sources that a name in a group really reads; empty for a source."""
    found: set[str] = set()
    pending, seen = [name], {name}
    while pending:
        each = pending.pop()
        each = builder.renamed_sources.get(each, each)
        if topology.is_source(each):
            found.add(each)
        elif each in builder.non_sources:
            sources = builder.non_sources[each].instead - seen
            seen |= sources
            pending.extend(sources)
    return found - {name}


def _topics_of(topology: TopologyUnderConstruction, sources: Iterable[str]) -> set[str]:
    return {topic for source in sources for topic in topology.topics_read(source)}


def _lost_members(
    found: Sequence[NonSource], names: Sequence[str], missing: set[str], kept: set[str], at: Location | None
) -> Problem:
    topics, reasons = sorted(missing), ", and ".join(each.reason for each in found)
    fixes = " ".join(dict.fromkeys(each.fix for each in found))
    return lint_problem(
        ProblemCode.COPARTITION_GROUP_LOST_MEMBER,
        f"A join does not hold {', '.join(topics)} to the partition count of its other side.",
        topic=topics[0],
        node=", ".join(names),
        expected="co-partitioned: " + ", ".join(sorted(missing | kept)),
        found="co-partitioned: " + (", ".join(sorted(kept)) or "nothing"),
        why=f"{reasons}. Kafka Streams silently drops such names from a co-partition group. With unequal "
        "counts, matching records are processed by different tasks and are not joined.",
        at=at,
        fix=f"{fixes} Or keep the counts equal yourself: nothing else checks them, so the warning stays.",
    )


def cogroups_of_sources(builder: Builder, topology: TopologyUnderConstruction) -> Iterator[Problem]:
    """Warn of each cogroup whose group names sources upstream of a repartition (facts 0.1, item 5)."""
    for store, group, at in builder.cogroups_of_sources:
        topics = sorted({topic for source in group for topic in topology.topics_read(source)})
        yield lint_problem(
            ProblemCode.COGROUP_COPARTITIONS_SOURCES,
            "`cogroup` requires equal partition counts of topics that are repartitioned before it.",
            node=store,
            expected="equal counts of the repartition topics",
            found="equal counts of the sources: " + ", ".join(topics),
            why="Kafka Streams registers the sources from before the repartition as co-partitioned. With "
            "unequal counts the application fails; under the streams protocol it cannot start at all.",
            at=at,
            fix="On each input whose key is changed, do it by `selectKey`, call `repartition`, and then "
            "`groupByKey`: then the repartition topics form the group.",
        )


ONLY_ITS_PROCESSOR = "a global store with its source and its processor only"
"""`expected` of the problem of further nodes and stores; no other problem has this value."""


def _parts_of_global_stores(_builder: Builder, topology: TopologyUnderConstruction) -> Iterator[Problem]:
    """Refuse further nodes below a global store, and further stores of its processor."""
    of_global = {store.name for store in topology.stores() if store.is_global}
    for node in topology.nodes():
        if isinstance(node, SourceNode):
            continue
        if node.name not in topology.global_nodes:
            found = [parent for parent in node.parents if parent in topology.global_nodes]
            text = f"{node.name} is attached to {', '.join(found)}, which is part of a global store."
        else:
            found = sorted(set(getattr(node, "stores", ())) - of_global)
            text = f"{node.name}, the processor of a global store, has further stores: {', '.join(found)}."
        if found:
            yield Problem(
                code=ProblemCode.INVALID_TOPOLOGY,
                summary=text,
                node=node.name,
                expected=ONLY_ITS_PROCESSOR,
                found=", ".join(found),
                why="Kafka Streams runs a global store outside of tasks, and only its source and processor. "
                "`Topology#describe()` omits other nodes and stores, or throws NoSuchElementException.",
                fix="Attach it to a source of another topic: every processor can read a global store."
                if node.name not in topology.global_nodes
                else "Connect the stores to a processor of a sub-topology with tasks.",
                location=node.at,
            )


def _dropped_null_keys(builder: Builder, _topology: TopologyUnderConstruction) -> Iterator[Problem]:
    """Report each explicit repartition that drops null keys (facts 2.2).

    Kafka Streams keeps them only if a join that accepts null keys is downstream.
    """
    for node in reachable_nodes(builder.graph.root):
        declares = node.declares
        if isinstance(declares, RepartitionDeclaration) and declares.explicit and not node.keeps_null_keys:
            yield lint_problem(
                ProblemCode.NULL_KEYS_DROPPED,
                f"`repartition` drops records without a key ({declares.topic}).",
                topic=declares.topic,
                node=declares.filter,
                expected="records with a key",
                found="a filter before the topic",
                why="Kafka Streams keeps null keys only where a left or outer join of streams, or a left "
                "join with a table, is downstream.",
                at=node.at,
                fix="Set a key on such records before `repartition` if they are needed.",
                severity=Severity.INFO,
            )


LINTS: tuple[Callable[[Builder, TopologyUnderConstruction], Iterator[Problem]], ...] = (
    _unnamed_resources,
    _lost_group_members,
    cogroups_of_sources,
    _parts_of_global_stores,
    _dropped_null_keys,
)
"""All rules; lints of single calls (ignored retention and logging) are reported by the calls."""
