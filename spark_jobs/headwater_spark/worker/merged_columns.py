"""Columns of topics with several writers, merged by time without a step per record.

`interleaving` explains and defines the order. Here, it is computed for columns in which the last header of
each record is the task that wrote it. The input is kept for another attempt, so a batch is in memory twice.
"""

from collections.abc import Iterator

import numpy as np
import pyarrow as pa  # type: ignore[import-untyped]
import pyarrow.compute as pc  # type: ignore[import-untyped]

from headwater_spark.engine.window_columns import Numbers
from headwater_spark.worker.interleaving import TASK_HEADER
from headwater_spark.worker.partition_input import PartitionedInput
from headwater_spark.worker.task_input import COLUMNS, ColumnInput, TaskInput

_HEADERS = COLUMNS[-1]
_MOST_BYTES = 2**30
"""Larger input is merged record by record: an Arrow column has at most 2 GiB."""
_MOST_BYTES_PER_RECORD = 1_024
"""On average. Larger records are merged one by one: columns need up to twice the memory, and no less time."""
_ROWS_AT_ONCE = 16_384
_BEFORE_ALL = -1
"""Earlier timestamps count as this one, as in `interleaving`."""


def merged_columns(input_: TaskInput, shared_topics: frozenset[str]) -> TaskInput | None:
    """Return the input with the records of `shared_topics` merged by writer, and without that header.

    The result can only be processed: offsets are not in order any more. None = the input has to be merged
    record by record.
    """
    match input_:
        case ColumnInput(has_columns=True):
            return _merged_part(input_, shared_topics)
        case PartitionedInput(parts=parts):
            merged: list[ColumnInput] = []
            for part in parts:
                found = _merged_part(part, shared_topics) if part.has_columns else None
                if found is None:
                    return None
                merged.append(found)
            return PartitionedInput(merged)
    return None


def _merged_part(part: ColumnInput, shared_topics: frozenset[str]) -> ColumnInput | None:
    if part.topic_partition[0] not in shared_topics:
        return part
    if part.size > min(_MOST_BYTES, _MOST_BYTES_PER_RECORD * len(part)):
        return None
    table = part.combine_batches()
    headers = table.column(_HEADERS).combine_chunks()
    if headers.null_count:
        return None
    lengths = pc.list_value_length(headers).to_numpy().astype(np.int64)
    if not lengths.all():
        return None
    last = np.cumsum(lengths) - 1
    writers = _writers_of(headers.flatten().take(pa.array(last)))
    if writers is None:
        return None
    order = _merged_order(writers, table.column("time").to_numpy())
    merged = table.drop_columns(_HEADERS).append_column(_HEADERS, _other_headers(headers, last))
    return ColumnInput(part.topic_partition, list(_taken(merged, order)))


def _taken(table: pa.Table, order: Numbers) -> Iterator[pa.RecordBatch]:
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


def _other_headers(headers: pa.ListArray, last: Numbers) -> pa.Array:
    """Return the headers of each record without the last one; `last` are the positions of these."""
    items = headers.flatten()
    if len(items) == len(last):
        return pa.nulls(len(last), headers.type)
    are_kept = np.ones(len(items), bool)
    are_kept[last] = False
    ends = last - np.arange(len(last))
    offsets = np.concatenate(([0], ends)).astype(np.int32)
    return pa.ListArray.from_arrays(pa.array(offsets), items.filter(pa.array(are_kept)))


def _merged_order(writers: Numbers, times: Numbers) -> Numbers:
    """Return the rows in the order in which they are processed."""
    latest = np.empty(len(times), np.int64)
    for writer in range(int(writers.max()) + 1):
        rows = np.flatnonzero(writers == writer)
        latest[rows] = np.maximum.accumulate(np.maximum(times[rows], _BEFORE_ALL))
    order: Numbers = np.lexsort((writers, latest))
    return order
