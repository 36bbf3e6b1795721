"""Topologies that clients have sent to the brokers (KIP-1331), and the text that Kafka's tool prints of them.

They have the nodes of `Topology#describe()` without parents, patterns and ids of global stores, and internal
topics have the prefix of the application. Any client of the group may have sent them, so they are checked.
"""

import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from collections.abc import Set as AbstractSet
from graphlib import CycleError, TopologicalSorter

import attrs

from headwater.compiler.described.names import FOREIGN_KEY_TOPIC, GENERATED_REPARTITION
from headwater.describe.read import read_description
from headwater.describe.write import write_description
from headwater.model.nodes import Node, NodeTopology, ProcessorNode, SinkNode, SourceNode
from headwater.model.streams_groups import (
    DescriptionStatus,
    GroupSubtopology,
    NodeType,
    PushedNode,
    PushedTopology,
    StreamsGroup,
)

_REASONS = {
    DescriptionStatus.NOT_REQUESTED: "the brokers have no nodes of topologies (KIP-1331, Kafka 4.4)",
    DescriptionStatus.NOT_STORED: "no client has sent the nodes of the topology to the brokers: they need "
    "`group.streams.topology.description.plugin.class`, and the application Kafka Streams 4.4",
    DescriptionStatus.ERROR: "the plugin of the brokers could not read the nodes of the topology",
}
_ID = re.compile(r"[0-9]{1,9}")
_EXTRACTOR = "not known"
"""The brokers do not have the class of a `TopicNameExtractor`; it decides no internal topic."""


@attrs.frozen
class UnusableTopologyError(Exception):
    """The brokers do not have the complete topology. `reason` is a clause."""

    reason: str


def pushed_topology(group: StreamsGroup) -> NodeTopology:
    """Return the topology of a group, as `read_description` returns it for the text of the application.

    Lists of nodes may have another order than in that text, which depends on the order of calls. Raises
    `UnusableTopologyError` if the brokers do not have it, or not all that decides internal topics.
    """
    if group.nodes is None:
        raise UnusableTopologyError(_REASONS.get(group.status, _REASONS[DescriptionStatus.NOT_STORED]))
    blocks = dict(_group_by_subtopology(group.nodes, {part.id for part in group.subtopologies}))
    names = [node.name for nodes in blocks.values() for node in nodes]
    if len(names) != len(set(names)):
        raise UnusableTopologyError("the brokers have a node twice")
    internal = _internal_names(group)
    for part in group.subtopologies:
        _check_topics(part, blocks[int(part.id)])
    _check_names([node for block in blocks.values() for node in block], internal)
    nodes = {number: tuple(_in_order(block, internal)) for number, block in blocks.items()}
    topology = NodeTopology(
        nodes=tuple(node for number in sorted(nodes) for node in nodes[number]),
        global_nodes=frozenset(node.name for pair in group.nodes.global_stores for node in pair),
        printed_groups={node.name: number for number, block in nodes.items() for node in block},
    )
    read, problems = read_description(write_description(topology))
    if problems or {node.name: _compared_fields(node) for node in read.nodes} != {
        node.name: _compared_fields(node) for node in topology.nodes
    }:  # such as a line break in a name
        raise UnusableTopologyError("names of its nodes cannot be written as a text of `Topology#describe()`")
    return read


def without_prefix(topology: NodeTopology, application_id: str) -> NodeTopology:
    """Return `topology` with the names of internal topics that a text of the application has.

    The text of `kafka-streams-groups.sh` has their full names. A topic loses the id
    only if names of nodes or of the topic show that Kafka Streams creates it: a user's topic may begin with
    the id, too.
    """
    prefix = f"{application_id}-"
    read = {topic for node in topology.nodes if isinstance(node, SourceNode) for topic in node.topics}
    internal = {
        node.topic: node.topic.removeprefix(prefix)
        for node in topology.nodes
        if isinstance(node, SinkNode)
        and node.topic in read
        and node.topic.startswith(prefix)
        and _is_internal(node.topic.removeprefix(prefix), node.name)
    }
    if not internal:
        return topology
    return attrs.evolve(topology, nodes=tuple(_rename_topics(node, internal) for node in topology.nodes))


def _is_internal(topic: str, sink: str) -> bool:
    return (
        (topic.endswith("-repartition") and sink == f"{topic}-sink")
        or GENERATED_REPARTITION.fullmatch(topic) is not None
        or FOREIGN_KEY_TOPIC.fullmatch(topic) is not None
    )


def _rename_topics(node: Node, internal: Mapping[str, str]) -> Node:
    if isinstance(node, SourceNode):
        return attrs.evolve(node, topics=tuple(internal.get(topic, topic) for topic in node.topics))
    if isinstance(node, SinkNode) and node.topic is not None:
        return attrs.evolve(node, topic=internal.get(node.topic, node.topic))
    return node


def _check_names(nodes: Sequence[PushedNode], internal: Mapping[str, str]) -> None:
    """Refuse a user's topic that a text would show as an internal one: it is written and read."""
    read = {topic for node in nodes for topic in node.topics} - internal.keys()
    for node in nodes:
        topic = node.topic
        if topic in read and (topic.endswith("-repartition") or FOREIGN_KEY_TOPIC.fullmatch(topic)):
            raise UnusableTopologyError(f"the user's topic {topic} is named like an internal topic")


def _internal_names(group: StreamsGroup) -> Mapping[str, str]:
    """Return full name → name without the application id, of repartition topics."""
    prefix = f"{group.id}-"
    full = {topic for part in group.subtopologies for topic in part.repartition_sinks}
    full |= {topic.name for part in group.subtopologies for topic in part.repartition_sources}
    others = sorted(topic for topic in full if not topic.startswith(prefix) or topic == prefix)
    if others:
        raise UnusableTopologyError(
            f"the internal topic {others[0]} does not begin with the application id and a name"
        )
    return {topic: topic.removeprefix(prefix) for topic in full}


def _group_by_subtopology(
    topology: PushedTopology, known: AbstractSet[str]
) -> Iterator[tuple[int, Sequence[PushedNode]]]:
    """Yield the nodes by sub-topology; global stores, whose ids are missing, have the free numbers."""
    if known != topology.subtopologies.keys():
        raise UnusableTopologyError("the nodes have other sub-topologies than the group")
    if not all(_ID.fullmatch(id_) for id_ in known):
        raise UnusableTopologyError("the ids of its sub-topologies are not numbers")
    numbers = {int(id_): nodes for id_, nodes in topology.subtopologies.items()}
    stores = topology.global_stores
    free = [number for number in range(len(known) + len(stores)) if number not in numbers]
    if len(numbers) != len(known) or len(free) != len(stores):
        raise UnusableTopologyError("the ids of its sub-topologies are not consecutive")
    yield from numbers.items()
    yield from zip(free, stores, strict=True)


def _check_topics(part: GroupSubtopology, nodes: Iterable[PushedNode]) -> None:
    """Compare the topics of the nodes with the topics that the coordinator assigns tasks of."""
    sources = [node for node in nodes if node.type is NodeType.SOURCE]
    without = next((node.name for node in sources if not node.topics), None)
    if without is not None:
        raise UnusableTopologyError(
            f"source {without} reads a pattern of topics, which the brokers do not have"
        )
    read = {topic for node in sources for topic in node.topics}
    if read != {*part.sources, *(topic.name for topic in part.repartition_sources)}:
        raise UnusableTopologyError(f"the nodes of sub-topology {part.id} read other topics than the group")


def _in_order(nodes: Sequence[PushedNode], internal: Mapping[str, str]) -> Iterator[Node]:
    """Yield the nodes of a sub-topology, parents first."""
    by_name = {node.name: node for node in nodes}
    parents: dict[str, list[str]] = {name: [] for name in by_name}
    for node in nodes:
        for successor in node.successors:
            if successor not in parents:
                raise UnusableTopologyError(
                    f"node {node.name} names {successor}, which the brokers do not have"
                )
            parents[successor].append(node.name)
    for node in nodes:
        if (node.type is NodeType.SOURCE) is bool(parents[node.name]):
            reason = "has nodes before it" if parents[node.name] else "has no node before it"
            raise UnusableTopologyError(f"node {node.name} {reason}")
    try:
        order = tuple(TopologicalSorter(parents).static_order())
    except CycleError:
        raise UnusableTopologyError("its nodes are a cycle") from None
    for name in order:
        yield _build_node(by_name[name], tuple(parents[name]), internal)


def _build_node(node: PushedNode, parents: tuple[str, ...], internal: Mapping[str, str]) -> Node:
    if node.type is NodeType.SOURCE:
        return SourceNode(node.name, tuple(internal.get(topic, topic) for topic in node.topics))
    if node.type is NodeType.PROCESSOR:
        return ProcessorNode(node.name, parents, node.stores)
    if node.topic is None:
        return SinkNode(node.name, parents, extractor=_EXTRACTOR)
    return SinkNode(node.name, parents, topic=internal.get(node.topic, node.topic))


def _compared_fields(node: Node) -> object:
    if isinstance(node, SourceNode):
        return "source", frozenset(node.topics), node.pattern
    if isinstance(node, ProcessorNode):
        return "processor", frozenset(node.parents), frozenset(node.stores)
    return "sink", frozenset(node.parents), node.topic, node.extractor
