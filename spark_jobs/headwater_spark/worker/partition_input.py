"""The input of a task that reads several topic partitions: the columns of each partition."""

from collections.abc import Mapping, Sequence
from itertools import chain

import attrs

from headwater_spark.engine.record_order import HeldBack, PartitionColumns
from headwater_spark.engine.records import InputRecord, TopicPartition
from headwater_spark.worker.interleaving import ProcessedPart
from headwater_spark.worker.task_input import ColumnInput, InputProgress, RecordInput


@attrs.frozen
class PartitionedInput:
    """Columns of several input partitions, ordered by topic and partition."""

    parts: Sequence[ColumnInput]

    def __len__(self) -> int:
        return sum(map(len, self.parts))

    def __reduce__(self) -> tuple[object, ...]:
        """Pickle the columns, or the records once the columns are released: an attempt has failed."""
        if all(part.has_columns for part in self.parts):
            return PartitionedInput, (self.parts,)
        return RecordInput, (self.records(),)

    @property
    def size(self) -> int:
        """The size of the columns in bytes."""
        return sum(part.size for part in self.parts)

    def records(self) -> Sequence[InputRecord]:
        return list(chain.from_iterable(each.records() for each in self.partition_columns()))

    def progress(self) -> InputProgress:
        offsets: dict[TopicPartition, int] = {}
        times: dict[TopicPartition, int] = {}
        for part in self.parts:
            next_offset, largest = part.progress()
            offsets |= next_offset
            times |= largest
        return offsets, times

    def starting_at(self, offsets: Mapping[TopicPartition, int]) -> "PartitionedInput | RecordInput":
        if all(part.first_offset >= offsets.get(part.topic_partition, 0) for part in self.parts):
            return self
        if not all(part.has_columns for part in self.parts):
            return RecordInput(self.records()).starting_at(offsets)
        rest = [
            part
            for part in (each.starting_at(offsets) for each in self.parts)
            if isinstance(part, ColumnInput)
        ]
        return PartitionedInput(rest) if rest else RecordInput([])

    def partition_columns(self) -> Sequence[PartitionColumns]:
        return [columns for part in self.parts for columns in part.partition_columns()]


def processed_columns(partitions: Sequence[PartitionColumns], rest: HeldBack) -> ProcessedPart:
    """Return what was processed of `partitions`."""
    offsets: dict[TopicPartition, int] = {}
    times: dict[TopicPartition, int] = {}
    unprocessed: dict[TopicPartition, int] = {}
    read = 0
    for each in partitions:
        partition = each.topic_partition
        number = len(each) - rest.held_back.get(partition, 0)
        read += number
        if number < len(each):
            unprocessed[partition] = each.offsets[number]
        if number:
            offsets[partition] = unprocessed.get(partition, each.offsets[number - 1] + 1)
            times[partition] = max(each.times[:number])
    return ProcessedPart(read, offsets, times, unprocessed)
