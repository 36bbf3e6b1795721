"""How a task processes a batch: in the first of these ways that its nodes and its input allow.

All ways have the same results. The earlier ones cost less.

1. Numbers of records per key (`engine.key_counts`): a `count` with a cache that has room, of one partition.
2. Numbers of records per key and window (`engine.key_counts`): a `count` in windows or sessions that has a
   cache for itself, of one partition, with many records and no headers.
3. Columns with an update per record (`engine.columns`, `engine.counted_windows`): a `count` without a cache,
   by key or in time windows, whose updates go to one sink, of one partition.
4. Columns as planned (`engine.column_planning`): tables, aggregations by key and joins of streams with
   tables, whose caches have room for the batch, and inner joins of two streams, of any partitions.
5. Single records.

A batch is processed as single records once the brokers have refused some of its output: in columns, the input
record of an output record is unknown. Records of topics with several writers are merged by time first, as
`interleaving` explains: in columns (`merged_columns`) if there are many, they are not large, and the last
header of each is the task that wrote it; otherwise as single records.
"""

from collections.abc import Callable, Iterable, Iterator

import numpy as np
import pyarrow as pa  # type: ignore[import-untyped]
import pyarrow.compute as pc  # type: ignore[import-untyped]

from headwater_spark.engine.records import OutputRecord
from headwater_spark.engine.task import Task
from headwater_spark.engine.window_columns import Numbers
from headwater_spark.worker.interleaving import TASK_HEADER, interleave_records
from headwater_spark.worker.task_input import (
    COLUMNS,
    ColumnInput,
    PartitionedInput,
    TaskInput,
    count_keys,
    number_keys,
    without_negative_times,
)

_HEADERS = COLUMNS[-1]
_MOST_BYTES = 2**30
"""Larger input is merged record by record: an Arrow column has at most 2 GiB."""
_MOST_BYTES_PER_RECORD = 1_024
"""On average. Larger records are merged one by one: columns need up to twice the memory, and no less time."""
_ROWS_AT_ONCE = 16_384
_BEFORE_ALL = -1
"""Earlier timestamps count as this one, as in `interleaving`."""

_MANY_RECORDS = 256
"""From here on, columns take less time than single records where numpy and Arrow compute with them."""

_Outputs = Iterable[OutputRecord]
_Count = Callable[[Task, ColumnInput, int], _Outputs | None]


def process_input(
    task: Task, fresh: TaskInput, shared_topics: frozenset[str], now: int, *, in_columns: bool
) -> _Outputs:
    """Process a task's part of a batch at its wall-clock time in milliseconds; return the output records.

    `shared_topics` are the topics with several writers.
    """
    if in_columns and shared_topics and len(fresh) >= _MANY_RECORDS:
        merged = merged_columns(fresh, shared_topics)
        if merged is not None:
            fresh, shared_topics = merged, frozenset()
    columns = planned_columns(fresh, shared_topics) if in_columns else None
    if isinstance(columns, ColumnInput):
        outputs = _count(task, columns, now)
        if outputs is not None:
            return outputs
    if columns is not None and task.is_columnar:
        return task.process_partitions(columns.partition_columns(), (), now)[0]
    return task.process(interleave_records(fresh.records(), shared_topics), now)


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


def _process_key_counts(task: Task, columns: ColumnInput, now: int) -> _Outputs | None:
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
    return task.process_columns(list(columns.columns()), now)


_COUNTS: tuple[_Count, ...] = (_process_key_counts, _count_windows, _count_records)


def _count(task: Task, columns: ColumnInput, now: int) -> _Outputs | None:
    """Count all records that the source does not drop; None = nothing was counted."""
    if not task.counts_columns:
        return None
    kept, dropped = without_negative_times(columns)
    for count in _COUNTS if len(kept) else ():
        outputs = count(task, kept, now)
        if outputs is not None:
            task.drop_negative_times(columns.topic_partition[0], dropped)
            return outputs
    return None


def merged_columns(input_: TaskInput, shared_topics: frozenset[str]) -> TaskInput | None:
    """Return the input with the records of `shared_topics` merged by writer, and without that header.

    The result can only be processed: offsets are not in order any more. None = the input has to be merged
    record by record.
    """
    match input_:
        case ColumnInput(has_columns=True):
            return _merge_part(input_, shared_topics)
        case PartitionedInput(parts=parts):
            merged: list[ColumnInput] = []
            for part in parts:
                found = _merge_part(part, shared_topics) if part.has_columns else None
                if found is None:
                    return None
                merged.append(found)
            return PartitionedInput(merged)
    return None


def _merge_part(part: ColumnInput, shared_topics: frozenset[str]) -> ColumnInput | None:
    if part.topic_partition[0] not in shared_topics:
        return part
    if part.size > min(_MOST_BYTES, _MOST_BYTES_PER_RECORD * len(part)):
        return None
    headers = pa.concat_arrays([batch.column(_HEADERS) for batch in part.batches])
    if headers.null_count:
        return None
    lengths = pc.list_value_length(headers).to_numpy().astype(np.int64)
    if not lengths.all():
        return None
    last = np.cumsum(lengths) - 1
    writers = _writers_of(headers.flatten().take(pa.array(last)))
    if writers is None:
        return None
    table = part.combine_batches()  # not before: single records would not release the batches one by one
    order = _order_by_time(writers, table.column("time").to_numpy())
    merged = table.drop_columns(_HEADERS).append_column(_HEADERS, _drop_last_headers(headers, last))
    return ColumnInput(part.topic_partition, list(_reorder_rows(merged, order)))


def _reorder_rows(table: pa.Table, order: Numbers) -> Iterator[pa.RecordBatch]:
    """Yield the rows in an order, in several batches: who converts them releases one after the other."""
    for first in range(0, len(order), _ROWS_AT_ONCE):
        yield from table.take(pa.array(order[first : first + _ROWS_AT_ONCE])).to_batches()


def _writers_of(headers: pa.StructArray) -> Numbers | None:
    """Return a number for the writer of each record, in the order of their first records.

    None = a header has another name, or no value.
    """
    names, values = headers.field(0), headers.field(1)
    if names.null_count or values.null_count or not pc.all(pc.equal(names, TASK_HEADER)).as_py():
        return None
    numbers: Numbers = values.dictionary_encode().indices.to_numpy().astype(np.int64)
    return numbers


def _drop_last_headers(headers: pa.ListArray, last: Numbers) -> pa.Array:
    """Return the headers of each record without the last one; `last` are the positions of these."""
    items = headers.flatten()
    if len(items) == len(last):
        return pa.nulls(len(last), headers.type)
    are_kept = np.ones(len(items), bool)
    are_kept[last] = False
    ends = last - np.arange(len(last))
    offsets = np.concatenate(([0], ends)).astype(np.int32)
    return pa.ListArray.from_arrays(pa.array(offsets), items.filter(pa.array(are_kept)))


def _order_by_time(writers: Numbers, times: Numbers) -> Numbers:
    """Return the rows in the order in which they are processed."""
    latest = np.empty(len(times), np.int64)
    for writer in range(int(writers.max()) + 1):
        rows = np.flatnonzero(writers == writer)
        latest[rows] = np.maximum.accumulate(np.maximum(times[rows], _BEFORE_ALL))
    order: Numbers = np.lexsort((writers, latest))
    return order
