"""The records of a task's part of a batch, counted per key by Arrow."""

from typing import TYPE_CHECKING

import pyarrow as pa  # type: ignore[import-untyped]
import pyarrow.compute as pc  # type: ignore[import-untyped]

from spark_jobs.runtime.engine.key_counts import KeyCount, KeyCounts
from spark_jobs.runtime.worker.interleaving import unmarked
from spark_jobs.runtime.worker.task_input import Columns, records

if TYPE_CHECKING:
    from collections.abc import Iterable

    from spark_jobs.runtime.engine.records import InputRecord

_ROW = "row"


def count_keys(columns: Columns, shared: frozenset[str]) -> KeyCounts | None:
    """Return the number of records per key; None if a timestamp is negative: then single records matter.

    `shared` are the topics whose records carry the task that wrote them (`interleaving`).
    """
    table = pa.Table.from_batches(columns.batches)
    times = pc.min_max(table.column("time")).as_py()
    if times["min"] < 0:
        return None
    table = table.append_column(_ROW, pa.array(range(table.num_rows), pa.int64()))
    whole = table
    if table.column("key").null_count or table.column("value").null_count:
        whole = table.filter(pc.and_(pc.is_valid(table.column("key")), pc.is_valid(table.column("value"))))
    groups = (
        whole.group_by("key", use_threads=False)
        .aggregate([(_ROW, "max"), (_ROW, "count"), ("time", "max")])
        .sort_by(f"{_ROW}_max")
    )
    lasts = table.drop_columns(_ROW).take(groups.column(f"{_ROW}_max")).combine_chunks()
    last: Iterable[InputRecord] = (record for batch in lasts.to_batches() for record in records(batch))
    if columns.place[0] in shared:
        last = map(unmarked, last)
    counts = (groups.column(name).to_pylist() for name in ("key", f"{_ROW}_count", "time_max"))
    by_key: list[KeyCount] = list(zip(*counts, last, strict=True))
    return KeyCounts(by_key=by_key, dropped=table.num_rows - whole.num_rows, latest=times["max"])
