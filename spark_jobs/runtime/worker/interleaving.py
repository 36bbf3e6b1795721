"""PURE. Records that several tasks wrote into one repartition partition, side by side in time again.

The tasks of a batch work off their parts one after the other, each with its whole stretch of time. Read in
the order of offsets, the first one's last record would make most of what the others wrote late. In Kafka
Streams tasks advance side by side, so that neighbors in a partition are of about the same time. So a record
says which task wrote it, and the reader lets the task go on that has come least far in time.
"""

from collections.abc import Iterable, Iterator, Sequence
from heapq import merge
from operator import itemgetter
from typing import Final

from spark_jobs.runtime.engine.records import InputRecord, OutputRecord

_HEADER: Final = "headwater.task"
_TOPIC: Final = 0
_TIME: Final = 3
_topic = itemgetter(_TOPIC)


def marked(records: Iterable[OutputRecord], shared: frozenset[str], task: int) -> Iterable[OutputRecord]:
    """Return `records`, those of the topics `shared` with a header that names the task."""
    if not shared:
        return records
    header = (_HEADER, b"%d" % task)
    return [
        (topic, partition, key, value, time, (*headers, header))
        if topic in shared
        else (topic, partition, key, value, time, headers)
        for topic, partition, key, value, time, headers in records
    ]


def interleaved(records: Sequence[InputRecord], shared: frozenset[str]) -> Sequence[InputRecord]:
    """Return `records`, those of the topics `shared` merged by task and without the header.

    Records that came without one are taken for another task's. All others come as they came.
    """
    if not shared or shared.isdisjoint(map(_topic, records)):
        return records
    others: list[InputRecord] = []
    written: dict[tuple[str, bytes | None], list[InputRecord]] = {}
    for record in records:
        topic, partition, offset, time, key, value, headers = record
        if topic not in shared:
            others.append(record)
        elif headers and headers[-1][0] == _HEADER:
            plain = (topic, partition, offset, time, key, value, headers[:-1])
            written.setdefault((topic, headers[-1][1]), []).append(plain)
        else:
            written.setdefault((topic, None), []).append(record)
    return others + [
        record for _, record in merge(*map(_by_reached_time, written.values()), key=itemgetter(0))
    ]


def unmarked(record: InputRecord) -> InputRecord:
    """Return `record` without the header."""
    *fields, headers = record
    return (*fields, headers[:-1]) if headers and headers[-1][0] == _HEADER else record  # type: ignore[return-value]


def _by_reached_time(records: Iterable[InputRecord]) -> Iterator[tuple[int, InputRecord]]:
    """Yield each with the largest time so far: a merge then keeps late ones with what came before them."""
    reached = -1
    for record in records:
        reached = max(reached, record[_TIME])
        yield reached, record
