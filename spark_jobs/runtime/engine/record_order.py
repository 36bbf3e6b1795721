"""The order in which a task processes records of several partitions (`PartitionGroup`, `RecordQueue`)."""

from collections.abc import Iterable, Iterator, Mapping
from heapq import heapify, heappop, heapreplace
from operator import itemgetter
from typing import Final

from spark_jobs.runtime.engine.records import InputRecord, TopicPartition

_TOPIC: Final = 0
_PARTITION: Final = 1
_TIMESTAMP: Final = 3


def in_timestamp_order(records: Iterable[InputRecord]) -> Iterator[InputRecord]:
    """Return the records merged by timestamp; records of one partition stay in the order of their offsets.

    The next record is always the partition head with the smallest timestamp. Heads with equal timestamps
    are ordered by topic name, then partition.
    """
    records = list(records)
    if (
        len(set(map(itemgetter(_TOPIC), records))) <= 1
        and len(set(map(itemgetter(_PARTITION), records))) <= 1
    ):
        return iter(records)
    queues: dict[TopicPartition, list[InputRecord]] = {}
    for record in records:
        queues.setdefault((record[_TOPIC], record[_PARTITION]), []).append(record)
    return _smallest_heads(queues)


def _smallest_heads(queues: Mapping[TopicPartition, list[InputRecord]]) -> Iterator[InputRecord]:
    heads = []
    for topic_partition, queue in queues.items():
        rest = iter(queue)
        first = next(rest)
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
