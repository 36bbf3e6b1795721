"""Writes the text of `Topology#describe()`, byte for byte (facts 3.3, 3.4)."""

from collections.abc import Sequence

import attrs

from headwater.compiler.java.collections import copy_order, string_copy_order, string_hash, string_set_order
from headwater.compiler.subtopologies import NodeGroup, node_groups
from headwater.describe.links import linked
from headwater.model.nodes import Node, NodeTopology, ProcessorNode, SourceNode


def write_description(topology: NodeTopology) -> str:
    """Return the text of `Topology#describe().toString()` for this topology.

    A topology that was read from a text has the order of that text. Parents that do not exist, as in a
    topology that Kafka Streams rejects, are omitted.
    """
    head = "Topologies:\n " if topology.name is None else f"Topology: {topology.name}:\n "
    return head + "".join(f"  {_block(group, topology)}" for group in node_groups(topology))


@attrs.frozen
class _Listed:
    """A node with its neighbors in printed order."""

    node: Node
    children: Sequence[str]
    parents: Sequence[str]
    is_imported: bool


def _block(group: NodeGroup, topology: NodeTopology) -> str:
    if group.is_global:
        nodes = "\n".join(f"    {_text(listed)}" for listed in _global_nodes(group, topology))
        return f"Sub-topology: {group.id} for global store (will not generate tasks)\n{nodes}\n"
    nodes = "".join(f"    {_text(listed)}\n" for listed in _listed_nodes(group, topology))
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
    links = linked(string_set_order(string_set_order(by_name)), parents)
    order = sorted(by_name, key=lambda name: (-links.sizes[name], name))
    return [
        _Listed(by_name[name], tuple(links.children[name]), tuple(links.parents[name]), is_imported=False)
        for name in order
    ]


def _global_nodes(group: NodeGroup, topology: NodeTopology) -> list[_Listed]:
    """Return the source and its processor, the only nodes of a global block."""
    listed = _listed_nodes(group, topology)
    return sorted(listed, key=lambda each: not isinstance(each.node, SourceNode))


def _text(listed: _Listed) -> str:
    node = listed.node
    if isinstance(node, SourceNode):
        return f"Source: {node.name} (topics: {_topics(node, listed)})\n      --> {_names(listed.children)}"
    if isinstance(node, ProcessorNode):
        stores = node.stores if listed.is_imported else string_copy_order(node.stores)
        return (
            f"Processor: {node.name} (stores: [{', '.join(stores)}])\n"
            f"      --> {_names(listed.children)}\n      <-- {_names(listed.parents)}"
        )
    target = f"topic: {node.topic}" if node.topic is not None else f"extractor class: {node.extractor}"
    return f"Sink: {node.name} ({target})\n      <-- {_names(listed.parents)}"


def _topics(node: SourceNode, listed: _Listed) -> str:
    if node.pattern is not None:
        return node.pattern
    topics = (
        node.topics if listed.is_imported else copy_order(node.topics, string_hash, size=len(node.topics))
    )
    return f"[{', '.join(topics)}]"


def _names(names: Sequence[str]) -> str:
    return ", ".join(names) or "none"
