"""Streams groups for tests: of a description, of a compiled application, and as bytes of the protocol."""

from collections.abc import Iterable, Sequence
from struct import pack

from headwater.compiler.described.names import FOREIGN_KEY_TOPIC
from headwater.kafka.wire import compact_array, compact_text
from headwater.model.compiled import CompiledApplication
from headwater.model.nodes import Node, NodeTopology, ProcessorNode, SinkNode, SourceNode
from headwater.model.streams_groups import (
    DescriptionStatus,
    GroupSubtopology,
    GroupTopic,
    NodeType,
    PushedNode,
    PushedTopology,
    StreamsGroup,
    StreamsMember,
)

_TAGS = b"\x00"


def group_of_text(id_: str, topology: NodeTopology) -> StreamsGroup:
    """Return the group of an application that has sent this topology, which was read from a text."""
    written = {node.topic for node in topology.nodes if isinstance(node, SinkNode)}
    internal = {
        topic
        for node in topology.nodes
        if isinstance(node, SourceNode)
        for topic in node.topics
        if topic in written and (topic.endswith("-repartition") or FOREIGN_KEY_TOPIC.fullmatch(topic))
    }
    blocks: dict[int, list[Node]] = {}
    for node in topology.nodes:
        blocks.setdefault(topology.printed_groups[node.name], []).append(node)
    pushed = {
        number: tuple(_pushed(node, topology, f"{id_}-", internal) for node in nodes)
        for number, nodes in blocks.items()
    }
    global_ids = {topology.printed_groups[name] for name in topology.global_nodes}
    return StreamsGroup(
        id=id_,
        state="Stable",
        topology_epoch=0,
        subtopologies=tuple(
            _subtopology(number, nodes, {f"{id_}-{topic}" for topic in internal})
            for number, nodes in sorted(pushed.items())
            if number not in global_ids
        ),
        members=(StreamsMember(id="m", client_id="client-1", active={"0": (0, 1)}),),
        status=DescriptionStatus.AVAILABLE,
        nodes=PushedTopology(
            {str(number): nodes for number, nodes in pushed.items() if number not in global_ids},
            tuple(_source_first(pushed[number]) for number in sorted(global_ids)),
        ),
    )


def _source_first(nodes: Sequence[PushedNode]) -> tuple[PushedNode, PushedNode]:
    source, processor = sorted(nodes, key=lambda node: node.type)
    return source, processor


def _pushed(node: Node, topology: NodeTopology, prefix: str, internal: set[str]) -> PushedNode:
    successors = topology.listing[node.name][0]
    if isinstance(node, SourceNode):
        topics = tuple(prefix + topic if topic in internal else topic for topic in node.topics)
        return PushedNode(name=node.name, type=NodeType.SOURCE, topics=topics, successors=successors)
    if isinstance(node, ProcessorNode):
        return PushedNode(name=node.name, type=NodeType.PROCESSOR, stores=node.stores, successors=successors)
    topic = prefix + node.topic if node.topic in internal and node.topic else node.topic
    return PushedNode(name=node.name, type=NodeType.SINK, topic=topic)


def _subtopology(number: int, nodes: Sequence[PushedNode], internal: set[str]) -> GroupSubtopology:
    read = sorted({topic for node in nodes for topic in node.topics})
    return GroupSubtopology(
        id=str(number),
        sources=tuple(topic for topic in read if topic not in internal),
        repartition_sources=tuple(GroupTopic(name=topic) for topic in read if topic in internal),
        repartition_sinks=tuple(sorted({str(node.topic) for node in nodes if node.topic in internal})),
    )


def group_of_application(compiled: CompiledApplication) -> StreamsGroup:
    """Return the group of a running application that was compiled from a document, without nodes."""
    topics = {
        topic.name: GroupTopic(name=topic.name, partitions=topic.partitions, config=topic.config)
        for topic in compiled.internal_topics
    }
    internal = topics.keys()
    return StreamsGroup(
        id=compiled.application.id,
        state="Stable",
        topology_epoch=0,
        subtopologies=tuple(
            GroupSubtopology(
                id=str(part.id),
                sources=tuple(topic for topic in part.sources if topic not in internal),
                repartition_sinks=tuple(topic for topic in part.sinks if topic in internal),
                repartition_sources=tuple(topics[name] for name in sorted(part.repartition_topics)),
                changelogs=tuple(topics[name] for name in sorted(part.changelog_topics)),
            )
            for part in compiled.subtopologies
            if not part.is_global
        ),
        members=(StreamsMember(id="m", client_id="client-1", topology_epoch=0),),
    )


def encoded(groups: Iterable[StreamsGroup], version: int, error: int = 0) -> bytes:
    """Return the answer to StreamsGroupDescribe as Kafka writes it."""
    return pack(">i", 0) + compact_array(_group(group, version, error) for group in groups) + _TAGS


def _group(group: StreamsGroup, version: int, error: int) -> bytes:
    topology = b"\xff"
    if group.topology_epoch is not None:
        parts = compact_array(map(_encoded_subtopology, group.subtopologies))
        topology = b"\x01" + pack(">i", group.topology_epoch) + parts + _TAGS
    nodes = b""
    if version:
        nodes = b"\xff" if group.nodes is None else b"\x01" + _encoded_nodes(group.nodes)
        nodes += pack(">b", group.status) + compact_text(group.assignor)
    return b"".join(
        (
            *(pack(">h", error), compact_text(""), compact_text(group.id), compact_text(group.state)),
            *(pack(">ii", group.epoch, group.assignment_epoch), topology),
            *(compact_array(map(_encoded_member, group.members)), pack(">i", -(2**31)), nodes, _TAGS),
        )
    )


def _texts(texts: Iterable[str]) -> bytes:
    return compact_array(map(compact_text, texts))


def _encoded_subtopology(part: GroupSubtopology) -> bytes:
    return b"".join(
        (
            *(compact_text(part.id), _texts(part.sources), _texts(part.repartition_sinks)),
            *(compact_array(map(_encoded_topic, part.changelogs)),),
            *(compact_array(map(_encoded_topic, part.repartition_sources)), _TAGS),
        )
    )


def _encoded_topic(topic: GroupTopic) -> bytes:
    pairs = (compact_text(key) + compact_text(value) + _TAGS for key, value in topic.config.items())
    counts = pack(">ih", topic.partitions, topic.replication_factor)
    return compact_text(topic.name) + counts + compact_array(pairs) + _TAGS


def _encoded_member(member: StreamsMember) -> bytes:
    endpoint = b"\x01" + compact_text("host") + pack(">H", 65_000) + _TAGS
    offsets = compact_array([compact_text("0") + pack(">iq", 0, 17) + _TAGS])
    return b"".join(
        (
            *(compact_text(member.id), pack(">i", 3), compact_text(""), compact_text("")),
            *(compact_text(member.client_id), compact_text(member.host), pack(">i", member.topology_epoch)),
            *(compact_text(member.process_id), endpoint),
            *(compact_array([compact_text("zone") + compact_text("a") + _TAGS]), offsets, offsets),
            *(_encoded_assignment(member), _encoded_assignment(member)),
            *(b"\x01" if member.is_classic else b"\x00", _TAGS),
        )
    )


def _encoded_assignment(member: StreamsMember) -> bytes:
    return (
        b"".join(
            compact_array(
                compact_text(id_) + compact_array(pack(">i", number) for number in numbers) + _TAGS
                for id_, numbers in tasks.items()
            )
            for tasks in (member.active, member.standby, member.warm_up)
        )
        + _TAGS
    )


def _encoded_nodes(topology: PushedTopology) -> bytes:
    parts = compact_array(
        compact_text(id_) + compact_array(map(_encoded_node, nodes)) + _TAGS
        for id_, nodes in topology.subtopologies.items()
    )
    stores = (
        _encoded_node(source) + _encoded_node(processor) + _TAGS
        for source, processor in topology.global_stores
    )
    return parts + compact_array(stores) + _TAGS


def _encoded_node(node: PushedNode) -> bytes:
    topic = b"\x00" if node.topic is None else compact_text(node.topic)
    return b"".join(
        (
            *(compact_text(node.name), pack(">b", node.type), _texts(node.topics), topic),
            *(_texts(node.stores), _texts(node.successors), _TAGS),
        )
    )
