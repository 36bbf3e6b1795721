"""The order in which a task takes records of several partitions (`PartitionGroup`, `RecordQueue`)."""

from collections.abc import Iterable, Iterator, Mapping
from heapq import heapify, heappop, heapreplace
from operator import itemgetter
from typing import Final

from spark_jobs.runtime.engine.records import InputRecord

_TOPIC: Final = 0
_PARTITION: Final = 1
_TIMESTAMP: Final = 3


def merged(records: Iterable[InputRecord]) -> Iterator[InputRecord]:
    """Always the head with the smallest timestamp; within a partition by offset, whatever its timestamps.

    Heads of one time are taken by the names of their topics, then by partition.
    """
    records = list(records)
    if (
        len(set(map(itemgetter(_TOPIC), records))) <= 1
        and len(set(map(itemgetter(_PARTITION), records))) <= 1
    ):
        return iter(records)
    queues: dict[tuple[str, int], list[InputRecord]] = {}
    for record in records:
        queues.setdefault((record[_TOPIC], record[_PARTITION]), []).append(record)
    return _smallest_heads(queues)


def _smallest_heads(queues: Mapping[tuple[str, int], list[InputRecord]]) -> Iterator[InputRecord]:
    heads = []
    for place, queue in queues.items():
        rest = iter(queue)
        first = next(rest)
        heads.append((first[_TIMESTAMP], place, first, rest))
    heapify(heads)
    while heads:
        _, place, record, rest = heads[0]
        yield record
        following = next(rest, None)
        if following is None:
            heappop(heads)
        else:
            heapreplace(heads, (following[_TIMESTAMP], place, following, rest))
