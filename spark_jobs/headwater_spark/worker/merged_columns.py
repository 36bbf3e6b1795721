"""Columns of topics with several writers, merged by time without a step per record.

`interleaving` explains and defines the order. Here, it is computed for columns in which each record has the
header with the task that wrote it, and no other one.
"""

import numpy as np
import pyarrow as pa  # type: ignore[import-untyped]
import pyarrow.compute as pc  # type: ignore[import-untyped]

from headwater_spark.engine.window_columns import Numbers
from headwater_spark.worker.interleaving import TASK_HEADER
from headwater_spark.worker.partition_input import PartitionedInput
from headwater_spark.worker.task_input import COLUMNS, ColumnInput, TaskInput

_HEADERS = COLUMNS[-1]
_MOST_BYTES = 2**30
"""An Arrow column has at most 2 GiB."""
_BEFORE_ALL = -1
"""Earlier timestamps count as this one, as in `interleaving`."""


def merged_columns(input_: TaskInput, shared_topics: frozenset[str]) -> TaskInput | None:
    """Return the input with the records of `shared_topics` merged by writer, and without its header.

    The result can only be processed: offsets are not in order any more. None = the input has to be merged
    record by record.
    """
    match input_:
        case ColumnInput(has_columns=True):
            return _merged_part(input_, shared_topics)
        case PartitionedInput(parts=parts):
            merged = [_merged_part(part, shared_topics) for part in parts if part.has_columns]
            found = [part for part in merged if part is not None]
            return PartitionedInput(found) if len(found) == len(parts) else None
    return None


def _merged_part(part: ColumnInput, shared_topics: frozenset[str]) -> ColumnInput | None:
    if part.topic_partition[0] not in shared_topics:
        return part
    if part.size > _MOST_BYTES:
        return None
    table = pa.Table.from_batches(part.batches).combine_chunks()
    writers = _writers_of(table.column(_HEADERS).combine_chunks())
    if writers is None:
        return None
    order = _merged_order(writers, table.column("time").to_numpy())
    merged = table.drop_columns(_HEADERS).take(pa.array(order))
    none = pa.nulls(table.num_rows, table.schema.field(_HEADERS).type)
    return ColumnInput(part.topic_partition, merged.append_column(_HEADERS, none).to_batches())


def _writers_of(headers: pa.ListArray) -> Numbers | None:
    """Return a number for the writer of each record, in the order of their first records.

    None = a record has another number of headers than one, or another header.
    """
    items = headers.flatten()
    if headers.null_count or len(items) != len(headers):
        return None
    if not pc.all(pc.equal(pc.list_value_length(headers), 1)).as_py():
        return None
    names, values = items.field(0), items.field(1)
    if items.null_count or values.null_count or names.null_count:
        return None
    if not pc.all(pc.equal(names, TASK_HEADER)).as_py():
        return None
    numbers: Numbers = values.dictionary_encode().indices.to_numpy().astype(np.int64)
    return numbers


def _merged_order(writers: Numbers, times: Numbers) -> Numbers:
    """Return the rows in the order in which they are processed."""
    latest = np.empty(len(times), np.int64)
    for writer in range(int(writers.max()) + 1):
        rows = np.flatnonzero(writers == writer)
        latest[rows] = np.maximum.accumulate(np.maximum(times[rows], _BEFORE_ALL))
    order: Numbers = np.lexsort((writers, latest))
    return order
