"""Records of topic partitions in columns, and the order in which a task processes them (`record_order`).

The columns are as they have arrived. A value becomes a Python object when it is needed: of the updates of a
table, only the last one of each key is.

The process from which Spark forks workers does not import this module: numpy starts threads.
"""

from collections.abc import Collection, Iterator, Mapping, Sequence
from itertools import chain, repeat
from typing import Protocol

import attrs
import numpy as np

from headwater_spark.engine.key_counts import NULL_KEY
from headwater_spark.engine.records import Headers, InputRecord, TopicPartition
from headwater_spark.engine.window_columns import Numbers

_LARGEST = 2**62


@attrs.frozen(eq=False)
class NumberedBytes:
    """A column as numbers: `codes` are positions in `different`, `NULL_KEY` for null."""

    codes: Numbers
    different: Sequence[bytes]

    def last_positions(self) -> Numbers:
        """Return the position of the last row of each value that is not null, in ascending order."""
        last = np.full(len(self.different) + 1, -1)
        last[self.codes] = np.arange(len(self.codes))  # null is the last one of `last`
        found: Numbers = np.sort(last[:-1])
        return found[np.searchsorted(found, 0) :]  # -1: a value without a row

    def value(self, at: int) -> bytes | None:
        code = self.codes[at]
        return None if code == NULL_KEY else self.different[code]

    def take(self, positions: Numbers) -> list[bytes | None]:
        """Return the values of some rows; it takes no time for the other rows and values."""
        codes = self.codes[positions].tolist()
        if NULL_KEY in codes:
            return [None if code == NULL_KEY else self.different[code] for code in codes]
        return list(map(self.different.__getitem__, codes))

    def to_list(self) -> list[bytes | None]:
        values = np.empty(len(self.different) + 1, object)
        values[:-1] = self.different
        found: list[bytes | None] = values[self.codes].tolist()
        return found


def number_bytes(column: Sequence[bytes | None]) -> NumberedBytes:
    """Return a column as numbers."""
    numbers: dict[bytes | None, int] = {None: NULL_KEY}
    codes = [numbers.setdefault(value, len(numbers) - 1) for value in column]
    del numbers[None]
    return NumberedBytes(np.array(codes, np.int64), list(numbers))  # type: ignore[arg-type]  # none is null


class ByteColumn(Protocol):
    """Bytes or nulls of some records. They become Python objects when they are needed."""

    def __len__(self) -> int: ...

    def __getitem__(self, at: int) -> bytes | None: ...

    def to_list(self) -> Sequence[bytes | None]:
        """Return all values; the column keeps nothing else."""
        ...

    def take(self, positions: Numbers) -> Sequence[bytes | None]:
        """Return some values; the positions ascend."""
        ...

    def number_values(self) -> NumberedBytes: ...

    def lengths(self) -> Numbers:
        """Return the length of each value, 0 for null."""
        ...

    def first_rows(self, number: int) -> "ByteColumn": ...


@attrs.frozen(eq=False)
class PartitionColumns:
    """The records of one topic partition, by offset; times are in milliseconds.

    `headers` None = no record has headers.
    """

    topic_partition: TopicPartition
    offsets: Numbers
    times: Numbers
    keys: ByteColumn
    values: ByteColumn
    headers: Sequence[Headers] | None

    def __len__(self) -> int:
        return len(self.offsets)

    def record(self, at: int) -> InputRecord:
        topic, partition = self.topic_partition
        headers = () if self.headers is None else self.headers[at]
        offset, time = int(self.offsets[at]), int(self.times[at])
        return (topic, partition, offset, time, self.keys[at], self.values[at], headers)

    def records(self) -> Iterator[InputRecord]:
        return self._records(
            self.offsets, self.times, self.keys.to_list(), self.values.to_list(), self.headers
        )

    def records_at(self, positions: Numbers) -> Iterator[InputRecord]:
        """Return the records at some positions, which ascend."""
        headers = None if self.headers is None else [self.headers[at] for at in positions.tolist()]
        keys, values = self.keys.take(positions), self.values.take(positions)
        return self._records(self.offsets[positions], self.times[positions], keys, values, headers)

    def first_rows(self, number: int) -> "PartitionColumns":
        if number == len(self):
            return self
        return PartitionColumns(
            self.topic_partition,
            self.offsets[:number],
            self.times[:number],
            self.keys.first_rows(number),
            self.values.first_rows(number),
            None if self.headers is None else self.headers[:number],
        )

    def _records(
        self,
        offsets: Numbers,
        times: Numbers,
        keys: Sequence[bytes | None],
        values: Sequence[bytes | None],
        headers: Sequence[Headers] | None,
    ) -> Iterator[InputRecord]:
        topic, partition = self.topic_partition
        of_records = repeat(()) if headers is None else headers
        columns = offsets.tolist(), times.tolist(), keys, values, of_records
        return zip(repeat(topic), repeat(partition), *columns, strict=False)


class MergedBytes:
    """A column of several partitions, in another order: `order` are positions in all of them."""

    def __init__(self, parts: Sequence[ByteColumn], order: Numbers) -> None:
        self._parts = parts
        self._order = order
        self._list: list[bytes | None] | None = None

    def __len__(self) -> int:
        return len(self._order)

    def __getitem__(self, at: int) -> bytes | None:
        return self.to_list()[at]

    def to_list(self) -> Sequence[bytes | None]:
        if self._list is None:
            every = list(chain.from_iterable(part.to_list() for part in self._parts))
            self._list = [every[at] for at in self._order.tolist()]
        return self._list

    def take(self, positions: Numbers) -> Sequence[bytes | None]:
        values = self.to_list()
        return [values[at] for at in positions.tolist()]

    def number_values(self) -> NumberedBytes:
        numbers: dict[bytes, int] = {}
        codes = []
        for part in self._parts:
            numbered = part.number_values()
            own = [numbers.setdefault(value, len(numbers)) for value in numbered.different]
            codes.append(np.array([*own, NULL_KEY])[numbered.codes])
        return NumberedBytes(np.concatenate(codes)[self._order], list(numbers))

    def lengths(self) -> Numbers:
        found: Numbers = np.concatenate([part.lengths() for part in self._parts])[self._order]
        return found

    def first_rows(self, number: int) -> "MergedBytes":
        return MergedBytes(self._parts, self._order[:number])


def held_back(
    partitions: Sequence[PartitionColumns], awaited: Collection[TopicPartition]
) -> Mapping[TopicPartition, int]:
    """Return partition → number of records at its end that `PartitionGroup` holds back.

    It ends when an awaited partition has no record left. Only partitions with such records are returned.
    """
    numbers = _processed_numbers(sorted(partitions, key=_topic_partition), awaited)
    rest = {each.topic_partition: len(each) - numbers[each.topic_partition] for each in partitions}
    return {partition: number for partition, number in rest.items() if number}


def can_order(partitions: Sequence[PartitionColumns]) -> bool:
    """Return whether `processing_order` has no overflow."""
    most = _LARGEST // max(1, len(partitions))
    return all(-most < each.times.min() and each.times.max() < most for each in partitions)


def processing_order(partitions: Sequence[PartitionColumns]) -> list[Numbers]:
    """Return numbers for the records of each partition: the order of all numbers is the processing order."""
    ranks = {each: rank for rank, each in enumerate(sorted(map(_topic_partition, partitions)))}
    count = len(partitions)
    return [np.maximum.accumulate(each.times) * count + ranks[each.topic_partition] for each in partitions]


def _topic_partition(columns: PartitionColumns) -> TopicPartition:
    return columns.topic_partition


def _processed_numbers(
    partitions: Sequence[PartitionColumns], awaited: Collection[TopicPartition]
) -> Mapping[TopicPartition, int]:
    """Return partition → number of processed records; `partitions` are in order.

    Processing ends after the awaited partition that is processed to its end first. `last` is the position of
    its last record: the largest timestamp of the partition, and its rank.
    """
    last: tuple[int, int] | None = None
    lengths = {each.topic_partition: len(each) for each in partitions}
    if any(not lengths.get(partition) for partition in awaited):
        return dict.fromkeys(lengths, 0)
    for rank, each in enumerate(partitions):
        if each.topic_partition in awaited:
            end = int(each.times.max()), rank
            last = end if last is None else min(last, end)
    if last is None:
        return lengths
    numbers: dict[TopicPartition, int] = {}
    for rank, each in enumerate(partitions):
        latest = np.maximum.accumulate(each.times)
        side = "right" if rank <= last[1] else "left"
        numbers[each.topic_partition] = int(np.searchsorted(latest, last[0], side))  # type: ignore[call-overload]
    return numbers
