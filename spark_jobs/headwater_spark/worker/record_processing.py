"""How a task processes a batch: in the first of these ways that its nodes and its input allow.

All ways have the same results. The earlier ones cost less.

1. Numbers of records per key (`engine.key_counts`): a `count` with a cache that has room, of one partition.
2. Numbers of records per key and window (`engine.keyed_columns`): a tumbling or hopping `count` that has a
   cache for itself, of one partition, with many records and no headers.
3. Columns with an update per record (`engine.columns`): a `count` without a cache whose updates go to one
   sink, of one partition, without null keys and values.
4. Columns as planned (`engine.column_planning`): tables, aggregations by key and joins of streams with
   tables, whose caches have room for the batch, of any partitions.
5. Single records.

A batch is processed as single records once the brokers have refused some of its output: in columns, the input
record of an output record is unknown. Records of topics with several writers are merged by time first: in
columns (`merged_columns`) if there are many, they are not large, and each names its writer; otherwise as
single records.
"""

from collections.abc import Callable, Iterable

from headwater_spark.engine.columns import can_count_columns
from headwater_spark.engine.records import OutputRecord
from headwater_spark.engine.task import Task
from headwater_spark.worker.interleaving import interleaved
from headwater_spark.worker.merged_columns import merged_columns
from headwater_spark.worker.partition_input import PartitionedInput
from headwater_spark.worker.task_input import ColumnInput, TaskInput, count_keys, number_keys

_MANY_RECORDS = 256
"""From here on, columns take less time than single records where numpy and Arrow compute with them."""

_Outputs = Iterable[OutputRecord]
_Count = Callable[[Task, ColumnInput, int], _Outputs | None]


def process_input(
    task: Task, fresh: TaskInput, shared_topics: frozenset[str], now: int, *, in_columns: bool
) -> _Outputs:
    """Process a task's part of a batch; return the output records.

    Args:
        task: The task.
        fresh: Its input.
        shared_topics: The topics with several writers.
        now: The wall-clock time of the batch, in milliseconds.
        in_columns: Whether columns may be used.
    """
    if in_columns and shared_topics and len(fresh) >= _MANY_RECORDS:
        merged = merged_columns(fresh, shared_topics)
        if merged is not None:
            fresh, shared_topics = merged, frozenset()
    columns = planned_columns(fresh, shared_topics) if in_columns else None
    if isinstance(columns, ColumnInput):
        for count in _COUNTS:
            outputs = count(task, columns, now)
            if outputs is not None:
                return outputs
    if columns is not None and task.is_columnar:
        return task.process_partitions(columns.partition_columns(), (), now)[0]
    return task.process(interleaved(fresh.records(), shared_topics), now)


def planned_columns(fresh: TaskInput, shared_topics: frozenset[str]) -> ColumnInput | PartitionedInput | None:
    """Return the input if it has columns, and none of its topics has several writers."""
    match fresh:
        case ColumnInput(topic_partition=(topic, _), has_columns=True):
            topics = {topic}
        case PartitionedInput(parts=parts):
            topics = {part.topic_partition[0] for part in parts}
        case _:
            return None
    return None if topics & shared_topics else fresh


def _count_keys(task: Task, columns: ColumnInput, now: int) -> _Outputs | None:
    if task.key_counter is None:
        return None
    counts = count_keys(columns)
    if counts is None or not task.can_process_key_counts(counts):
        return None
    return task.process_key_counts(counts, now)


def _count_windows(task: Task, columns: ColumnInput, now: int) -> _Outputs | None:
    if not task.can_process_windows or len(columns) < _MANY_RECORDS:
        return None
    keyed = number_keys(columns)
    return None if keyed is None else task.process_windows(keyed, now)


def _count_records(task: Task, columns: ColumnInput, now: int) -> _Outputs | None:
    if task.column_counter is None:
        return None
    parts = list(columns.columns())
    return task.process_columns(parts, now) if all(map(can_count_columns, parts)) else None


_COUNTS: tuple[_Count, ...] = (_count_keys, _count_windows, _count_records)
