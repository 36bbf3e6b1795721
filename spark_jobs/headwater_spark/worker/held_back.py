"""Records that a task holds back: what was processed, and which offsets are committed.

The order of records across a task's partitions is that of their timestamps. If a partition has no record left
in a batch, though it has more in Kafka, the records that may follow them are held back: a later batch reads
them again. The offset that is committed for their partition is the first one that was not processed.

In a topic with several writers, whose records are merged by time (`interleaving`), records after that offset
may have been processed. The read position of each writing task is committed with the offset.
"""

from collections.abc import Collection, Iterable, Mapping, Sequence
from operator import itemgetter

import attrs

from headwater.model.offset_metadata import NOTHING_READ, ReadPositions
from headwater_spark.engine.records import InputRecord, TopicPartition
from headwater_spark.worker.interleaving import interleaved, without_task_header, writer_of

Positions = Mapping[TopicPartition, ReadPositions]
MAX_WRITERS = 200
"""Read positions of more tasks might not fit into the metadata of an offset."""
_offset = itemgetter(2)
_time = itemgetter(3)


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
    """Return `records` without those that are before the read position of their writer."""
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
    """Return `records` with those of `shared_topics` merged by task; they keep the header with the task.

    With too many tasks to commit their read positions, the records stay in the order of their offsets.
    """
    shared = [record for record in records if record[0] in shared_topics]
    if not shared or len(set(map(writer_of, shared))) > MAX_WRITERS:
        return records
    return interleaved(records, shared_topics, keep_headers=True)


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

    Args:
        records: The batch, in the processing order of each partition, with the headers of the tasks.
        numbers_held_back: Partition → number of records at its end that were not processed.
        shared_topics: The topics with several writers.
        positions: The read positions before the batch.
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
