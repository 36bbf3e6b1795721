"""Co-partition groups that follow from a text.

A join reads a store that the other side writes. So the sources upstream of the join and of the other users of
its stores are co-partitioned. As in Kafka Streams, groups do not contain the sources of suppressed tables and
of cogroup results.
"""

from collections.abc import Iterator, Mapping
from types import MappingProxyType

import attrs

from headwater.compiler.described.call_order import CallOrder
from headwater.compiler.described.names import (
    CUSTOM_NODE,
    GENERATED_REPARTITION,
    RESOLVER_NODE,
    TABLE,
    TABLE_AGGREGATION_NODE,
    TRANSFORM_VALUES_NODE,
    can_be_explicit,
    index_in,
    is_grace_buffer,
    is_table_node,
)
from headwater.compiler.described.stores import table_topic
from headwater.compiler.described.structure import Structure
from headwater.model.nodes import ProcessorNode, SourceNode
from headwater.model.problems import Problem, ProblemCode, Severity
from headwater.model.topology import CreatedBy

_Found = tuple[ProcessorNode, int, frozenset[str]]
"""A node of the call that created a group, its position in the text, and the group."""
_NOT_KNOWN: Mapping[str, CreatedBy] = MappingProxyType({})


def implied_groups(
    structure: Structure,
    internal: frozenset[str],
    suppressing: frozenset[str],
    windowed: frozenset[str] = frozenset(),
    created_by: Mapping[str, CreatedBy] = _NOT_KNOWN,
) -> tuple[frozenset[str], ...]:
    """Return groups of source nodes, in the order of their calls (`CallOrder`).

    `suppressing` are the suppressions, `windowed` the window and session stores, `created_by` the calls that
    created repartition topics, where that is known.
    """
    found = [
        *_join_groups(structure, suppressing, windowed),
        *_cogroup_groups(structure, internal, suppressing, created_by),
    ]
    order = CallOrder.from_nodes(structure, [node for node, _, _ in found])
    found.sort(key=lambda each: order.of_node(each[0], each[1]))
    return tuple(group for _, _, group in found)


def uncertain_groups(structure: Structure, windowed: frozenset[str] = frozenset()) -> Iterator[Problem]:
    """Warn of stores that custom processors with different sources share: they may be a join or not."""
    origins = structure.find_origins(frozenset())
    for store, users in structure.users.items():
        branches = {origins.upstream_sources([user.name]) for user in users}
        if len(branches) > 1 and not _is_table_or_join(store, users, structure, windowed):
            names = ", ".join(user.name for user in users)
            topics = sorted({t for branch in branches for s in branch for t in _topics_of(structure, s)})
            yield Problem(
                code=ProblemCode.MISSING_DETAIL,
                summary=f"The processors {names} share the store {store}; whether their topics are "
                "co-partitioned is not known.",
                node=store,
                expected=f"a group in `copartitioned`, if their keys are joined: [{', '.join(topics)}]",
                found="none",
                why="The text does not show co-partition groups. Without a group nothing is enforced, as "
                "for custom processors in Kafka Streams.",
                fix="If the processors are a join of the DSL, list the topics under "
                "`describe.copartitioned`; otherwise change nothing.",
                severity=Severity.WARNING,
            )


def _join_groups(
    structure: Structure, suppressing: frozenset[str], windowed: frozenset[str]
) -> Iterator[_Found]:
    stores = {
        name: _Store.from_users(name, users, structure, suppressing, windowed)
        for name, users in structure.users.items()
    }
    nodes = [node for node in structure.nodes.values() if isinstance(node, ProcessorNode) and node.stores]
    further_parents = {
        node.name: [owner for store in node.stores for owner in stores[store].owners_for(node.name)]
        for node in nodes
        if RESOLVER_NODE.fullmatch(node.name)
    }
    origins = structure.find_origins(_nodes_without_sources(structure, suppressing), further_parents)
    lost = _lost_tables(structure)
    upstream = {
        node.name: origins.upstream_sources(
            () if node.name in lost else (*node.parents, *further_parents.get(node.name, ()))
        )
        for node in nodes
    }
    for position, node in enumerate(nodes):
        if node.name in suppressing or not _may_join(node, structure):
            continue
        used = _stores_of_sides(node, [stores[store] for store in node.stores], structure)
        sides = [upstream[owner] for store in used for owner in store.owners_for(node.name)]
        if sides:
            yield node, position, upstream[node.name].union(*sides)


@attrs.frozen
class _Store:
    """A store and what the names of its users show.

    `fillers` are the processors that write their results to it. `is_read_by_joins`: it is a store of a
    stream-stream join or of a table, so another processor that reads it is a join.
    """

    name: str
    users: tuple[str, ...]
    fillers: tuple[str, ...]
    suppressing: tuple[str, ...]
    is_read_by_joins: bool

    @classmethod
    def from_users(
        cls,
        name: str,
        users: tuple[ProcessorNode, ...],
        structure: Structure,
        suppressing: frozenset[str],
        windowed: frozenset[str],
    ) -> "_Store":
        return cls(
            name=name,
            users=tuple(user.name for user in users),
            fillers=tuple(user.name for user in users if _fills_store(user, structure)),
            suppressing=tuple(user.name for user in users if user.name in suppressing),
            is_read_by_joins=_is_table_or_join(name, users, structure, windowed),
        )

    def owners_for(self, reader: str) -> tuple[str, ...]:
        """Return the processors that write the store that `reader` reads: by name, else all other users."""
        if self.fillers and self.fillers != (reader,):
            return tuple(filler for filler in self.fillers if filler != reader)
        return tuple(user for user in self.users if user != reader)


def _stores_of_sides(node: ProcessorNode, stores: list[_Store], structure: Structure) -> list[_Store]:
    """Return the stores of a join's other side, except stores of a suppressed table and upstream of it."""
    suppressing = [user for store in stores for user in store.suppressing if user != node.name]
    hidden = structure.upstream_nodes(suppressing) - {node.name}
    return [
        store
        for store in stores
        if store.is_read_by_joins
        and not is_grace_buffer(node.name, store.name, node.stores)
        and (not hidden or hidden.isdisjoint(store.users))
    ]


def _lost_tables(structure: Structure) -> frozenset[str]:
    """Return tables without sources: of cogroups, and all but the first aggregation of a grouped table."""
    lost = set(structure.cogrouped)
    for source, children in structure.children.items():
        if len(children) > 1 and any(TABLE_AGGREGATION_NODE.fullmatch(child) for child in children):
            following = (index_in(source) or 0) + 1
            lost.update(
                child
                for child in children
                if isinstance(structure.nodes.get(source), SourceNode)
                and structure.parents(child) == (source,)
                and f"{child}-source" != source
                and index_in(child) != following
            )
    return frozenset(lost)


def unclear_groupings(
    structure: Structure, internal: frozenset[str], created_by: Mapping[str, CreatedBy]
) -> tuple[str, ...]:
    """Return the repartition topics of cogroups that an earlier `repartition()` may have created instead.

    `created_by` has those that are known. If other nodes read the topic, too, `repartition()` created it.
    """
    stores = {store for name in structure.cogrouped for store in _stores_of(structure, name)}
    readers = {
        topic: source
        for name in structure.cogrouped
        for source in structure.parents(name)
        for topic in _topics_of(structure, source)
    }
    return tuple(
        topic
        for topic, source in readers.items()
        if topic in internal
        and topic not in created_by
        and topic.removesuffix("-repartition") not in stores
        and GENERATED_REPARTITION.fullmatch(topic) is None
        and all(child in structure.cogrouped for child in structure.children.get(source, ()))
    )


def _stores_of(structure: Structure, name: str) -> tuple[str, ...]:
    node = structure.nodes[name]
    return node.stores if isinstance(node, ProcessorNode) else ()


def _stores_below(structure: Structure, source: str) -> Iterator[str]:
    """Yield the stores of the processors that read a source directly."""
    for child in structure.children.get(source, ()):
        yield from _stores_of(structure, child)


def _cogroup_groups(
    structure: Structure,
    internal: frozenset[str],
    suppressing: frozenset[str],
    created_by: Mapping[str, CreatedBy],
) -> Iterator[_Found]:
    """Return the groups of cogroups: the sources of their inputs upstream of their own repartitions.

    A repartition topic with a generated name, or with the name of a store below it, is one of a grouping,
    also if the optimization merged it with others. A topic with a user's name may be one of an earlier
    `repartition()`; `created_by` has those that are known. Otherwise the topic itself is in the group,
    because a running application fulfills that. But if another input has a repartition of its own, the topic
    is not in the group: Kafka Streams would refuse a group of topics of two sub-topologies. A group of such a
    topic alone is omitted: it only matters to the broker, which would give the topic an explicit count of
    other topics.
    """
    origins = structure.find_origins(_nodes_without_sources(structure, suppressing))
    unclear = set(unclear_groupings(structure, internal, created_by))
    by_store: dict[str, list[ProcessorNode]] = {}
    for node in structure.nodes.values():
        if isinstance(node, ProcessorNode) and node.name in structure.cogrouped:
            by_store.setdefault(",".join(node.stores), []).append(node)
    stores = {store for nodes in by_store.values() for node in nodes for store in node.stores}
    for position, nodes in enumerate(by_store.values()):
        group: set[str] = set()
        of_users: set[str] = set()
        has_own = False
        for node in nodes:
            for source in origins.upstream_sources(node.parents):
                written = [
                    t for t in _topics_of(structure, source) if t in internal and source in node.parents
                ]
                own = [
                    t
                    for t in written
                    if t.removesuffix("-repartition") in stores.union(_stores_below(structure, source))
                    or created_by.get(t) is CreatedBy.GROUPING
                    or not can_be_explicit(t)
                ]
                sinks = [sink for topic in own for sink in structure.sinks[topic]]
                before = origins.upstream_sources(parent for sink in sinks for parent in sink.parents)
                has_own = has_own or bool(own)
                is_unclear = not own and not unclear.isdisjoint(written)
                (of_users if is_unclear else group).update(before if own else {source})
        found = group if has_own else group | of_users
        if group or len(found) > 1:
            yield nodes[0], position, frozenset(found)


def _nodes_without_sources(structure: Structure, suppressing: frozenset[str]) -> frozenset[str]:
    """Return the nodes whose results have no sources in Kafka Streams."""
    return _lost_tables(structure) | suppressing | structure.cogroup_merges


def _may_join(node: ProcessorNode, structure: Structure) -> bool:
    """Return whether a processor can be a join: no custom processor, and none that writes the store.

    The names of joins of tables are recognized, so another processor of a table is no join.
    """
    return structure.is_join(node.name) or not (
        CUSTOM_NODE.fullmatch(node.name)
        or _fills_store(node, structure)
        or any(_is_table(parent, structure) for parent in node.parents)
    )


def _is_table(name: str, structure: Structure) -> bool:
    """Return whether the result of a node is a table: a processor of a table that has a store is one."""
    seen: set[str] = set()
    while TABLE.fullmatch(name) is None:
        node = structure.nodes.get(name)
        if not isinstance(node, ProcessorNode) or not node.stores or name in seen:
            return False
        if _is_below_source(node, structure) and any(table_topic(each, structure) for each in node.stores):
            return True
        seen.add(name)
        name = node.parents[0] if node.parents else ""
    return True


def _fills_store(node: ProcessorNode, structure: Structure) -> bool:
    """Return whether the name shows that the node writes its result to its store."""
    return not structure.is_join(node.name) and bool(
        is_table_node(node.name, node.parents)
        or structure.is_aggregation(node.name)
        or node.name in structure.windowed
        or (_is_below_source(node, structure) and any(table_topic(each, structure) for each in node.stores))
    )


def _is_below_source(node: ProcessorNode, structure: Structure) -> bool:
    """Return whether it is the processor of a named table, after which the source is named."""
    return node.parents == (f"{node.name}-source",) and node.parents[0] in structure.nodes


def _is_table_or_join(
    store: str, users: tuple[ProcessorNode, ...], structure: Structure, windowed: frozenset[str]
) -> bool:
    """Return whether a store belongs to a table or a stream-stream join, not to a user's processors.

    The own store of a table's `transformValues` is not windowed.
    """
    return (
        structure.is_join_store(store)
        or structure.is_shared_join_store(store)
        or table_topic(store, structure) is not None
        or any(
            (is_table_node(user.name, user.parents) and not _is_of_user(store, user, windowed))
            or structure.is_aggregation(user.name)
            or user.name in structure.windowed
            or structure.is_join(user.name)
            for user in users
        )
    )


def _is_of_user(store: str, user: ProcessorNode, windowed: frozenset[str]) -> bool:
    return store in windowed and TRANSFORM_VALUES_NODE.fullmatch(user.name) is not None


def _topics_of(structure: Structure, source: str) -> tuple[str, ...]:
    node = structure.nodes[source]
    return getattr(node, "topics", ())
