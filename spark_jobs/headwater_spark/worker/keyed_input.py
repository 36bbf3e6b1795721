"""A task's part of a batch with numbered keys, for windowed counts in columns."""

from collections.abc import Sequence
from itertools import repeat

import numpy as np
import pyarrow as pa  # type: ignore[import-untyped]
import pyarrow.compute as pc  # type: ignore[import-untyped]

from headwater_spark.engine.keyed_columns import LATEST_TIME, NULL_KEY, KeyedColumns
from headwater_spark.engine.records import InputRecord
from headwater_spark.engine.window_columns import Numbers
from headwater_spark.worker.task_input import COLUMNS, ColumnInput

_WITHOUT_TOPIC_AND_HEADERS = COLUMNS[1:-1]


def number_keys(columns: ColumnInput) -> KeyedColumns | None:
    """Return the columns with numbered keys; None if a record has headers or an unusual timestamp."""
    if any(len(batch.column("headers").values) for batch in columns.batches):
        return None
    table = pa.Table.from_batches(columns.batches).select(_WITHOUT_TOPIC_AND_HEADERS)
    times = table.column("time").to_numpy()
    if times.min() < 0 or times.max() > LATEST_TIME:
        return None
    keys = table.column("key").dictionary_encode().combine_chunks()
    codes = pc.fill_null(keys.indices, NULL_KEY).to_numpy(zero_copy_only=False).astype(np.int64)
    topic = columns.topic_partition[0]

    def records(rows: Numbers) -> Sequence[InputRecord]:
        taken = table.take(pa.array(rows))
        return list(zip(repeat(topic), *(column.to_pylist() for column in taken.columns), repeat(())))

    return KeyedColumns(
        topic=topic, keys=keys.dictionary.to_pylist(), codes=codes, times=times, records=records
    )
