"""The nodes of one topology as a graph, across repartition topics and state stores.

Two operators are the same if they do the same: the text of what an operator does has no names.
"""

import hashlib
import re
from collections import defaultdict
from collections.abc import Container, Iterable, Iterator, Mapping
from functools import cached_property
from graphlib import CycleError, TopologicalSorter

import attrs

from headwater.model.behaviors import NonNullKeyFilter, RunProcessor, StreamGlobalJoin
from headwater.model.nodes import Node, NodeTopology, ProcessorNode, SinkNode, SourceNode

INDEX = re.compile(r"\d{10,}")
_JOIN = re.compile(r"(KSTREAM-(LEFT)?JOIN|KTABLE-JOIN(THIS|OTHER))-\d{10,}")
Following = Mapping[str, tuple[str, ...]]


class Graph:
    """Which nodes are before and after each node."""

    def __init__(self, topology: NodeTopology) -> None:
        self.nodes: Mapping[str, Node] = {node.name: node for node in topology.nodes}
        self.internal = frozenset(topic.name for topic in topology.repartition_topics)
        self.order = {name: number for number, name in enumerate(self.nodes)}
        self._generated = topology.generated_names

    @cached_property
    def parents(self) -> Following:
        """Node → nodes before it, across repartition topics."""
        writers: defaultdict[str, list[str]] = defaultdict(list)
        for node in self.nodes.values():
            if isinstance(node, SinkNode) and node.topic in self.internal:
                writers[str(node.topic)].append(node.name)
        return {
            name: tuple(writer for topic in node.topics for writer in writers.get(topic, ()))
            if isinstance(node, SourceNode)
            else node.parents
            for name, node in self.nodes.items()
        }

    @cached_property
    def parents_in_task(self) -> Following:
        """Node → nodes before it in the same task, which begins at source nodes."""
        return {
            name: () if isinstance(self.nodes[name], SourceNode) else above
            for name, above in self.parents.items()
        }

    @cached_property
    def children(self) -> Following:
        """Node → nodes after it, across repartition topics."""
        return _reverse_edges(self.parents)

    @cached_property
    def parents_and_writers(self) -> Following:
        """Node → nodes before it, and the nodes that write the stores that it reads."""
        return {name: (*above, *self._writers_of(name)) for name, above in self.parents.items()}

    @cached_property
    def children_and_readers(self) -> Following:
        """Node → nodes after it, and the nodes that read the stores that it writes."""
        return _reverse_edges(self.parents_and_writers)

    def _writers_of(self, name: str) -> Iterator[str]:
        for store in self.stores_of(name):
            writer = self._store_writers.get(store, name)
            if writer != name:
                yield writer

    @cached_property
    def _store_users(self) -> Mapping[str, tuple[str, ...]]:
        """Store → the nodes that are connected to it."""
        found: defaultdict[str, list[str]] = defaultdict(list)
        for node in self.nodes.values():
            for store in node.stores if isinstance(node, ProcessorNode) else ():
                found[store].append(node.name)
        return {store: tuple(users) for store, users in found.items()}

    @cached_property
    def _store_writers(self) -> Mapping[str, str]:
        """Store → the node that writes it, as far as it is known.

        Calls of a document create a store before others read it. Of a text, it is the only user that is not
        a join with a generated name.
        """
        found: dict[str, str] = {}
        for store, users in self._store_users.items():
            is_shown = all(getattr(self.nodes[name], "behavior", None) is not None for name in users)
            writers = [name for name in users if is_shown or not _JOIN.fullmatch(name)]
            if is_shown or len(writers) == 1:
                found[store] = writers[0]
        return found

    def users_of(self, store: str) -> tuple[str, ...]:
        """Return the nodes that are connected to a store, in their order."""
        return self._store_users.get(store, ())

    def writer_of(self, store: str) -> str | None:
        """Return the node that writes a store, None if it is not known."""
        return self._store_writers.get(store)

    def writers_among(self, store: str, users: Iterable[str]) -> Iterator[str]:
        """Yield the nodes that write a store: its first user, and processors with a class of the user."""
        for name in users:
            node = self.nodes[name]
            has_class = isinstance(node, ProcessorNode) and isinstance(node.behavior, RunProcessor)
            if has_class or self._store_writers.get(store) == name:
                yield name

    def is_internal(self, name: str) -> bool:
        """Return whether the node is a part of a repartition, which no user declares."""
        match self.nodes[name]:
            case SinkNode(topic=topic):
                return topic in self.internal
            case SourceNode(topics=topics):
                return bool(set(topics) & self.internal)
            case ProcessorNode(behavior=does):
                return isinstance(does, NonNullKeyFilter) or name.endswith("-repartition-filter")

    def stores_after(self, name: str) -> set[str]:
        """Return the stores that a node and the nodes after it write."""
        reached = self.reachable_nodes([name], self.children_and_readers)
        stores = {store for each in reached for store in self.stores_of(each)}
        return {store for store in stores if any(self.writers_among(store, reached))}

    def stores_of(self, name: str) -> tuple[str, ...]:
        """Return the stores that a node reads or writes, also global ones."""
        node = self.nodes[name]
        if not isinstance(node, ProcessorNode):
            return ()
        if isinstance(node.behavior, StreamGlobalJoin):
            return *node.stores, node.behavior.store
        return node.stores

    def user_named_stores(self, name: str) -> tuple[str, ...]:
        """Return the stores that a node reads or writes, with names that users gave."""
        return tuple(store for store in self.stores_of(name) if not self._is_generated(store))

    def _is_generated(self, store: str) -> bool:
        return store in self._generated or INDEX.search(store) is not None

    @cached_property
    def path_digests(self) -> Mapping[str, str]:
        """Node → digest of it and of all nodes before it."""
        return self._digest_nodes(self.parents)

    @cached_property
    def path_digests_with_stores(self) -> Mapping[str, str]:
        """Node → digest of it, of all nodes before it, and of all that write the stores that these read."""
        more = {
            name: [*self._paths_of_unknown_writers(name), *self._read_stores(name)] for name in self.nodes
        }
        return self._digest_nodes(self.parents_and_writers, more)

    def _paths_of_unknown_writers(self, name: str) -> list[str]:
        return sorted(
            self.path_digests[user]
            for store in self.stores_of(name)
            if store not in self._store_writers
            for user in self._store_users.get(store, ())
        )

    def _read_stores(self, name: str) -> Iterator[str]:
        """Yield which stores a node reads that others write.

        Of stores with generated names whose writers do the same, it is the number of the store among them.
        """
        for store in self.stores_of(name):
            if any(self.writers_among(store, [name])):
                continue
            if not self._is_generated(store):
                yield store
                continue
            equal = [
                other
                for other in self._store_users
                if self._is_generated(other) and self._writer_text(other) == self._writer_text(store)
            ]
            yield f"{sorted(equal).index(store) if store in equal else ''}"

    def _writer_text(self, store: str) -> str:
        """Return what writes a store with a generated name; if that is not known, the kind of the name."""
        writer = self._store_writers.get(store)
        return self.path_digests[writer] if writer is not None else INDEX.sub("#", store)

    def _digest_nodes(
        self, parents: Following, more: Mapping[str, Iterable[str]] | None = None
    ) -> Mapping[str, str]:
        try:
            order = tuple(TopologicalSorter(parents).static_order())
        except CycleError:
            order = tuple(self.nodes)
        found: dict[str, str] = {}
        for name in order:
            if name in self.nodes:
                above = [found.get(parent, "") for parent in parents[name]]
                if isinstance(self.nodes[name], SourceNode):
                    above.sort()  # the writers of a repartition topic, in the order of the topology
                also = more[name] if more is not None else ()
                found[name] = digest_texts([self.operation_text(self.nodes[name]), *above, *also])
        return found

    def operation_text(self, node: Node) -> str:
        """Return what a node does, without names of stores and nodes."""
        if isinstance(node, SourceNode):
            read = "repartition" if set(node.topics) & self.internal else ",".join(node.topics)
            return f"source {node.pattern or read}"
        if isinstance(node, SinkNode):
            return "repartition" if node.topic in self.internal else f"sink {node.topic or node.extractor}"
        if node.behavior is None:
            return INDEX.sub("#", node.name)
        return behavior_text(node.behavior)

    def input_topics(self, nodes: Iterable[str], parents: Following) -> frozenset[str]:
        """Return the user topics of all nodes that are reached by `parents`."""
        return frozenset(
            topic
            for name in self.reachable_nodes(nodes, parents)
            for topic in self.user_topics(self.nodes[name])
        )

    def user_topics(self, node: Node) -> tuple[str, ...]:
        """Return the user topics, or the pattern, that a source node reads; none of other nodes."""
        if not isinstance(node, SourceNode) or set(node.topics) & self.internal:
            return ()
        return (node.pattern,) if node.pattern else node.topics

    def nearest_known(self, names: Iterable[str], known: Container[str], following: Following) -> set[str]:
        """Return which of the nodes are known, or the nearest known ones that are reached from them."""
        found, waiting, seen = set[str](), list(names), set[str]()
        while waiting:
            name = waiting.pop()
            if name in seen or name not in self.nodes:
                continue
            seen.add(name)
            if name in known:
                found.add(name)
            else:
                waiting += following.get(name, ())
        return found

    def reachable_nodes(self, nodes: Iterable[str], following: Following) -> set[str]:
        """Return the nodes, and all that are reached from them."""
        found, waiting = set[str](), list(nodes)
        while waiting:
            name = waiting.pop()
            if name in found or name not in self.nodes:
                continue
            found.add(name)
            waiting += following.get(name, ())
        return found


def digest_texts(texts: Iterable[str]) -> str:
    """Return a short digest of texts."""
    return hashlib.sha256("\n".join(texts).encode()).hexdigest()[:16]


def _reverse_edges(parents: Following) -> Following:
    children: defaultdict[str, list[str]] = defaultdict(list)
    for name, above in parents.items():
        for parent in above:
            children[parent].append(name)
    return {name: tuple(found) for name, found in children.items()}


_NAMES = frozenset(
    {"store", "stores", "own_store", "other_store", "shared", "buffer", "node", "children", "default"}
)
"""The fields of behaviors and of views of tables that have names of stores or nodes."""


def behavior_text(value: object) -> str:
    """Return a behavior, or a part of it, with `*` for each name; texts of expressions stay."""
    kind = type(value)
    if not attrs.has(kind):
        return repr(value)
    parts = {field.name: getattr(value, field.name) for field in attrs.fields(kind)}
    fields = (
        f"{name}={_without_names(part) if name in _NAMES else behavior_text(part)}"
        for name, part in parts.items()
    )
    return f"{kind.__name__}({', '.join(fields)})"


def _without_names(value: object) -> str:
    """Return how many names there are: whether a table has a store is a part of what it does."""
    if isinstance(value, tuple):
        return "*" * len(value)
    return "*" if value is not None else "None"
