"""The `MoveCluster` of a real cluster."""

import time
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from functools import partial

import attrs
from confluent_kafka import KafkaError, KafkaException, ThrottleEvent
from confluent_kafka import TopicPartition as KafkaTopicPartition

from headwater.change import admin_client
from headwater.change.topics import await_failures, request_new_partitions
from headwater.kafka import Connection
from headwater.kafka.broker_session import NoAnswerError
from headwater.kafka.group_client import GroupClient
from headwater.kafka.group_offsets import unread_problem
from headwater.model.problems import Problem, ProblemsError
from headwater_spark.driver.processor_move.entry_copy import MoveProducer
from headwater_spark.driver.processor_move.moves import Committed
from headwater_spark.driver.processor_move.problems import kafka_failed
from headwater_spark.engine.columns import OutputColumns
from headwater_spark.engine.partitioners.static import TaskMigrated
from headwater_spark.engine.records import Commits, OffsetRanges, OutputRecord, TopicPartition
from headwater_spark.worker import clients
from headwater_spark.worker.partition_reader import (
    OffsetRange,
    PartitionFollower,
    PartitionReader,
    RecordChunk,
)
from headwater_spark.worker.transaction import TransactionalProducer

_EXPANSION_SECONDS = 60.0
_VISIBLE_SECONDS = 10.0
_COMPLETION_SECONDS = 5.0
_POLL_SECONDS = 0.1
_QUOTA = "a quota of the brokers delays changes of topics (controller_mutation_rate)"
_CALLS_AT_ONCE = 8
_MAX_RECORD_BYTES = 1_000_000_000
"""librdkafka's maximum. What is moved is in a topic already: its `max.message.bytes` is the limit."""
_MAX_PREPARED = 64
"""So many producers may be connected at the same time: each has threads of its own."""


@attrs.frozen
class _Target:
    """A `TopicTarget`: only the partition count is changed."""

    name: str
    partitions: int
    replication_factor: int = -1
    config: Mapping[str, str] = attrs.field(factory=dict)


class KafkaMoveCluster:
    """Reads and changes what belongs to one application, whose id is also its consumer group.

    The methods are the methods of `MoveCluster` and `ReshardCluster`.

    Partitions are read one after the other: `read` ends what an earlier one has not read. `failed` returns
    the problem of a failure: (application, reason).
    """

    def __init__(
        self, connection: Connection, application: str, failed: Callable[[str, str], Problem] = kafka_failed
    ) -> None:
        self._failed = failed
        self._connection = connection
        self._application = application
        self._consumer = clients.create_consumer(connection, application)
        self._reader = self._new_reader()
        self._unstable = clients.create_consumer(
            connection, application, {"isolation.level": "read_uncommitted"}
        )
        self._prepared: dict[str, TransactionalProducer] = {}
        self._followers: list[PartitionFollower] = []
        self._topic: str | None = None
        """A topic that exists; None = none was read yet."""

    def committed(
        self, partitions: Iterable[TopicPartition], *, stable: bool = True
    ) -> Mapping[TopicPartition, Committed]:
        return _read_committed(
            self._application,
            clients.read_committed(self._consumer if stable else self._unstable, partitions),
        )

    def committed_after_stop(
        self, partitions: Iterable[TopicPartition]
    ) -> Mapping[TopicPartition, Committed]:
        """Return what the clients of an application have committed that is stopped.

        Brokers complete a transaction a moment after its client has committed it, and perhaps stopped. A
        transaction stays open if its client was killed: then the offsets are the offsets before it.
        """
        requested = list(partitions)
        try:
            return _read_committed(
                self._application, clients.read_committed(self._consumer, requested, _COMPLETION_SECONDS)
            )
        except KafkaException as error:
            if not clients.is_timed_out(error):
                raise
            return self.committed(requested, stable=False)

    def bounds(self, partitions: Iterable[TopicPartition]) -> OffsetRanges:
        found = clients.read_bounds(self._consumer, partitions)
        self._topic = next((topic for topic, _ in found), self._topic)
        return found

    def open_transactions(self, partitions: Iterable[TopicPartition]) -> Sequence[TopicPartition]:
        requested = list(partitions)
        committed, written = (
            clients.read_bounds(consumer, requested) for consumer in (self._consumer, self._unstable)
        )
        return [each for each in requested if committed[each][1] < written[each][1]]

    def counts(self, topics: Iterable[str]) -> Mapping[str, int]:
        return {topic: self._count(topic) for topic in topics}

    def expand(self, counts: Mapping[str, int]) -> None:
        due = [_Target(topic, count) for topic, count in counts.items() if self._count(topic) < count]
        # A move that was killed may have added them just now: then they are refused, and visible soon.
        failed = "; ".join(self._refused_topics(due))
        deadline = time.monotonic() + (_VISIBLE_SECONDS if failed else _EXPANSION_SECONDS)
        while any(self._count(topic) < count for topic, count in counts.items()):
            if time.monotonic() > deadline:
                reason = failed or f"added partitions are not visible after {_EXPANSION_SECONDS:g} s"
                raise ProblemsError([self._failed(self._application, reason)])
            time.sleep(_POLL_SECONDS)
        self.renew_reader()

    def renew_reader(self) -> None:
        """Replace the reader: it keeps its metadata for minutes, and does not know added partitions."""
        self._reader.close()
        self._reader = self._new_reader()

    def check_expansion(self, counts: Mapping[str, int]) -> None:
        due = [_Target(topic, count) for topic, count in counts.items() if self._count(topic) < count]
        if failed := self._refused_topics(due, validate_only=True):
            raise ProblemsError([self._failed(self._application, "; ".join(failed))])

    def _refused_topics(self, due: Sequence[_Target], *, validate_only: bool = False) -> Sequence[str]:
        """Request new partitions; return `topic: reason` for each that failed, and a quota as its cause."""
        delays: list[ThrottleEvent] = []
        admin = admin_client(self._connection, delays.append)  # its requests end when it is deleted
        failed = tuple(await_failures(request_new_partitions(admin, due, validate_only=validate_only)))
        admin.poll(0)  # delivers the delays
        return (*failed, _QUOTA) if failed and delays else failed

    def read(self, topic: str, partition: int, first: int = 0) -> Iterator[RecordChunk]:
        return self._reader.read(topic, partition, OffsetRange(first))

    def read_range(self, topic: str, partition: int, first: int, end: int) -> Iterator[RecordChunk]:
        return self._reader.read(topic, partition, OffsetRange(first, end))

    def follower(self) -> PartitionFollower:
        follower = PartitionFollower(self._connection, self._application)
        self._followers.append(follower)
        return follower

    @contextmanager
    def producer(self, name: str) -> Iterator[MoveProducer]:
        producer = self._prepared.pop(name, None) or self._new_producer(name)
        producer.fence()
        try:
            yield _WaitingProducer(self._application, producer, self._failed)
        finally:
            producer.abort()

    def commit_offsets(self, commits: Commits) -> None:
        """Commit offsets outside of a transaction, with texts that Kafka Streams can read.

        confluent-kafka appends a null byte to each text. The group must have no members. Another execution
        does not fence this commit: a transaction just before shows that the caller is not fenced.

        Raises:
            KafkaException: It has members (UNKNOWN_MEMBER_ID), or the brokers do not answer.
        """
        if not commits:
            return
        try:
            refused = GroupClient(self._connection, clients.REQUEST_SECONDS).commit(
                self._application, commits
            )
        except NoAnswerError as error:
            raise KafkaException(KafkaError(KafkaError._TIMED_OUT, str(error))) from error  # noqa: SLF001 - the library's own code
        if refused is not None:
            raise KafkaException(refused)

    def fence(self, names: Iterable[str]) -> None:
        def open_producer(name: str) -> None:
            with self.producer(name):
                pass

        self.at_once([partial(open_producer, name) for name in names])

    def prepare_producers(self, names: Iterable[str]) -> None:
        """Connect producers that are opened soon: that takes longer than all that they do then."""

        def prepare(name: str) -> None:
            self._prepared[name] = self._new_producer(name)

        new = [name for name in names if name not in self._prepared]
        self.at_once([partial(prepare, name) for name in new[: _MAX_PREPARED - len(self._prepared)]])

    def at_once(self, calls: Sequence[Callable[[], None]]) -> None:
        with ThreadPoolExecutor(_CALLS_AT_ONCE) as threads:
            for made in [threads.submit(call) for call in calls]:
                made.result()

    def close(self) -> None:
        self._consumer.close()
        self._unstable.close()
        self._reader.close()
        self._prepared.clear()
        for follower in self._followers:
            follower.close()

    def _new_producer(self, name: str) -> TransactionalProducer:
        return TransactionalProducer(
            self._connection,
            name,
            self._consumer,
            topic=self._topic,
            is_prepared=True,
            settings={"message.max.bytes": _MAX_RECORD_BYTES},
        )

    def _new_reader(self) -> PartitionReader:
        return PartitionReader(self._connection, self._application)

    def _count(self, topic: str) -> int:
        found = self._consumer.list_topics(topic, clients.REQUEST_SECONDS).topics[topic]
        if found.error is not None:
            raise KafkaException(KafkaError(found.error.code(), f"{topic}: {found.error.str()}"))
        self._topic = topic
        return len(found.partitions)


def _read_committed(group: str, found: Iterable[KafkaTopicPartition]) -> Mapping[TopicPartition, Committed]:
    """Return what is committed; raises `ProblemsError` if a text must not be replaced."""
    found = tuple(found)
    if unread := [problem for each in found if (problem := unread_problem(group, each)) is not None]:
        raise ProblemsError(unread)
    return {
        (each.topic, each.partition): Committed(
            each.offset if each.offset >= 0 else None, each.metadata or ""
        )
        for each in found
    }


@attrs.frozen
class _WaitingProducer:
    """A producer that waits until its broker knows added partitions."""

    _application: str
    _producer: TransactionalProducer
    _failed: Callable[[str, str], Problem]

    def send(self, records: Iterable[OutputRecord]) -> int:
        kept = records if isinstance(records, OutputColumns) else list(records)
        deadline = time.monotonic() + _EXPANSION_SECONDS
        while True:
            try:
                return self._producer.send(kept)
            except TaskMigrated as error:
                if time.monotonic() > deadline:
                    raise ProblemsError([self._failed(self._application, str(error))]) from error
                time.sleep(_POLL_SECONDS)

    def commit(self, commits: Commits) -> None:
        self._producer.commit(commits)
