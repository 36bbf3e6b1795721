"""PURE. A described topology's graph: who reads, who writes, what stands upstream."""

from collections.abc import Iterable, Mapping, Sequence
from types import MappingProxyType

import attrs

from infra.model.nodes import Node, NodeTopology, ProcessorNode, SinkNode, SourceNode

NO_PARENTS: Mapping[str, Sequence[str]] = MappingProxyType({})


@attrs.frozen
class Structure:
    """Look-ups over the nodes of a text; built once."""

    nodes: Mapping[str, Node]
    users: Mapping[str, tuple[ProcessorNode, ...]]
    """Store → processors."""
    sinks: Mapping[str, tuple[SinkNode, ...]]
    """Topic → sinks."""
    readers: Mapping[str, SourceNode]
    """Topic → source."""
    children: Mapping[str, tuple[str, ...]]
    global_nodes: frozenset[str]

    @classmethod
    def of(cls, topology: NodeTopology) -> "Structure":
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
        return cls(
            nodes={node.name: node for node in topology.nodes},
            users={store: tuple(nodes) for store, nodes in users.items()},
            sinks={topic: tuple(nodes) for topic, nodes in sinks.items()},
            readers=readers,
            children={parent: tuple(names) for parent, names in children.items()},
            global_nodes=topology.global_nodes,
        )

    def parents(self, name: str) -> tuple[str, ...]:
        node = self.nodes.get(name)
        return () if node is None or isinstance(node, SourceNode) else node.parents

    def upstream(
        self, start: Iterable[str], stops: frozenset[str], beside: Mapping[str, Sequence[str]] = NO_PARENTS
    ) -> frozenset[str]:
        """The sources that the nodes `start` descend from (or are), on paths that do not pass `stops`.

        `beside` are further parents of some nodes.
        """
        seen = self.above(start, stops, beside)
        return frozenset(name for name in seen if isinstance(self.nodes.get(name), SourceNode))

    def above(
        self,
        start: Iterable[str],
        stops: frozenset[str] = frozenset(),
        beside: Mapping[str, Sequence[str]] = NO_PARENTS,
    ) -> set[str]:
        """The nodes `start` and all that they descend from, on paths that do not pass `stops`."""
        seen: set[str] = set()
        pending = list(start)
        while pending:
            name = pending.pop()
            if name not in seen and name not in stops:
                seen.add(name)
                pending += (*self.parents(name), *beside.get(name, ()))
        return seen
