"""The order in which a task processes records of several partitions (`PartitionGroup`, `RecordQueue`).

The next record is the partition head with the smallest timestamp. That is the order of the largest timestamp
so far in each partition, then of the partitions, then of the offsets. `partition_columns` orders records in
columns in the same way.
"""

from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from heapq import heapify, heappop, heapreplace
from itertools import accumulate
from operator import itemgetter
from typing import Any, Final, Generic, TypeVar

from headwater_spark.engine.records import InputRecord, TopicPartition

HeadT = TypeVar("HeadT", bound=tuple[Any, ...])
"""What a record is as the head of its partition: its first fields are the fields of an `InputRecord`."""
ReadHead = Callable[[InputRecord], HeadT | None]
"""Called when a record becomes the head of its partition; None = the record was skipped."""

_TOPIC: Final = 0
_PARTITION: Final = 1
_TIMESTAMP: Final = 3
_time = itemgetter(_TIMESTAMP)


def in_timestamp_order(records: Iterable[InputRecord]) -> Iterator[InputRecord]:
    """Return the records merged by timestamp; records of one partition stay in the order of their offsets.

    The next record is always the partition head with the smallest timestamp. Heads with equal timestamps
    are ordered by topic name, then partition.
    """
    records = list(records)
    if are_of_one_partition(records):
        return iter(records)
    queues = sorted(_partition_queues(records).items())
    # A head that is earlier than a record before it comes right after that record.
    times = [time for _, queue in queues for time in accumulate(map(_time, queue), max)]
    ordered = [record for _, queue in queues for record in queue]
    return iter([ordered[at] for at in sorted(range(len(times)), key=times.__getitem__)])


def heads_in_timestamp_order(records: Iterable[InputRecord], read: ReadHead[HeadT]) -> Iterator[HeadT]:
    """Return the heads in the order of `in_timestamp_order`; skipped records do not take part in it."""
    return _smallest_heads(
        {partition: _read_heads(queue, read) for partition, queue in _partition_queues(records).items()}
    )


def are_of_one_partition(records: Collection[InputRecord]) -> bool:
    """Return whether the records are in order as they are."""
    return (
        len(set(map(itemgetter(_TOPIC), records))) <= 1
        and len(set(map(itemgetter(_PARTITION), records))) <= 1
    )


class PartitionGroup(Generic[HeadT]):
    """The order of `in_timestamp_order`, up to the point from which it depends on records not read yet.

    Iterate over it once. The iteration ends when a partition in `awaited` has no record left (KIP-695).

    Args:
        records: In order within each partition.
        awaited: The partitions of the task that have more records, or whose next record is waited for.
        read: Called for a record when it becomes the head of its partition.
    """

    def __init__(
        self, records: Iterable[InputRecord], awaited: Collection[TopicPartition], read: ReadHead[HeadT]
    ) -> None:
        self._queues = {
            partition: _RecordQueue(queue, read) for partition, queue in _partition_queues(records).items()
        }
        self._awaited = awaited

    def __iter__(self) -> Iterator[HeadT]:
        heads = []
        for topic_partition, queue in self._queues.items():
            if (head := queue.next_head()) is not None:
                heads.append((head[_TIMESTAMP], topic_partition, head, queue))
        heapify(heads)
        if self.blocked_by:
            return
        while heads:
            _, topic_partition, record, queue = heads[0]
            queue.take()
            yield record
            head = queue.next_head()
            if head is not None:
                heapreplace(heads, (head[_TIMESTAMP], topic_partition, head, queue))
                continue
            if topic_partition in self._awaited:
                return
            heappop(heads)

    @property
    def held_back(self) -> Mapping[TopicPartition, int]:
        """Partition → number of records at its end that have not been returned; only partitions with any."""
        return {partition: queue.remaining for partition, queue in self._queues.items() if queue.remaining}

    @property
    def blocked_by(self) -> frozenset[TopicPartition]:
        """The awaited partitions without a record that has not been returned."""
        return frozenset(
            partition
            for partition in self._awaited
            if partition not in self._queues or not self._queues[partition].remaining
        )


class _RecordQueue(Generic[HeadT]):
    """The records of one partition; `remaining` counts records that were neither taken nor skipped."""

    def __init__(self, records: Sequence[InputRecord], read: ReadHead[HeadT]) -> None:
        self.remaining = len(records)
        self._records = records
        self._read = read

    def next_head(self) -> HeadT | None:
        """Read the next record and return it, without taking it; None = no record is left."""
        while self.remaining:
            head = self._read(self._records[-self.remaining])
            if head is not None:
                return head
            self.take()
        return None

    def take(self) -> None:
        self.remaining -= 1


def _partition_queues(records: Iterable[InputRecord]) -> Mapping[TopicPartition, list[InputRecord]]:
    queues: dict[TopicPartition, list[InputRecord]] = {}
    for record in records:
        queues.setdefault((record[_TOPIC], record[_PARTITION]), []).append(record)
    return queues


def _read_heads(records: Iterable[InputRecord], read: ReadHead[HeadT]) -> Iterator[HeadT]:
    for record in records:
        head = read(record)
        if head is not None:
            yield head


def _smallest_heads(queues: Mapping[TopicPartition, Iterator[HeadT]]) -> Iterator[HeadT]:
    """Yield the heads of all partitions, always the head with the smallest timestamp."""
    heads = []
    for topic_partition, rest in queues.items():
        first = next(rest, None)
        if first is not None:
            heads.append((first[_TIMESTAMP], topic_partition, first, rest))
    heapify(heads)
    while heads:
        _, topic_partition, record, rest = heads[0]
        yield record
        following = next(rest, None)
        if following is None:
            heappop(heads)
        else:
            heapreplace(heads, (following[_TIMESTAMP], topic_partition, following, rest))
