"""The request StreamsGroupDescribe (KIP-1071, KIP-1331), and the values of its answers.

Version 0 (Kafka 4.1) has sub-topologies, internal topics and members; version 1 (Kafka 4.4) also has the
nodes, if the brokers have a plugin that stores them. Clients of a cluster decide most of the content, so it
is bounded.
"""

from collections.abc import Callable, Iterable, Mapping, Sequence
from functools import partial
from typing import TypeVar

import attrs
from confluent_kafka import KafkaError

from headwater.kafka.broker_connection import Message
from headwater.kafka.wire import NO_TAGS, ResponseReader, compact_array, compact_text
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

DESCRIBE_STREAMS_GROUPS = Message("StreamsGroupDescribe", 89, 0, 1)

T = TypeVar("T")
_WITH_NODES = 1
"""The first version with the nodes of the topology."""
_MOST_ITEMS = 1_000_000
"""Items of all lists in one answer. A topology of 10,000 nodes has about 50,000."""
_NULL = -1


def describe_streams_groups(version: int, ids: Iterable[str], *, with_nodes: bool) -> bytes:
    """Return the body; the user's operations are not requested."""
    nodes = (b"\x01" if with_nodes else b"\x00") if version >= _WITH_NODES else b""
    return compact_array(map(compact_text, ids)) + b"\x00" + nodes + NO_TAGS


def streams_groups(version: int, reader: ResponseReader) -> Sequence[tuple[str, StreamsGroup | KafkaError]]:
    """Return the answer to StreamsGroupDescribe; raises `ValueError` if it is none, or too large."""
    reader.skip(4)  # throttle time
    answer = _Answer(reader)
    return answer.items(partial(_read_group, answer, version))


@attrs.define
class _Answer:
    """An answer that is being read; `remaining` is the number of items that it may still have."""

    reader: ResponseReader
    remaining: int = attrs.field(factory=lambda: _MOST_ITEMS)

    def items(self, read: Callable[[], T]) -> tuple[T, ...]:
        """Return the items of an array, each read by `read`."""

        def counted() -> T:
            self.remaining -= 1
            if self.remaining < 0:
                raise ValueError(f"the description of streams groups has more than {_MOST_ITEMS:,} items")
            return read()

        return tuple(self.reader.compact_array(counted))

    def texts(self) -> tuple[str, ...]:
        return self.items(self.reader.compact_text)

    def is_present(self) -> bool:
        """Return whether a nullable struct is not null."""
        return self.reader.number(1) != _NULL


def _read_group(answer: _Answer, version: int) -> tuple[str, StreamsGroup | KafkaError]:
    reader = answer.reader
    code = reader.number(2)
    reader.compact_text()  # message
    id_, state = reader.compact_text(), reader.compact_text()
    epoch, assignment_epoch = reader.number(4), reader.number(4)
    topology_epoch, subtopologies = _read_topology(answer) if answer.is_present() else (None, ())
    members = answer.items(partial(_read_member, answer))
    reader.skip(4)  # operations
    nodes, status, assignor = None, DescriptionStatus.NOT_REQUESTED, ""
    if version >= _WITH_NODES:
        nodes = _pushed_topology(answer) if answer.is_present() else None
        status = DescriptionStatus(reader.number(1))
        assignor = reader.compact_text()
    reader.tagged_fields()
    if code:
        return id_, KafkaError(code)
    return id_, StreamsGroup(
        id=id_,
        state=state,
        epoch=epoch,
        assignment_epoch=assignment_epoch,
        topology_epoch=topology_epoch,
        subtopologies=subtopologies,
        members=members,
        status=status if nodes is not None or status is not DescriptionStatus.AVAILABLE else _MISSING,
        nodes=nodes if status is DescriptionStatus.AVAILABLE else None,
        assignor=assignor,
    )


_MISSING = DescriptionStatus.NOT_STORED
"""The status of an answer that says that there are nodes, and has none."""


def _read_topology(answer: _Answer) -> tuple[int, tuple[GroupSubtopology, ...]]:
    epoch = answer.reader.number(4)
    subtopologies = answer.items(partial(_read_subtopology, answer))
    answer.reader.tagged_fields()
    return epoch, subtopologies


def _read_subtopology(answer: _Answer) -> GroupSubtopology:
    id_ = answer.reader.compact_text()
    sources, sinks = answer.texts(), answer.texts()
    changelogs = answer.items(partial(_read_topic, answer))
    repartitions = answer.items(partial(_read_topic, answer))
    answer.reader.tagged_fields()
    return GroupSubtopology(
        id=id_,
        sources=tuple(sorted(sources)),
        repartition_sinks=tuple(sorted(sinks)),
        repartition_sources=tuple(sorted(repartitions, key=lambda topic: topic.name)),
        changelogs=tuple(sorted(changelogs, key=lambda topic: topic.name)),
    )


def _read_topic(answer: _Answer) -> GroupTopic:
    reader = answer.reader
    name, partitions, factor = reader.compact_text(), reader.number(4), reader.number(2)
    config = dict(answer.items(partial(_read_pair, reader)))
    reader.tagged_fields()
    return GroupTopic(name=name, partitions=partitions, replication_factor=factor, config=config)


def _read_pair(reader: ResponseReader) -> tuple[str, str]:
    key, value = reader.compact_text(), reader.compact_text()
    reader.tagged_fields()
    return key, value


def _read_member(answer: _Answer) -> StreamsMember:
    reader = answer.reader
    id_ = reader.compact_text()
    reader.skip(4)  # epoch
    reader.compact_text()  # id of the instance
    reader.compact_text()  # rack
    client_id, host = reader.compact_text(), reader.compact_text()
    topology_epoch, process_id = reader.number(4), reader.compact_text()
    if answer.is_present():  # the endpoint of the user (`application.server`)
        reader.compact_text()
        reader.skip(2)
        reader.tagged_fields()
    answer.items(partial(_read_pair, reader))  # tags of the client
    for _ in range(2):
        answer.items(partial(_task_offset, reader))
    active, standby, warm_up = _read_assignment(answer)
    _read_assignment(answer)  # the target
    is_classic = reader.number(1) != 0
    reader.tagged_fields()
    return StreamsMember(
        id=id_,
        client_id=client_id,
        host=host,
        process_id=process_id,
        topology_epoch=topology_epoch,
        is_classic=is_classic,
        active=active,
        standby=standby,
        warm_up=warm_up,
    )


def _task_offset(reader: ResponseReader) -> None:
    reader.compact_text()
    reader.skip(12)
    reader.tagged_fields()


_Tasks = Mapping[str, tuple[int, ...]]


def _read_assignment(answer: _Answer) -> tuple[_Tasks, _Tasks, _Tasks]:
    """Return the active, standby and warm-up tasks: sub-topology → partitions."""
    active, standby, warm_up = (dict(answer.items(partial(_read_tasks, answer))) for _ in range(3))
    answer.reader.tagged_fields()
    return active, standby, warm_up


def _read_tasks(answer: _Answer) -> tuple[str, tuple[int, ...]]:
    subtopology = answer.reader.compact_text()
    partitions = answer.items(partial(answer.reader.number, 4))
    answer.reader.tagged_fields()
    return subtopology, tuple(sorted(partitions))


def _pushed_topology(answer: _Answer) -> PushedTopology:
    subtopologies = dict(answer.items(partial(_pushed_subtopology, answer)))
    stores = answer.items(partial(_global_store, answer))
    answer.reader.tagged_fields()
    return PushedTopology(subtopologies, stores)


def _pushed_subtopology(answer: _Answer) -> tuple[str, tuple[PushedNode, ...]]:
    id_ = answer.reader.compact_text()
    nodes = answer.items(partial(_read_node, answer))
    answer.reader.tagged_fields()
    return id_, nodes


def _global_store(answer: _Answer) -> tuple[PushedNode, PushedNode]:
    source, processor = _read_node(answer), _read_node(answer)
    answer.reader.tagged_fields()
    return source, processor


def _read_node(answer: _Answer) -> PushedNode:
    reader = answer.reader
    name, type_ = reader.compact_text(), NodeType(reader.number(1))
    topics, topic = answer.texts(), reader.compact_text()
    stores, successors = answer.texts(), answer.texts()
    reader.tagged_fields()
    return PushedNode(
        name=name, type=type_, topics=topics, topic=topic or None, stores=stores, successors=successors
    )
