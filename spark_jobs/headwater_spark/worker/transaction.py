"""A task's producer and committed offsets: how a batch's records and offsets are committed.

With `exactly_once_v2`, opening a session of a task fences all earlier ones, here or on other machines: their
next transaction fails. So a session never commits on top of outdated offsets. With `at_least_once`, it
proves before a commit that no other session has committed, and that its client is active (`state_proof`).
"""

import time
from collections.abc import Callable, Iterable, Mapping
from contextlib import suppress
from functools import lru_cache, partial
from types import MappingProxyType
from typing import Any, Protocol

import attrs
from confluent_kafka import Consumer, KafkaException
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
    latest_metadata,
    unread_reason,
)
from headwater_spark.engine.records import OutputRecord, TopicPartition
from headwater_spark.engine.scaling.processors import Processors
from headwater_spark.worker import clients
from headwater_spark.worker.messages import BatchRequest
from headwater_spark.worker.record_sender import DeliveryReports, RecordSender, producer_settings
from headwater_spark.worker.refusals import RecordsRefusedError
from headwater_spark.worker.state_proof import CommittedState, StateProof, boot_seconds

Commits = Mapping[TopicPartition, tuple[int, str]]
"""Topic partition → (next offset to read, text of the offset metadata)"""

_GRACE_SECONDS = 5.0
_ABORT_SECONDS = 5.0
"""An abort that takes longer is left to the next producer with the transactional id, or to the brokers."""
_CONNECT_SECONDS = 2.0
_REPORT_SECONDS = 1.0
_DELIVERY_SECONDS = 0.1
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
        """Commit the records sent so far with `offsets`; `times` are the largest timestamps read.

        `positions` replace the positions of their partitions; positions up to the offset are removed.
        """
        for partition, offset in offsets.items():
            read = positions.get(partition, self.positions.get(partition, NOTHING_READ))
            self.positions[partition] = {
                writer: position for writer, position in read.items() if position > offset
            }
        initial = None if self.processors is None else self.processors.recorded_initial
        count = None if self.processors is None else self.processors.recorded_count
        commits = {
            partition: (
                offset,
                metadata.encode(
                    times.get(partition, -1),
                    self.positions[partition],
                    self._processor(partition),
                    initial=initial,
                    count=count,
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
    committed = clients.committed(reader, request.input_partitions(partition))
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
    session = TaskSession(
        producer, state.metadata, dict(state.offsets), positions, partition, request.processors
    )
    session.proof = StateProof(
        request,
        partition,
        lambda: CommittedState(session.metadata, session.offsets),
        lambda: _committed_state(
            clients.committed(reader, request.input_partitions(partition), _PROOF_SECONDS)
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
    if not request.exactly_once:
        return AtLeastOnceProducer(request.connection, name, reader, single=single)
    topic = next((topic for topic, _ in request.input_partitions(partition)), None)
    return TransactionalProducer(request.connection, name, reader, single=single, topic=topic)


@lru_cache(maxsize=8)
def _offset_reader(connection: Connection, group: str) -> Consumer:
    return clients.consumer(connection, group)


class TaskProducer(Protocol):
    def send(self, records: Iterable[OutputRecord]) -> int:
        """Send `records`; return their number.

        Raises:
            TaskMigrated: A record's partition does not exist.
            RecordsRefusedError: A record is too large.
            KafkaException: Kafka fails.
        """
        ...

    def commit(self, commits: Commits) -> None:
        """Commit the records sent so far, and the offsets with their metadata.

        Raises:
            RecordsRefusedError: The brokers refuse records for what they contain.
            KafkaException: Kafka fails.
        """
        ...

    def abort(self) -> None:
        """Discard the records sent since the last commit, as far as possible; never raises."""
        ...


class TransactionalProducer:
    """Commits records, offsets and metadata in one transaction (`exactly_once_v2`).

    A new producer with the same id aborts the transaction of an earlier one and fences it. `topic` is one
    that exists: its metadata are read to connect the client. With `is_prepared` it is only connected: it does
    nothing else until `fence` is called. `settings` replace settings of a task's producer.
    """

    def __init__(
        self,
        connection: Connection,
        transactional_id: str,
        reader: Consumer,
        *,
        single: bool = False,
        topic: str | None = None,
        is_prepared: bool = False,
        settings: Mapping[str, Any] | None = None,
    ) -> None:
        self._reader = reader
        self._reports = DeliveryReports()
        self._producer = clients.producer(
            connection,
            {
                **producer_settings(single=single),
                **(settings or {}),
                "transactional.id": transactional_id,
                "client.id": transactional_id,
                "transaction.timeout.ms": 600_000 if single else 60_000,
                "on_delivery": self._reports.note,
            },
        )
        if topic is not None:
            self._connect(topic)
        self._sender = RecordSender(self._producer, self._reports if single else None)
        self._is_open = False
        if not is_prepared:
            self.fence()

    def fence(self) -> None:
        """Abort the transaction of an earlier producer with the same id, and fence it."""
        self._producer.init_transactions(clients.REQUEST_SECONDS)

    def _connect(self, topic: str) -> None:
        """Wait until the client is connected to a broker.

        If it is not when it requests its producer id, librdkafka (2.16) repeats that after half a second. The
        first answer may come from a bootstrap server, whose connection it closes then.
        """
        with suppress(KafkaException):  # without an answer, the next request has the longer time-out
            for _ in range(2):
                self._producer.list_topics(topic, _CONNECT_SECONDS)

    def send(self, records: Iterable[OutputRecord]) -> int:
        self._begin()
        try:
            return self._sender.send(records)
        except RecordsRefusedError:
            raise
        except KafkaException:
            self._check_reports()
            raise

    def commit(self, commits: Commits) -> None:
        self._begin()
        offsets, group = _kafka_partitions(commits), self._reader.consumer_group_metadata()
        try:
            if offsets:
                self._call(
                    "send offsets", partial(self._producer.send_offsets_to_transaction, offsets, group)
                )
            self._deliver()
            self._call("commit", self._producer.commit_transaction)
        except KafkaException:
            self._check_reports()
            raise
        self._is_open = False

    def _check_reports(self) -> None:
        """Raise the reason for the failure of a transaction, if it is a refused record.

        That makes all later requests fail, and its delivery report may be on the way, behind others.
        """
        deadline = time.monotonic() + _REPORT_SECONDS
        while not self._reports.has_refusal and time.monotonic() < deadline:
            self._producer.poll(_DELIVERY_SECONDS)
        while self._producer.poll(0):
            pass
        self._reports.check()

    def _deliver(self) -> None:
        """Wait until all records are delivered, or one is not.

        After a refusal, librdkafka (2.16) often does not send the others. The commit would wait for them
        until it times out, and then the transaction could not be aborted.
        """
        deadline = time.monotonic() + clients.REQUEST_SECONDS
        while self._producer.flush(_DELIVERY_SECONDS) and time.monotonic() < deadline:
            self._reports.check()

    def abort(self) -> None:
        if self._is_open:
            self._is_open = False
            with suppress(KafkaException):  # fenced, or no broker: the next producer with this id aborts it
                self._call("abort", self._abort, min(_ABORT_SECONDS, clients.REQUEST_SECONDS))

    def _abort(self, seconds: float) -> None:
        """Abort the transaction, without waiting for its requests.

        The brokers refuse the requests that follow a refused one. librdkafka (2.16) queues their records
        again; it does not send them any more, but its abort waits for them until it times out. Once they
        are purged, it aborts by a new epoch of the producer: brokers refuse requests that arrive later.
        """
        self._producer.purge()
        self._producer.abort_transaction(seconds)

    @staticmethod
    def _call(what: str, request: Callable[[float], None], seconds: float | None = None) -> None:
        """Call a function that takes its time-out as last argument, and may exceed it."""
        seconds = clients.REQUEST_SECONDS if seconds is None else seconds
        clients.call_with_timeout(seconds + _GRACE_SECONDS, what, lambda: request(seconds))

    def _begin(self) -> None:
        if not self._is_open:
            self._producer.begin_transaction()
            self._is_open = True


class AtLeastOnceProducer:
    """Delivers the records first, then commits the offsets (`at_least_once`)."""

    def __init__(
        self,
        connection: Connection,
        client_id: str,
        reader: Consumer,
        *,
        single: bool = False,
    ) -> None:
        self.before_commit: Callable[[], None] = _nothing
        """Called when all records are delivered, before offsets are committed."""
        self._reader = reader
        self._reports = DeliveryReports()
        self._producer = clients.producer(
            connection,
            {
                **producer_settings(single=single),
                "client.id": client_id,
                "enable.idempotence": True,
                # Shorter than the time after which another executor gets the task of a silent one (45 s): a
                # worker that was stopped discards its records when it continues. Java: 120 s.
                "message.timeout.ms": 40_000,
                "on_delivery": self._reports.note,
            },
        )
        self._sender = RecordSender(self._producer, self._reports if single else None)

    def send(self, records: Iterable[OutputRecord]) -> int:
        return self._sender.send(records)

    def commit(self, commits: Commits) -> None:
        self._deliver()
        self._reports.check()
        self.before_commit()
        clients.call_with_timeout(
            clients.REQUEST_SECONDS + _GRACE_SECONDS, "commit offsets", partial(self._commit_offsets, commits)
        )

    def _deliver(self) -> None:
        """Wait until all records are delivered; raise `KafkaException` if none is for a request's time."""
        left, silence = len(self._producer), clients.Silence("record was delivered")
        while still_left := self._producer.flush(_DELIVERY_SECONDS):
            silence.check(is_silent=still_left >= left)
            left = still_left

    def _commit_offsets(self, commits: Commits) -> None:
        """Commit the offsets; a request that is answered too late has no effect that a later one keeps."""
        for partition in self._reader.commit(offsets=_kafka_partitions(commits), asynchronous=False) or ():
            if partition.error is not None:
                raise KafkaException(partition.error)

    def abort(self) -> None:
        self._producer.purge()


def _nothing() -> None:
    """Do nothing."""


def _kafka_partitions(commits: Commits) -> list[KafkaTopicPartition]:
    return [
        KafkaTopicPartition(*partition, offset, metadata) for partition, (offset, metadata) in commits.items()
    ]
