"""Sub-topologies as node groups, like `InternalTopologyBuilder#makeNodeGroups` (facts 3.2)."""

from collections.abc import Iterable
from itertools import pairwise

import attrs

from headwater.model.nodes import NodeTopology, ProcessorNode, SinkNode, SourceNode


@attrs.frozen
class NodeGroup:
    """The nodes of one sub-topology in declaration order."""

    id: int
    nodes: tuple[SourceNode | ProcessorNode | SinkNode, ...]
    is_global: bool = False


def node_groups(topology: NodeTopology) -> tuple[NodeGroup, ...]:
    """Return the groups by id, which is the order of their first declared nodes.

    The groups of an imported text are those in the text.
    """
    group_of = topology.printed_groups or _united(topology)
    members: dict[int, list[SourceNode | ProcessorNode | SinkNode]] = {}
    for node in topology.nodes:
        members.setdefault(group_of[node.name], []).append(node)
    return tuple(
        NodeGroup(number, tuple(nodes), any(node.name in topology.global_nodes for node in nodes))
        for number, nodes in sorted(members.items())
    )


def _united(topology: NodeTopology) -> dict[str, int]:
    """Return node → group id; a node is in the group of its parents and of processors that share a store."""
    union = _Union(node.name for node in topology.nodes)
    users: dict[str, list[str]] = {}
    for node in topology.nodes:
        if isinstance(node, SourceNode):
            continue
        for parent in node.parents:
            union.unite(node.name, parent)
        if isinstance(node, ProcessorNode):
            for store in node.stores:
                users.setdefault(store, []).append(node.name)
    connections = {store.name: store.connections for store in topology.stores if store.connections}
    for store_name, processors in users.items():
        for together in connections.get(store_name, (processors,)):
            for one, other in pairwise(together):
                union.unite(one, other)
    ids: dict[str, int] = {}
    return {node.name: ids.setdefault(union.root(node.name), len(ids)) for node in topology.nodes}


class _Union:
    """Union-find with path halving."""

    def __init__(self, names: Iterable[str]) -> None:
        self._parent = {name: name for name in names}

    def root(self, name: str) -> str:
        parent = self._parent
        while parent[name] != name:
            parent[name] = parent[parent[name]]
            name = parent[name]
        return name

    def unite(self, one: str, other: str) -> None:
        """Merge two groups; ignore names of nodes that do not exist, as in an invalid topology."""
        if one in self._parent and other in self._parent:
            self._parent[self.root(other)] = self.root(one)
