"""Writes the text of `Topology#describe()`, byte for byte (facts 3.3, 3.4).

Kafka Streams keeps neighbors in a `TreeSet` whose comparator (size descending, name ascending) reads sizes
that still change while the sets are filled. The position of a node depends on the sizes and on the shape of
the tree at the time of insertion; a node that is added twice may be in the set twice.
"""

import heapq
from collections.abc import Iterable, Iterator, Mapping, Sequence

import attrs

from headwater.compiler.java.collections import (
    RedBlackTree,
    copy_order,
    string_copy_order,
    string_hash,
    string_rank,
    string_set_order,
)
from headwater.compiler.topic_groups import NodeGroup, node_groups
from headwater.model.nodes import Node, NodeTopology, ProcessorNode, SourceNode


class NodeSet:
    """Node names in the order in which Kafka Streams prints them; `sizes` changes during insertions."""

    __slots__ = ("_names", "_sizes", "_tree")

    def __init__(self, sizes: Mapping[str, int]) -> None:
        self._sizes = sizes
        self._tree: RedBlackTree[str] = RedBlackTree()
        self._names: list[str] = []

    def __iter__(self) -> Iterator[str]:
        return iter(self._tree)

    @property
    def members(self) -> Sequence[str]:
        """Return the nodes in the order of insertion."""
        return self._names

    def add(self, name: str) -> None:
        """Insert `name` unless the search, which assumes a sorted tree, finds it."""
        sizes, size = self._sizes, self._sizes[name]
        found = False

        def compare(other: str) -> int:
            nonlocal found
            if other == name:
                found = True
                return 0
            difference = sizes[other] - size
            return difference or (-1 if string_rank(name) < string_rank(other) else 1)

        self._tree.insert(name, compare)
        if not found:
            self._names.append(name)


@attrs.frozen
class Links:
    """Parents and children of each node; a node's size is 1 + the sizes of its children.

    A descendant counts once for each path to it.
    """

    sizes: Mapping[str, int]
    parents: Mapping[str, NodeSet]
    children: Mapping[str, NodeSet]


def link_nodes(order: Iterable[str], declared: Mapping[str, Sequence[str]]) -> Links:
    """Link the nodes in `order`, each to its `declared` parents; the keys are all nodes, parents first."""
    sizes = dict.fromkeys(declared, 1)
    parents = {name: NodeSet(sizes) for name in declared}
    children = {name: NodeSet(sizes) for name in declared}
    rank = {name: index for index, name in enumerate(declared)}
    for name in order:
        for parent in declared[name]:
            parents[name].add(parent)
            children[parent].add(name)
            _grow_node(parent, sizes[name], sizes, parents, rank)
    return Links(sizes, parents, children)


def _grow_node(
    node: str, by: int, sizes: dict[str, int], parents: Mapping[str, NodeSet], rank: Mapping[str, int]
) -> None:
    """Add `by` to `node` and, once for each path, to its linked ancestors.

    Kafka Streams recurses over all paths, whose number may be exponential. Here each node is visited once, by
    descending rank, after all its descendants.
    """
    while True:
        sizes[node] += by
        above = parents[node].members
        if len(above) != 1:
            break
        node = above[0]
    if not above:
        return
    due: dict[str, int] = {}
    queue: list[tuple[int, str]] = []

    def pass_on(names: Iterable[str], amount: int) -> None:
        for name in names:
            if name not in due:
                due[name] = 0
                heapq.heappush(queue, (-rank[name], name))
            due[name] += amount

    pass_on(above, by)
    while queue:
        name = heapq.heappop(queue)[1]
        amount = due.pop(name)
        sizes[name] += amount
        pass_on(parents[name].members, amount)


def write_description(topology: NodeTopology) -> str:
    """Return the text of `Topology#describe().toString()` for this topology.

    A topology that was read from a text has the order of that text. Parents that do not exist, as in a
    topology that Kafka Streams rejects, are omitted.
    """
    head = "Topologies:\n " if topology.name is None else f"Topology: {topology.name}:\n "
    return head + "".join(f"  {_block_text(group, topology)}" for group in node_groups(topology))


@attrs.frozen
class _Listed:
    """A node with its neighbors in printed order."""

    node: Node
    children: Sequence[str]
    parents: Sequence[str]
    is_imported: bool


def _block_text(group: NodeGroup, topology: NodeTopology) -> str:
    if group.is_global:
        nodes = "\n".join(f"    {_node_text(listed)}" for listed in _global_nodes(group, topology))
        return f"Sub-topology: {group.id} for global store (will not generate tasks)\n{nodes}\n"
    nodes = "".join(f"    {_node_text(listed)}\n" for listed in _listed_nodes(group, topology))
    return f"Sub-topology: {group.id}\n{nodes}\n"


def _listed_nodes(group: NodeGroup, topology: NodeTopology) -> list[_Listed]:
    if topology.listing:
        return [_Listed(node, *topology.listing[node.name], is_imported=True) for node in group.nodes]
    by_name = {node.name: node for node in group.nodes}
    parents = {
        node.name: [] if isinstance(node, SourceNode) else [p for p in node.parents if p in by_name]
        for node in group.nodes
    }
    # Kafka Streams iterates over a set of names and puts the nodes into a map by name.
    links = link_nodes(string_set_order(string_set_order(by_name)), parents)
    order = sorted(by_name, key=lambda name: (-links.sizes[name], string_rank(name)))
    return [
        _Listed(by_name[name], tuple(links.children[name]), tuple(links.parents[name]), is_imported=False)
        for name in order
    ]


def _global_nodes(group: NodeGroup, topology: NodeTopology) -> list[_Listed]:
    """Return the source and its processor, the only nodes of a global block."""
    listed = _listed_nodes(group, topology)
    return sorted(listed, key=lambda each: not isinstance(each.node, SourceNode))


def _node_text(listed: _Listed) -> str:
    node = listed.node
    if isinstance(node, SourceNode):
        topics, children = _topics_text(node, listed), _names_text(listed.children)
        return f"Source: {node.name} (topics: {topics})\n      --> {children}"
    if isinstance(node, ProcessorNode):
        stores = node.stores if listed.is_imported else string_copy_order(node.stores)
        return (
            f"Processor: {node.name} (stores: [{', '.join(stores)}])\n"
            f"      --> {_names_text(listed.children)}\n      <-- {_names_text(listed.parents)}"
        )
    target = f"topic: {node.topic}" if node.topic is not None else f"extractor class: {node.extractor}"
    return f"Sink: {node.name} ({target})\n      <-- {_names_text(listed.parents)}"


def _topics_text(node: SourceNode, listed: _Listed) -> str:
    if node.pattern is not None:
        return node.pattern
    topics = (
        node.topics if listed.is_imported else copy_order(node.topics, string_hash, size=len(node.topics))
    )
    return f"[{', '.join(topics)}]"


def _names_text(names: Sequence[str]) -> str:
    return ", ".join(names) or "none"
