"""Records that several tasks wrote to the same partition of a repartition topic, merged by time.

The tasks of a batch write one after the other, each its whole range of times. In the order of offsets, the
last record of the first task would make most records of the others late. In Kafka Streams tasks advance side
by side, so that neighbors in a partition have similar times. So each record carries a header with the task
that wrote it. The reader merges the tasks' records: next is always the task that has advanced least in time.
"""

from collections.abc import Iterable, Iterator, Sequence
from heapq import merge
from operator import itemgetter
from typing import Final

from headwater_spark.engine.records import InputRecord, OutputRecord

_TASK_HEADER: Final = "headwater.task"
_TOPIC: Final = 0
_TIME: Final = 3
_topic = itemgetter(_TOPIC)


def with_task_header(
    records: Iterable[OutputRecord], shared_topics: frozenset[str], task: int
) -> Iterable[OutputRecord]:
    """Return `records`; those of `shared_topics` get a header with the task's partition."""
    if not shared_topics:
        return records
    header = (_TASK_HEADER, b"%d" % task)
    return [
        (topic, partition, key, value, time, (*headers, header))
        if topic in shared_topics
        else (topic, partition, key, value, time, headers)
        for topic, partition, key, value, time, headers in records
    ]


def interleaved(
    records: Sequence[InputRecord], shared_topics: frozenset[str], *, keep_headers: bool = False
) -> Sequence[InputRecord]:
    """Return `records`; those of `shared_topics` are merged by task, and their header is removed.

    Records without the header count as one more task. Records of other topics keep their order, and so do
    those of one task in one partition.
    """
    if not shared_topics or shared_topics.isdisjoint(map(_topic, records)):
        return records
    others: list[InputRecord] = []
    by_task: dict[tuple[str, int, bytes | None], list[InputRecord]] = {}
    for record in records:
        topic, partition, offset, time, key, value, headers = record
        if topic not in shared_topics:
            others.append(record)
        elif headers and headers[-1][0] == _TASK_HEADER:
            plain = (topic, partition, offset, time, key, value, headers[:-1])
            by_task.setdefault((topic, partition, headers[-1][1]), []).append(
                record if keep_headers else plain
            )
        else:
            by_task.setdefault((topic, partition, None), []).append(record)
    return others + [
        record for _, record in merge(*map(_with_largest_time, by_task.values()), key=itemgetter(0))
    ]


def without_task_header(record: InputRecord) -> InputRecord:
    *fields, headers = record
    return (*fields, headers[:-1]) if headers and headers[-1][0] == _TASK_HEADER else record  # type: ignore[return-value]


def writer_of(record: InputRecord) -> str:
    """Return the task that wrote a record, from its header; empty without the header."""
    headers = record[-1]
    return (headers[-1][1] or b"").decode() if headers and headers[-1][0] == _TASK_HEADER else ""


def _with_largest_time(records: Iterable[InputRecord]) -> Iterator[tuple[int, InputRecord]]:
    """Yield each record with the largest time so far: a merge keeps late records after their predecessors."""
    largest = -1
    for record in records:
        largest = max(largest, record[_TIME])
        yield largest, record
