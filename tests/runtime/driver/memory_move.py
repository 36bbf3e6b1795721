"""A cluster in memory for moves of state; processes that use it can be killed at any operation."""

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager

import attrs
from confluent_kafka import KafkaError, KafkaException

from headwater_spark.driver.processor_move.moves import Committed
from headwater_spark.engine.records import Commits, InputRecord, OutputRecord, TopicPartition
from headwater_spark.worker.partition_reader import RecordChunk
from tests.runtime.record_chunks import chunk_of


class KilledError(BaseException):
    """The process was killed."""


@attrs.define
class MemoryCluster:
    """Topics and committed offsets. `before_operation` is called before each operation of a move."""

    topics: dict[str, list[list[InputRecord]]]
    offsets: dict[TopicPartition, Committed] = attrs.field(factory=dict)
    before_operation: Callable[[], None] = attrs.field(default=lambda: None)
    chunk_records: int = 3
    uncommitted: int = 0
    """The number of records that were sent since the last commit."""
    unreadable: set[TopicPartition] = attrs.field(factory=set)
    """The partitions whose committed text Kafka Streams cannot read: confluent-kafka has committed it."""
    _epochs: dict[str, int] = attrs.field(factory=dict)
    _next_offset: int = 0

    def kill_after(self, operations: int | None) -> None:
        """Raise `KilledError` instead of the operation that follows `operations` ones; None = never."""
        left = operations

        def count() -> None:
            nonlocal left
            if left is None:
                return
            if left == 0:
                raise KilledError
            left -= 1

        self.before_operation = count

    @contextmanager
    def alive(self) -> Iterator[None]:
        """Do not call `before_operation` meanwhile: another process works."""
        before, self.before_operation = self.before_operation, lambda: None
        try:
            yield
        finally:
            self.before_operation = before

    def write(self, records: Iterable[OutputRecord]) -> None:
        for topic, partition, key, value, timestamp, headers in records:
            assert partition is not None
            self._next_offset += 1
            record = (topic, partition, self._next_offset, timestamp, key, value, headers)
            self.topics[topic][partition].append(record)

    def committed(
        self, partitions: Iterable[TopicPartition], *, stable: bool = True
    ) -> Mapping[TopicPartition, Committed]:
        del stable
        return {each: self.offsets.get(each, Committed()) for each in partitions}

    def bounds(self, partitions: Iterable[TopicPartition]) -> Mapping[TopicPartition, tuple[int, int]]:
        found = {(topic, each): self.topics[topic][each] for topic, each in partitions}
        return {
            each: (records[0][2], records[-1][2] + 1) if records else (0, 0)
            for each, records in found.items()
        }

    def counts(self, topics: Iterable[str]) -> Mapping[str, int]:
        return {topic: len(self.topics[topic]) for topic in topics}

    def expand(self, counts: Mapping[str, int]) -> None:
        for topic, count in counts.items():
            self.before_operation()
            while len(self.topics[topic]) < count:
                self.topics[topic].append([])

    def read(self, topic: str, partition: int, first: int = 0) -> Iterator[RecordChunk]:
        records = [record for record in self.topics[topic][partition] if record[2] >= first]
        for at in range(0, len(records), self.chunk_records):
            self.before_operation()
            chunk = tuple(records[at : at + self.chunk_records])
            yield chunk_of(chunk, chunk[-1][2] + 1)

    def follower(self) -> "MemoryFollower":
        return MemoryFollower(self)

    def at_once(self, calls: Sequence[Callable[[], None]]) -> None:
        """Make one call after the other, so that a process is killed at the same operation each time."""
        for call in calls:
            call()

    @contextmanager
    def producer(self, name: str) -> Iterator["MemoryProducer"]:
        self.before_operation()
        self._epochs[name] = self._epochs.get(name, 0) + 1
        yield MemoryProducer(self, name, self._epochs[name])

    def epoch(self, name: str) -> int:
        return self._epochs[name]

    def compact(self, topic: str) -> None:
        """Keep the last record of each key, and no tombstone."""
        for partition, records in enumerate(self.topics[topic]):
            last = {record[4]: record for record in records}
            self.topics[topic][partition] = sorted(
                (record for record in last.values() if record[5] is not None), key=lambda record: record[2]
            )


@attrs.frozen
class MemoryFollower:
    """Reads one partition after the other."""

    _cluster: MemoryCluster

    def read(self, starts: Mapping[TopicPartition, int]) -> Iterator[tuple[TopicPartition, RecordChunk]]:
        for (topic, partition), start in starts.items():
            for chunk in self._cluster.read(topic, partition, start):
                yield (topic, partition), chunk


@attrs.define
class MemoryProducer:
    """Its records and offsets are visible when they are committed."""

    _cluster: MemoryCluster
    _name: str
    _epoch: int
    _records: list[OutputRecord] = attrs.field(factory=list)

    def send(self, records: Iterable[OutputRecord]) -> int:
        sent = list(records)
        self._records += sent
        self._cluster.uncommitted += len(sent)
        return len(sent)

    def commit(self, commits: Commits) -> None:
        self._cluster.before_operation()
        if self._cluster.epoch(self._name) != self._epoch:
            raise KafkaException(KafkaError(KafkaError.PRODUCER_FENCED))
        self._cluster.write(self._records)
        self._records = []
        self._cluster.uncommitted = 0
        for partition, (offset, text) in commits.items():
            self._cluster.offsets[partition] = Committed(offset, text)
            self._cluster.unreadable.add(partition)
        self._cluster.before_operation()  # killed after the commit
