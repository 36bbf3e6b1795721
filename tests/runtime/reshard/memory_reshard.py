"""A cluster in memory for reshards and copies of state."""

from collections.abc import Iterator, Mapping, Sequence

from headwater.model.offset_metadata import OffsetMetadata
from headwater_spark.driver.processor_move.entry_copy import MoveProducer
from headwater_spark.driver.processor_move.moves import Committed
from headwater_spark.engine.records import Commits, TopicPartition
from headwater_spark.worker.partition_reader import RecordChunk
from tests.runtime.driver.memory_move import MemoryCluster
from tests.runtime.record_chunks import chunk_of


class ReshardMemoryCluster(MemoryCluster):
    """A `ReshardCluster` whose transactions are complete."""

    def read_range(self, topic: str, partition: int, first: int, end: int) -> Iterator[RecordChunk]:
        records = [record for record in self.topics[topic][partition] if first <= record[2] < end]
        for at in range(0, len(records), self.chunk_records):
            self.before_operation()
            yield chunk_of(records[at : at + self.chunk_records], end)

    def open_transactions(self, partitions: Sequence[TopicPartition]) -> Sequence[TopicPartition]:
        del partitions
        return []

    def commit_offsets(self, commits: Commits) -> None:
        self.before_operation()
        for partition, (offset, text) in commits.items():
            self.offsets[partition] = Committed(offset, text)
            self.unreadable.discard(partition)
        self.before_operation()  # killed after the commit

    def fence(self, names: Sequence[str]) -> None:
        for name in names:
            with self.producer(name):
                pass

    def renew_reader(self) -> None:
        """All partitions are known."""

    def close(self) -> None:
        """Nothing has to be released."""

    def check_expansion(self, counts: Mapping[str, int]) -> None:
        """Accept all."""


class OneRound:
    """A `WritingRound` in which nothing is repeated."""

    location = "journal", 0
    number = 1

    def note(self, cluster: ReshardMemoryCluster) -> None:
        """Commit the number of the round, as an execution does."""
        text = OffsetMetadata(0, {"headwater.reshard.round": self.number}).encode(-1)
        cluster.offsets[self.location] = Committed(0, text)

    def begin(self, producer: MoveProducer) -> None:
        del producer
        raise AssertionError("a share was repeated")
