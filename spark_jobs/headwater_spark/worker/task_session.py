"""The session of a task: its producer, its committed offsets, and what a batch commits.

With `exactly_once_v2`, opening a session of a task fences all earlier ones, here or on other machines: their
next transaction fails. So a session never commits on top of outdated offsets. With `at_least_once`, it
proves before a commit that no other session has committed, and that its client is active (`state_proof`).
"""

from collections.abc import Iterable, Mapping
from functools import lru_cache
from types import MappingProxyType

import attrs
from confluent_kafka import Consumer
from confluent_kafka import TopicPartition as KafkaTopicPartition

from headwater.kafka import Connection
from headwater.model.offset_metadata import (
    NOTHING_READ,
    OffsetMetadata,
    ReadPositions,
    decode_count,
    decode_mark,
    decode_positions,
    decode_processor,
    decode_time,
    latest_metadata,
    unread_reason,
)
from headwater_spark.engine.records import Commits, TopicPartition
from headwater_spark.engine.scaling.processors import Processors
from headwater_spark.worker import clients
from headwater_spark.worker.messages import BatchRequest
from headwater_spark.worker.record_sender import size_settings
from headwater_spark.worker.state_proof import CommittedState, StateProof, boot_seconds
from headwater_spark.worker.transaction import AtLeastOnceProducer, TaskProducer, TransactionalProducer

_PROOF_SECONDS = 5.0
"""A proof that takes longer fails: with exactly once, a transaction of another process may be open."""


class OtherProcessorError(Exception):
    """A partition was processed by another processor, which has its state (KIP-287)."""

    def __init__(self, topic: str, partition: int, owner: int | None, processor: int) -> None:
        super().__init__(
            f"partition {partition} of {topic} belongs to processor {owner}, not to processor {processor}: "
            "its state is there"
        )


class OtherNumberError(Exception):
    """The state has another number of processors (KIP-287)."""

    def __init__(self, topic: str, partition: int, count: int) -> None:
        super().__init__(f"partition {partition} of {topic} is not read: the state has {count} processors")


class UnreadableMetadataError(Exception):
    """The text that is committed for a partition is of a later version of Headwater, or beyond its bounds."""

    def __init__(self, topic: str, partition: int, offset: int, reason: str) -> None:
        super().__init__(
            f"partition {partition} of {topic} is not read: the text that is committed with its offset "
            f"{offset} is {reason}"
        )


class MoveIncompleteError(Exception):
    """The state of a task is being moved to another number of processors (KIP-287)."""

    def __init__(self, topic: str, partition: int) -> None:
        super().__init__(
            f"partition {partition} of {topic} is not read: a move of the state to another number of "
            "processors is not complete"
        )


@attrs.define
class TaskSession:
    """A task's producer, its latest offset metadata, and the committed `offsets` of its input partitions.

    Partitions without a committed offset are missing in `offsets`. `positions` is topic partition → what was
    processed beyond its offset.
    """

    producer: "TaskProducer"
    metadata: OffsetMetadata
    offsets: dict[TopicPartition, int]
    positions: dict[TopicPartition, ReadPositions] = attrs.field(factory=dict)
    task: int | None = None
    """The number of the task; None = the number of its partitions."""
    times: dict[TopicPartition, int] = attrs.field(factory=dict)
    """The largest timestamps of the input partitions so far, where known."""
    processors: Processors | None = None
    """The processors of the sub-topology; None = task and partition have the same number."""
    committed: Commits = attrs.field(factory=dict)
    """What the last batch has committed: topic partition → offset and metadata."""
    proof: StateProof | None = attrs.field(default=None, eq=False)
    """Proves that no other session has committed; None: there can be no other one."""

    @property
    def has_positions(self) -> bool:
        return any(self.positions.values())

    def commit(
        self,
        offsets: Mapping[TopicPartition, int],
        times: Mapping[TopicPartition, int],
        metadata: OffsetMetadata,
        positions: Mapping[TopicPartition, ReadPositions] = MappingProxyType({}),
    ) -> None:
        """Commit the records sent so far with `offsets`; `times` are the largest timestamps of the batch.

        `positions` replace the positions of their partitions; positions up to the offset are removed.
        """
        for partition, offset in offsets.items():
            read = positions.get(partition, self.positions.get(partition, NOTHING_READ))
            self.positions[partition] = {
                writer: position for writer, position in read.items() if position > offset
            }
        for partition, time in times.items():
            self.times[partition] = max(time, self.times.get(partition, -1))
        initial = None if self.processors is None else self.processors.recorded_initial
        count = None if self.processors is None else self.processors.recorded_count
        declared = None if self.processors is None else self.processors.count
        commits = {
            partition: (
                offset,
                metadata.encode(
                    self.times.get(partition, -1),
                    self.positions[partition],
                    self._processor(partition),
                    initial=initial,
                    count=count,
                    declared=declared,
                ),
            )
            for partition, offset in offsets.items()
        }
        self.producer.commit(commits)
        self.committed = commits
        self.offsets.update(offsets)
        self.metadata = metadata

    def _processor(self, partition: TopicPartition) -> int | None:
        return None if partition[1] == self.task else self.task


def open_session(request: BatchRequest, partition: int, *, single: bool = False) -> TaskSession:
    """Fence earlier sessions of the task, then read its committed offsets; raises `KafkaException`.

    With `single`, each record is written by a request of its own: slow, but refused records are known.

    Raises:
        OtherProcessorError: The state for an input partition belongs to another processor, and the document
            does not accept to lose it.
        UnreadableMetadataError: A committed text must not be replaced.
        OtherNumberError: Processors were removed or added since the request was made.
        MoveIncompleteError: The state is being moved to another number of processors.
    """
    reader = _offset_reader(request.connection, request.group)
    producer = _open_producer(request, partition, single=single)
    started = boot_seconds()
    # Read only now: with exactly once, an earlier owner of the task cannot commit any more.
    committed = clients.read_committed(reader, request.input_partitions(partition))
    for found in committed:
        reason = unread_reason(found.metadata or "")
        if reason is not None and not request.may_lose_state:
            raise UnreadableMetadataError(found.topic, found.partition, found.offset, reason.value)
        if decode_mark(found.metadata or "") is not None:
            raise MoveIncompleteError(found.topic, found.partition)
        owner = decode_processor(found.metadata or "", found.partition)
        if owner not in (None, partition) and not request.may_lose_state:
            raise OtherProcessorError(found.topic, found.partition, owner, partition)
        count = decode_count([found.metadata or ""])
        if count not in (None, request.tasks) and not request.may_lose_state:
            raise OtherNumberError(found.topic, found.partition, count)
    state = _committed_state(committed)
    positions = {
        (found.topic, found.partition): read
        for found in committed
        if (read := decode_positions(found.metadata or ""))
    }
    times = {(found.topic, found.partition): decode_time(found.metadata or "") for found in committed}
    session = TaskSession(
        producer, state.metadata, dict(state.offsets), positions, partition, times, request.processors
    )
    session.proof = StateProof(
        request,
        partition,
        lambda: CommittedState(session.metadata, session.offsets),
        lambda: _committed_state(
            clients.read_committed(reader, request.input_partitions(partition), _PROOF_SECONDS)
        ),
        at=started,
    )
    if isinstance(producer, AtLeastOnceProducer):
        producer.before_commit = session.proof.before_commit
    return session


def _committed_state(committed: Iterable[KafkaTopicPartition]) -> CommittedState:
    found = tuple(committed)
    return CommittedState(
        latest_metadata(each.metadata or "" for each in found) or OffsetMetadata(),
        {(each.topic, each.partition): each.offset for each in found if each.offset >= 0},
    )


def _open_producer(request: BatchRequest, partition: int, *, single: bool) -> "TaskProducer":
    reader, name = _offset_reader(request.connection, request.group), request.task_name(partition)
    sizes = size_settings(request.program.settings.largest_request)
    if not request.exactly_once:
        return AtLeastOnceProducer(request.connection, name, reader, single=single, settings=sizes)
    topic = next((topic for topic, _ in request.input_partitions(partition)), None)
    return TransactionalProducer(request.connection, name, reader, single=single, topic=topic, settings=sizes)


@lru_cache(maxsize=8)
def _offset_reader(connection: Connection, group: str) -> Consumer:
    return clients.create_consumer(connection, group)
