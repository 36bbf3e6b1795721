"""The graph of a described topology: readers, writers, and the nodes upstream."""

from collections.abc import Iterable, Iterator, Mapping, Sequence
from types import MappingProxyType

import attrs

from headwater.compiler.described.names import (
    AGGREGATION_NODE,
    COGROUP_NODE,
    FOREIGN_KEY_TOPIC,
    JOIN_NODE,
    JOIN_STORE,
    SHARED_JOIN_STORE,
    STREAM_JOIN_NAME,
    TABLE_JOIN_NAME,
    WINDOWED_NODE,
    is_child_of_windowed,
    is_merge_of_cogroup,
    is_source_table,
    is_store_of_side,
    is_table_node,
)
from headwater.model.nodes import Node, NodeTopology, ProcessorNode, SinkNode, SourceNode

NO_PARENTS: Mapping[str, Sequence[str]] = MappingProxyType({})


@attrs.frozen
class Structure:
    """Indexes over the nodes of a text."""

    nodes: Mapping[str, Node]
    users: Mapping[str, tuple[ProcessorNode, ...]]
    """Store → processors."""
    sinks: Mapping[str, tuple[SinkNode, ...]]
    """Topic → sinks."""
    readers: Mapping[str, SourceNode]
    """Topic → source."""
    children: Mapping[str, tuple[str, ...]]
    global_nodes: frozenset[str]
    windowed: frozenset[str]
    """The processors of stream-stream joins that write a store: a join is below them."""
    cogrouped: frozenset[str]
    """The aggregations of cogroups: their merge is below them."""
    cogroup_merges: frozenset[str]

    @classmethod
    def from_topology(cls, topology: NodeTopology) -> "Structure":
        users: dict[str, list[ProcessorNode]] = {}
        sinks: dict[str, list[SinkNode]] = {}
        readers: dict[str, SourceNode] = {}
        children: dict[str, list[str]] = {}
        for node in topology.nodes:
            if isinstance(node, SourceNode):
                readers.update(dict.fromkeys(node.topics, node))
                continue
            for parent in dict.fromkeys(node.parents):
                children.setdefault(parent, []).append(node.name)
            if isinstance(node, ProcessorNode):
                for store in node.stores:
                    users.setdefault(store, []).append(node)
            elif node.topic is not None:
                sinks.setdefault(node.topic, []).append(node)
        windowed = frozenset(
            name
            for name, below in children.items()
            if WINDOWED_NODE.fullmatch(name) and any(is_child_of_windowed(child, name) for child in below)
        )
        merges = {
            name: child
            for name, below in children.items()
            if COGROUP_NODE.fullmatch(name)
            for child in below
            if is_merge_of_cogroup(child, name)
        }
        return cls(
            nodes={node.name: node for node in topology.nodes},
            users={store: tuple(nodes) for store, nodes in users.items()},
            sinks={topic: tuple(nodes) for topic, nodes in sinks.items()},
            readers=readers,
            children={parent: tuple(names) for parent, names in children.items()},
            global_nodes=topology.global_nodes,
            windowed=windowed,
            cogrouped=frozenset(merges),
            cogroup_merges=frozenset(merges.values()),
        )

    def parents(self, name: str) -> tuple[str, ...]:
        node = self.nodes.get(name)
        return () if node is None or isinstance(node, SourceNode) else node.parents

    @property
    def internal_topics(self) -> tuple[str, ...]:
        """Return the topics that are both written and read and that have names of internal topics."""
        return tuple(
            topic
            for topic in self.sinks
            if topic in self.readers
            and (topic.endswith("-repartition") or FOREIGN_KEY_TOPIC.fullmatch(topic))
        )

    def is_join_store(self, store: str) -> bool:
        """Return whether a store belongs to a side of a stream-stream join, by its name and its users."""
        if JOIN_STORE.fullmatch(store) is None:
            return False
        users = [user.name for user in self.users.get(store, ())]
        return any(user in self.windowed for user in users) and all(
            user in self.windowed or is_store_of_side(store, user) for user in users
        )

    def is_shared_join_store(self, store: str) -> bool:
        """Return whether a store belongs to both sides of a left or outer join."""
        return SHARED_JOIN_STORE.fullmatch(store) is not None and any(
            parent in self.windowed for user in self.users.get(store, ()) for parent in user.parents
        )

    def is_join(self, name: str) -> bool:
        """Return whether a processor reads the other side's store; nodes around it are named alike."""
        if JOIN_NODE.fullmatch(name) is None:
            return False
        if STREAM_JOIN_NAME.fullmatch(name):
            return any(parent in self.windowed for parent in self.parents(name))
        table_join = TABLE_JOIN_NAME.fullmatch(name)
        return table_join is None or table_join[1] in self.children.get(name, ())

    def is_aggregation(self, name: str) -> bool:
        """Return whether a processor is an aggregation of a stream, windowed or not, or of a cogroup."""
        return name in self.cogrouped or AGGREGATION_NODE.fullmatch(name) is not None

    def is_of_table(self, store: str) -> bool:
        """Return whether an operator of the DSL writes its result to the store, not a custom processor."""
        return any(
            is_table_node(user.name, user.parents)
            or self.is_aggregation(user.name)
            or any(is_source_table(user.name, parent) for parent in user.parents)
            for user in self.users.get(store, ())
        )

    def upstream_nodes(self, start: Iterable[str]) -> set[str]:
        """Return the nodes `start` and all nodes upstream of them."""
        seen: set[str] = set()
        pending = list(start)
        while pending:
            name = pending.pop()
            if name not in seen:
                seen.add(name)
                pending += self.parents(name)
        return seen

    def find_origins(
        self, stops: frozenset[str], further_parents: Mapping[str, Sequence[str]] = NO_PARENTS
    ) -> "Origins":
        """Return the sources upstream of each node, on paths that do not pass through `stops`.

        `further_parents` are additional parents of some nodes. Nodes in a cycle (of a damaged text) have
        none.
        """
        parents = {
            name: [
                p
                for p in dict.fromkeys((*self.parents(name), *further_parents.get(name, ())))
                if p in self.nodes
            ]
            for name in self.nodes
        }
        found: dict[str, frozenset[str]] = {}
        for name in parents_first(parents):
            if name in stops:
                found[name] = frozenset()
            elif isinstance(self.nodes[name], SourceNode):
                found[name] = frozenset([name])
            else:
                found[name] = unite_sets(found[parent] for parent in parents[name])
        return Origins(found)


@attrs.frozen
class Origins:
    """The sources upstream of nodes."""

    by_node: Mapping[str, frozenset[str]]

    def upstream_sources(self, names: Iterable[str]) -> frozenset[str]:
        """Return the sources upstream of all these nodes."""
        return unite_sets(self.by_node.get(name, frozenset()) for name in names)


def parents_first(parents: Mapping[str, Sequence[str]]) -> Iterator[str]:
    """Yield each node after all its parents; nodes in a cycle, and below one, are omitted."""
    waiting = {name: len(above) for name, above in parents.items()}
    below: dict[str, list[str]] = {}
    for name, above in parents.items():
        for parent in above:
            below.setdefault(parent, []).append(name)
    ready = [name for name, count in waiting.items() if not count]
    while ready:
        name = ready.pop()
        yield name
        for child in below.get(name, ()):
            waiting[child] -= 1
            if not waiting[child]:
                ready.append(child)


def unite_sets(sets: Iterable[frozenset[str]]) -> frozenset[str]:
    """Return the union; the same object if there is only one set, so that long chains share it."""
    found: frozenset[str] = frozenset()
    for each in sets:
        found = each if not found else found if each is found else found | each
    return found
