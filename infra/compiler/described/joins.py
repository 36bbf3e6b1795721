"""PURE. Co-partition groups that a text implies.

A join looks into a store that the other side fills. So the sources above the join and above the other users
of its stores are co-partitioned. What Kafka Streams forgets (suppressed tables, results of a cogroup) is
forgotten here, too.
"""

from collections.abc import Iterator

from infra.compiler.described.names import (
    AGGREGATION_NODE,
    COGROUP_MERGE,
    COGROUP_NODE,
    CUSTOM_NODE,
    EXPLICIT_REPARTITION,
    JOIN_NODE,
    JOIN_STORE,
    RESOLVER_NODE,
    SHARED_JOIN_STORE,
    TABLE_AGGREGATION_NODE,
    TABLE_NODE,
    WINDOWED_NODE,
    index_in,
    is_grace_buffer,
    is_suppress,
)
from infra.compiler.described.stores import table_topic
from infra.compiler.described.structure import Structure
from infra.model.nodes import ProcessorNode, SourceNode
from infra.model.problems import Problem, ProblemCode, Severity


def implied_groups(structure: Structure, internal: frozenset[str]) -> tuple[frozenset[str], ...]:
    """Groups of source nodes, ordered by the generated index of their operators where they have one."""
    found = [*_joins(structure), *_cogroups(structure, internal)]
    return tuple(group for _, group in sorted(found, key=lambda each: each[0]))


def doubtful_groups(structure: Structure) -> Iterator[Problem]:
    """Stores that custom processors share over several branches: a join or not, the text does not say."""
    for store, users in structure.users.items():
        branches = {structure.upstream([user.name], frozenset()) for user in users}
        if len(branches) > 1 and not _is_table_or_join(store, users, structure):
            names = ", ".join(user.name for user in users)
            topics = sorted({t for branch in branches for s in branch for t in _topics(structure, s)})
            yield Problem(
                code=ProblemCode.MISSING_DETAIL,
                summary=(
                    f"The processors {names} share the store {store}; whether their topics are "
                    "co-partitioned is not known."
                ),
                node=store,
                expected=f"a group in `copartitioned`, if keys must meet: [{', '.join(topics)}]",
                found="none",
                why=(
                    "A text does not name co-partition groups. Without one nothing is enforced, as for "
                    "custom processors in Kafka Streams."
                ),
                fix=(
                    "If the processors are a join of the DSL, list the topics under "
                    "`describe.copartitioned`; else leave it as it is."
                ),
                severity=Severity.WARNING,
            )


def _joins(structure: Structure) -> Iterator[tuple[tuple[int, int], frozenset[str]]]:
    forgotten = _forgetting(structure)
    nodes = [node for node in structure.nodes.values() if isinstance(node, ProcessorNode) and node.stores]
    beside = {
        node.name: [owner.name for store in node.stores for owner in _owners(store, node, structure)]
        for node in nodes
        if RESOLVER_NODE.fullmatch(node.name)
    }
    upstream = {node.name: structure.upstream(node.parents, forgotten, beside) for node in nodes}
    upstream |= {node.name: frozenset() for node in nodes if _is_forgotten(node, structure)}
    for position, node in enumerate(nodes):
        if not _may_join(node, structure):
            continue
        sides = [
            upstream[owner.name]
            for store in _stores_of_sides(node, structure)
            for owner in _owners(store, node, structure)
        ]
        group = upstream[node.name].union(*sides)
        if any(side != upstream[node.name] for side in sides) or (sides and _surely_joins(node, structure)):
            yield (_order(node.name, position), group)


def _is_forgotten(node: ProcessorNode, structure: Structure) -> bool:
    """Tables whose sources are lost: of a cogroup, of all aggregations but the first of a grouped table."""
    if COGROUP_NODE.fullmatch(node.name):
        return True
    source = node.parents[0]
    if len(node.parents) > 1 or not isinstance(structure.nodes[source], SourceNode):
        return False
    grouped = [child for child in structure.children[source] if TABLE_AGGREGATION_NODE.fullmatch(child)]
    first = f"{node.name}-source" == source or index_in(node.name) == (index_in(source) or 0) + 1
    return len(structure.children[source]) > 1 and bool(grouped) and not first


def _owners(store: str, looking: ProcessorNode, structure: Structure) -> list[ProcessorNode]:
    """Who fills the store: by name, else every other user."""
    users = structure.users[store]
    others = [user for user in users if user is not looking]
    return [user for user in others if _fills(user, structure)] or others or list(users)


def _surely_joins(node: ProcessorNode, structure: Structure) -> bool:
    """By its name, or because it uses the store of a join (`single.store.self.join` leaves only one)."""
    return JOIN_NODE.fullmatch(node.name) is not None or any(
        JOIN_STORE.fullmatch(store)
        or any(WINDOWED_NODE.fullmatch(user.name) for user in structure.users[store])
        for store in node.stores
    )


def _stores_of_sides(node: ProcessorNode, structure: Structure) -> Iterator[str]:
    """The stores of a join that tell its other side; a suppressed table's and those above it do not."""
    suppressed = [
        user.name
        for store in node.stores
        for user in structure.users[store]
        if user is not node and is_suppress(user.name, user.stores)
    ]
    hidden = structure.above(suppressed) if suppressed else set()
    for store in node.stores:
        users = structure.users[store]
        if is_grace_buffer(node.name, store) or any(
            user.name in hidden for user in users if user is not node
        ):
            continue
        if _is_table_or_join(store, users, structure):
            yield store


def _cogroups(
    structure: Structure, internal: frozenset[str]
) -> Iterator[tuple[tuple[int, int], frozenset[str]]]:
    """A cogroup registers the sources of its inputs as they were before any repartitioning."""
    forgotten = _forgetting(structure)
    by_store: dict[str, list[ProcessorNode]] = {}
    for node in structure.nodes.values():
        if isinstance(node, ProcessorNode) and COGROUP_NODE.fullmatch(node.name):
            by_store.setdefault(",".join(node.stores), []).append(node)
    for position, nodes in enumerate(by_store.values()):
        group: set[str] = set()
        for node in nodes:
            for source in structure.upstream(node.parents, forgotten):
                written = [t for t in _topics(structure, source) if t in internal and source in node.parents]
                own = [t for t in written if not EXPLICIT_REPARTITION.fullmatch(t)]
                sinks = [sink for topic in own for sink in structure.sinks[topic]]
                before = structure.upstream([p for sink in sinks for p in sink.parents], forgotten)
                group |= before if own else {source}
        yield _order(nodes[0].name, position), frozenset(group)


def _forgetting(structure: Structure) -> frozenset[str]:
    """Nodes whose result no longer knows its sources."""
    return frozenset(
        node.name
        for node in structure.nodes.values()
        if isinstance(node, ProcessorNode)
        and (
            COGROUP_MERGE.fullmatch(node.name)
            or is_suppress(node.name, node.stores)
            or _is_forgotten(node, structure)
        )
    )


def _may_join(node: ProcessorNode, structure: Structure) -> bool:
    """Neither a custom processor nor one that fills the store itself."""
    return JOIN_NODE.fullmatch(node.name) is not None or not (
        CUSTOM_NODE.fullmatch(node.name) or _fills(node, structure) or is_suppress(node.name, node.stores)
    )


def _fills(node: ProcessorNode, structure: Structure) -> bool:
    """Whether the name tells that the node keeps its result in its store."""
    return JOIN_NODE.fullmatch(node.name) is None and bool(
        TABLE_NODE.fullmatch(node.name)
        or AGGREGATION_NODE.fullmatch(node.name)
        or WINDOWED_NODE.fullmatch(node.name)
        or any(table_topic(store, structure) and _is_below_source(node, structure) for store in node.stores)
    )


def _is_below_source(node: ProcessorNode, structure: Structure) -> bool:
    """The processor of a named table: its source is called after it."""
    return node.parents == (f"{node.name}-source",) and node.parents[0] in structure.nodes


def _is_table_or_join(store: str, users: tuple[ProcessorNode, ...], structure: Structure) -> bool:
    """Whether a store belongs to a table or a stream-stream join rather than to processors of the user's."""
    return (
        bool(JOIN_STORE.fullmatch(store) or SHARED_JOIN_STORE.fullmatch(store))
        or table_topic(store, structure) is not None
        or any(
            TABLE_NODE.fullmatch(user.name)
            or AGGREGATION_NODE.fullmatch(user.name)
            or WINDOWED_NODE.fullmatch(user.name)
            or JOIN_NODE.fullmatch(user.name)
            for user in users
        )
    )


def _topics(structure: Structure, source: str) -> tuple[str, ...]:
    node = structure.nodes[source]
    return getattr(node, "topics", ())


def _order(name: str, position: int) -> tuple[int, int]:
    index = index_in(name)
    return (position if index is None else index, position)
