"""A task's producer and committed offsets: how a batch's records and offsets are committed.

Opening a session of a task fences all earlier ones, here or on other machines: their next transaction fails.
So a session never commits on top of outdated offsets.
"""

from collections.abc import Callable, Iterable, Mapping
from contextlib import suppress
from functools import lru_cache, partial
from typing import Any, Protocol

import attrs
from confluent_kafka import Consumer, KafkaError, KafkaException, Message, Producer
from confluent_kafka import TopicPartition as KafkaTopicPartition

from infra.observe import Connection
from spark_jobs.runtime.engine.partitioners.static import TaskMigrated
from spark_jobs.runtime.engine.records import OutputRecord, TopicPartition
from spark_jobs.runtime.worker import clients
from spark_jobs.runtime.worker.messages import BatchRequest
from spark_jobs.runtime.worker.offset_metadata import OffsetMetadata, latest_metadata

Commits = Mapping[TopicPartition, tuple[int, str]]
"""Topic partition → (next offset to read, text of the offset metadata)"""

_POLL_EVERY = 10_000
_GRACE_SECONDS = 5.0
_REPORT_SECONDS = 1.0
_SETTINGS: Mapping[str, Any] = {
    "partitioner": "murmur2_random",  # Java's default partitioner
    "linger.ms": 5,
    "retry.backoff.ms": 10,  # a transaction right after another one waits for its markers
    "batch.size": 262_144,
    "message.max.bytes": 1_048_588,  # the brokers' default; librdkafka's own is a little smaller
    "queue.buffering.max.messages": 500_000,
    "queue.buffering.max.kbytes": 262_144,
    "delivery.report.only.error": True,
}
_ANY_PARTITION = -1
_EARLIEST_MS = 1
"""The smallest timestamp that can be written: librdkafka replaces 0 by the current time."""


@attrs.define
class TaskSession:
    """A task's producer, its latest offset metadata, and the committed `offsets` of its input partitions.

    Partitions without a committed offset are missing in `offsets`.
    """

    producer: "TaskProducer"
    metadata: OffsetMetadata
    offsets: dict[TopicPartition, int]

    def commit(
        self,
        offsets: Mapping[TopicPartition, int],
        times: Mapping[TopicPartition, int],
        metadata: OffsetMetadata,
    ) -> None:
        """Commit the records sent so far with `offsets`; `times` are the largest timestamps read."""
        self.producer.commit(
            {
                partition: (offset, metadata.encode(times.get(partition, -1)))
                for partition, offset in offsets.items()
            }
        )
        self.offsets.update(offsets)
        self.metadata = metadata


def open_session(request: BatchRequest, partition: int) -> TaskSession:
    """Fence earlier sessions of the task, then read its committed offsets; raises `KafkaException`."""
    reader = _offset_reader(request.connection, request.group)
    producer = _open_producer(request, request.task_name(partition))
    # Read only now: an earlier owner of the task cannot commit any more.
    committed = clients.committed(reader, request.input_partitions(partition))
    metadata = latest_metadata(found.metadata or "" for found in committed) or OffsetMetadata()
    offsets = {(found.topic, found.partition): found.offset for found in committed if found.offset >= 0}
    return TaskSession(producer, metadata, offsets)


def _open_producer(request: BatchRequest, name: str) -> "TaskProducer":
    reader = _offset_reader(request.connection, request.group)
    if request.exactly_once:
        return TransactionalProducer(request.connection, name, reader)
    return AtLeastOnceProducer(request.connection, name, reader)


@lru_cache(maxsize=8)
def _offset_reader(connection: Connection, group: str) -> Consumer:
    return clients.consumer(connection, group)


class TaskProducer(Protocol):
    def send(self, records: Iterable[OutputRecord]) -> int:
        """Send `records`; return their number.

        Raises:
            TaskMigrated: A record's partition does not exist.
            KafkaException: Kafka refuses a record.
        """
        ...

    def commit(self, commits: Commits) -> None:
        """Commit the records sent so far, and the offsets with their metadata; raises `KafkaException`."""
        ...

    def abort(self) -> None:
        """Discard the records sent since the last commit, as far as possible; never raises."""
        ...


class TransactionalProducer:
    """Commits records, offsets and metadata in one transaction (`exactly_once_v2`).

    A new producer with the same id aborts the transaction of an earlier one and fences it.
    """

    def __init__(self, connection: Connection, transactional_id: str, reader: Consumer) -> None:
        self._reader = reader
        self._reports = _DeliveryReports()
        self._producer = clients.producer(
            connection,
            {
                **_SETTINGS,
                "transactional.id": transactional_id,
                "client.id": transactional_id,
                "transaction.timeout.ms": 60_000,
                "on_delivery": self._reports.note,
            },
        )
        self._producer.init_transactions(clients.REQUEST_SECONDS)
        self._sender = _Sender(self._producer)
        self._is_open = False

    def send(self, records: Iterable[OutputRecord]) -> int:
        self._begin()
        return self._sender.send(records)

    def commit(self, commits: Commits) -> None:
        self._begin()
        offsets, group = _kafka_partitions(commits), self._reader.consumer_group_metadata()
        try:
            self._call("send offsets", partial(self._producer.send_offsets_to_transaction, offsets, group))
            self._call("commit", self._producer.commit_transaction)
        except KafkaException:
            # A refused record makes the transaction fail; wait for its delivery report.
            self._producer.poll(_REPORT_SECONDS)
            self._reports.check()
            raise
        self._is_open = False

    def abort(self) -> None:
        if self._is_open:
            self._is_open = False
            with suppress(KafkaException):  # fenced, or no broker: the next producer with this id aborts it
                self._call("abort", self._producer.abort_transaction)

    @staticmethod
    def _call(what: str, request: Callable[[float], None]) -> None:
        """Call a function that takes its time-out as last argument, and may exceed it."""
        clients.call_with_timeout(
            clients.REQUEST_SECONDS + _GRACE_SECONDS, what, lambda: request(clients.REQUEST_SECONDS)
        )

    def _begin(self) -> None:
        if not self._is_open:
            self._producer.begin_transaction()
            self._is_open = True


class AtLeastOnceProducer:
    """Delivers the records first, then commits the offsets (`at_least_once`)."""

    def __init__(self, connection: Connection, client_id: str, reader: Consumer) -> None:
        self._reader = reader
        self._reports = _DeliveryReports()
        self._producer = clients.producer(
            connection,
            {
                **_SETTINGS,
                "client.id": client_id,
                "enable.idempotence": True,
                "on_delivery": self._reports.note,
            },
        )
        self._sender = _Sender(self._producer)

    def send(self, records: Iterable[OutputRecord]) -> int:
        return self._sender.send(records)

    def commit(self, commits: Commits) -> None:
        self._producer.flush()
        self._reports.check()
        self._reader.commit(offsets=_kafka_partitions(commits), asynchronous=False)

    def abort(self) -> None:
        self._producer.purge()


class _Sender:
    """Passes records to a producer."""

    def __init__(self, producer: Producer) -> None:
        self._producer = producer
        self._partition_counts: dict[str, int] = {}

    def send(self, records: Iterable[OutputRecord]) -> int:
        # Positional, as keywords take longer than the rest; `produce_batch` does not accept timestamps.
        produce, poll, counts = self._producer.produce, self._producer.poll, self._partition_counts
        number = 0
        for number, (topic, partition, key, value, timestamp, headers) in enumerate(records, 1):
            time = timestamp or _EARLIEST_MS
            if partition is None:
                to = _ANY_PARTITION
            else:
                to = partition
                if partition >= counts.get(topic, 0):
                    self._check_partition(topic, partition)
            while True:
                try:
                    if headers:
                        produce(topic, value, key, to, timestamp=time, headers=list(headers))
                    else:
                        produce(topic, value, key, to, None, None, time)
                    break
                except BufferError:
                    poll(0.05)
            if number % _POLL_EVERY == 0:
                poll(0)
        return number

    def _check_partition(self, topic: str, partition: int) -> None:
        """Fetch the topic's metadata; raise `TaskMigrated` if it has no such partition."""
        found = self._producer.list_topics(topic, clients.REQUEST_SECONDS).topics[topic]
        if found.error is not None:
            raise KafkaException(found.error)
        self._partition_counts[topic] = len(found.partitions)
        if partition >= self._partition_counts[topic]:
            raise TaskMigrated(topic, partition, self._partition_counts[topic])


class _DeliveryReports:
    """Keeps the first failure that a producer reports.

    It has no reference to the producer, which refers to it: a cycle would keep a released producer alive.
    """

    def __init__(self) -> None:
        self._failure: KafkaException | None = None

    def note(self, error: KafkaError | None, message: Message) -> None:
        if error is not None and self._failure is None:
            self._failure = KafkaException(KafkaError(error.code(), f"{message.topic()}: {error.str()}"))

    def check(self) -> None:
        """Raise `KafkaException` if a record was not delivered."""
        if self._failure is not None:
            raise self._failure


def _kafka_partitions(commits: Commits) -> list[KafkaTopicPartition]:
    return [
        KafkaTopicPartition(*partition, offset, metadata) for partition, (offset, metadata) in commits.items()
    ]
