"""The order of the records that a task processes: merged by time, or held back for a later batch.

Several tasks write to the same partition of a repartition topic. The tasks of a batch write one after the
other, each its whole range of times. In the order of offsets, the last record of the first task would make
most records of the others late. In Kafka Streams tasks advance side
by side, so that neighbors in a partition have similar times. So each record carries a header with the task
that wrote it. The reader merges the tasks' records: next is always the task that has advanced least in time.

The order of records across a task's partitions is the order of their timestamps. If a partition has no record
left in a batch, though it has more in Kafka, the records that may follow them are held back: a later batch
reads them again. The offset that is committed for their partition is the first unprocessed offset.

In a topic with several writers, records after that offset
may have been processed. The read position of each writing task is committed with the offset.
"""

from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from heapq import merge
from operator import itemgetter
from typing import Final

import attrs

from headwater.model.offset_metadata import NOTHING_READ, ReadPositions
from headwater_spark.engine.columns import Columns, OutputColumns, TopicColumns
from headwater_spark.engine.records import InputRecord, OutputRecord, TopicPartition

TASK_HEADER: Final = "headwater.task"
"""The header with the task that wrote a record."""
_TOPIC: Final = 0
_TIME: Final = 3
_topic = itemgetter(_TOPIC)
Positions = Mapping[TopicPartition, ReadPositions]
MAX_WRITERS = 200
"""Read positions of more tasks might not fit into the metadata of an offset."""
_offset = itemgetter(2)
_time = itemgetter(3)


def with_task_header(
    records: Iterable[OutputRecord], shared_topics: frozenset[str], task: int
) -> Iterable[OutputRecord]:
    """Return `records`; records of `shared_topics` get a header with the task's partition."""
    if not shared_topics:
        return records
    header = (TASK_HEADER, b"%d" % task)
    if isinstance(records, OutputColumns):
        topics = [
            _with_header(each, header) if each.topic in shared_topics else each for each in records.topics
        ]
        return OutputColumns(topics, list(with_task_header(records.rest, shared_topics, task)))
    return [
        (topic, partition, key, value, time, (*headers, header))
        if topic in shared_topics
        else (topic, partition, key, value, time, headers)
        for topic, partition, key, value, time, headers in records
    ]


def _with_header(topic: TopicColumns, header: tuple[str, bytes]) -> TopicColumns:
    parts: list[Columns] = []
    for keys, values, times, headers in topic.parts:
        own = [(*each, header) for each in headers] if any(headers) else [(header,)] * len(keys)
        parts.append((keys, values, times, own))
    return attrs.evolve(topic, parts=parts)


def interleave_records(
    records: Sequence[InputRecord], shared_topics: frozenset[str], *, keep_headers: bool = False
) -> Sequence[InputRecord]:
    """Return `records`; records of `shared_topics` are merged by task, and their header is removed.

    Records without the header count as one more task. Records of other topics keep their order, and so do
    records of one task in one partition.
    """
    if not shared_topics or shared_topics.isdisjoint(map(_topic, records)):
        return records
    others: list[InputRecord] = []
    by_task: dict[tuple[str, int, bytes | None], list[InputRecord]] = {}
    for record in records:
        topic, partition, offset, time, key, value, headers = record
        if topic not in shared_topics:
            others.append(record)
        elif headers and headers[-1][0] == TASK_HEADER:
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
    return (*fields, headers[:-1]) if headers and headers[-1][0] == TASK_HEADER else record  # type: ignore[return-value]


def writer_of(record: InputRecord) -> str:
    """Return the task that wrote a record, from its header; empty without the header."""
    headers = record[-1]
    return (headers[-1][1] or b"").decode() if headers and headers[-1][0] == TASK_HEADER else ""


def _with_largest_time(records: Iterable[InputRecord]) -> Iterator[tuple[int, InputRecord]]:
    """Yield each record with the largest time so far: a merge keeps late records after their predecessors."""
    largest = -1
    for record in records:
        largest = max(largest, record[_TIME])
        yield largest, record


@attrs.frozen
class ProcessedPart:
    """The part of a batch that was processed; all are topic partition → value.

    `offsets` are the offsets to commit and `times` the largest timestamps, of partitions with a processed
    record. `held_back` are the first offsets that were not processed, of partitions with such records.
    `positions` are the new read positions.
    """

    read: int
    offsets: Mapping[TopicPartition, int]
    times: Mapping[TopicPartition, int]
    held_back: Mapping[TopicPartition, int] = attrs.field(factory=dict)
    positions: Positions = attrs.field(factory=dict)


def without_read(records: Sequence[InputRecord], positions: Positions) -> Sequence[InputRecord]:
    """Return `records` without records before the read position of their writer."""
    if not positions:
        return records
    return [
        record
        for record in records
        if _offset(record) >= positions.get(record[:2], NOTHING_READ).get(writer_of(record), 0)
    ]


def in_processing_order(
    records: Sequence[InputRecord], shared_topics: frozenset[str]
) -> Sequence[InputRecord]:
    """Return `records` with records of `shared_topics` merged by task; they keep the header with the task.

    With too many tasks to commit their read positions, the records stay in the order of their offsets.
    """
    shared = [record for record in records if record[0] in shared_topics]
    if not shared or len(set(map(writer_of, shared))) > MAX_WRITERS:
        return records
    return interleave_records(records, shared_topics, keep_headers=True)


def without_task_headers(
    records: Sequence[InputRecord], shared_topics: frozenset[str]
) -> Iterable[InputRecord]:
    """Return `records` as the task processes them."""
    if not shared_topics:
        return records
    return [without_task_header(each) if each[0] in shared_topics else each for each in records]


def processed_part(
    records: Sequence[InputRecord],
    numbers_held_back: Mapping[TopicPartition, int],
    shared_topics: Collection[str],
    positions: Positions,
) -> ProcessedPart:
    """Return what was processed.

    `records` are the batch, in the processing order of each partition, with the headers of the tasks.
    `numbers_held_back` is partition → number of records at its end that were not processed. `shared_topics`
    have several writers.
    """
    queues: dict[TopicPartition, list[InputRecord]] = {}
    for record in records:
        queues.setdefault(record[:2], []).append(record)
    offsets: dict[TopicPartition, int] = {}
    times: dict[TopicPartition, int] = {}
    held_back: dict[TopicPartition, int] = {}
    read_positions: dict[TopicPartition, ReadPositions] = {}
    for partition, queue in queues.items():
        number = len(queue) - numbers_held_back.get(partition, 0)
        processed, rest = queue[:number], queue[number:]
        if rest:
            held_back[partition] = min(map(_offset, rest))
        if processed:
            offsets[partition] = held_back.get(partition, max(map(_offset, processed)) + 1)
            times[partition] = max(map(_time, processed))
        if processed and rest and partition[0] in shared_topics:
            before = positions.get(partition, NOTHING_READ)
            read_positions[partition] = _read_positions(processed, before)
    return ProcessedPart(
        read=len(records) - sum(numbers_held_back.values()),
        offsets=offsets,
        times=times,
        held_back=held_back,
        positions=read_positions,
    )


def _read_positions(processed: Iterable[InputRecord], before: ReadPositions) -> ReadPositions:
    positions = dict(before)
    for record in processed:
        writer = writer_of(record)
        positions[writer] = max(positions.get(writer, 0), _offset(record) + 1)
    return positions
