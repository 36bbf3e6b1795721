"""Records of a topic partition in columns, and the order of several partitions without a step per record.

`record_order` defines the order: the next record is the partition head with the smallest timestamp. That is
the order of the largest timestamp so far in each partition, then of the partitions, then of the offsets.
"""

from bisect import bisect_left, bisect_right
from collections.abc import Collection, Iterator, Mapping, Sequence
from itertools import accumulate, repeat

import attrs

from headwater_spark.engine.records import Headers, InputRecord, TopicPartition


@attrs.frozen
class PartitionColumns:
    """The records of one topic partition, by offset; times are in milliseconds."""

    topic_partition: TopicPartition
    offsets: Sequence[int]
    times: Sequence[int]
    keys: Sequence[bytes | None]
    values: Sequence[bytes | None]
    headers: Sequence[Headers]

    def __len__(self) -> int:
        return len(self.offsets)

    def record(self, at: int) -> InputRecord:
        """Return the record at a position."""
        topic, partition = self.topic_partition
        key, value = self.keys[at], self.values[at]
        return (topic, partition, self.offsets[at], self.times[at], key, value, self.headers[at])

    def records(self) -> Iterator[InputRecord]:
        topic, partition = self.topic_partition
        columns = self.offsets, self.times, self.keys, self.values, self.headers
        return zip(repeat(topic), repeat(partition), *columns)

    def first(self, number: int) -> "PartitionColumns":
        """Return the first records."""
        if number == len(self):
            return self
        columns = self.offsets, self.times, self.keys, self.values, self.headers
        return PartitionColumns(self.topic_partition, *(column[:number] for column in columns))  # type: ignore[arg-type]


@attrs.frozen(kw_only=True)
class HeldBack:
    """What a task has not processed (`PartitionGroup`).

    `held_back` is partition → number of records at its end; only partitions with any. `blocked_by` are the
    awaited partitions of which all records are processed.
    """

    held_back: Mapping[TopicPartition, int]
    blocked_by: frozenset[TopicPartition]


def held_back(partitions: Sequence[PartitionColumns], awaited: Collection[TopicPartition]) -> HeldBack:
    """Return what `PartitionGroup` holds back: it ends when an awaited partition has no record left."""
    numbers = _processed_numbers(sorted(partitions, key=_topic_partition), awaited)
    rest = {each.topic_partition: len(each) - numbers[each.topic_partition] for each in partitions}
    return HeldBack(
        held_back={partition: number for partition, number in rest.items() if number},
        blocked_by=frozenset(partition for partition in awaited if not rest.get(partition)),
    )


def processing_order(partitions: Sequence[PartitionColumns]) -> list[Sequence[int]]:
    """Return numbers for the records of each partition: the order of all numbers is the processing order."""
    ranks = {each: rank for rank, each in enumerate(sorted(map(_topic_partition, partitions)))}
    count = len(partitions)
    return [
        [time * count + ranks[each.topic_partition] for time in accumulate(each.times, max)]
        for each in partitions
    ]


def _topic_partition(columns: PartitionColumns) -> TopicPartition:
    return columns.topic_partition


def _processed_numbers(
    partitions: Sequence[PartitionColumns], awaited: Collection[TopicPartition]
) -> Mapping[TopicPartition, int]:
    """Return partition → number of processed records; `partitions` are in order."""
    last: tuple[int, int] | None = None
    lengths = {each.topic_partition: len(each) for each in partitions}
    if any(not lengths.get(partition) for partition in awaited):
        return dict.fromkeys(lengths, 0)
    for rank, each in enumerate(partitions):
        if each.topic_partition in awaited:
            end = max(each.times), rank
            last = end if last is None else min(last, end)
    if last is None:
        return lengths
    numbers: dict[TopicPartition, int] = {}
    for rank, each in enumerate(partitions):
        latest = list(accumulate(each.times, max))
        number = bisect_right(latest, last[0]) if rank <= last[1] else bisect_left(latest, last[0])
        numbers[each.topic_partition] = number
    return numbers
