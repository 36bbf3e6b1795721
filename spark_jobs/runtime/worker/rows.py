"""Spark's rows of a batch as the engine's records."""

from collections.abc import Iterable, Mapping
from operator import itemgetter

import attrs
import pyarrow as pa  # type: ignore[import-untyped]
import pyarrow.compute  # type: ignore[import-untyped]

from spark_jobs.runtime.records import Headers, InputRecord

COLUMNS = ("topic", "partition", "offset", "time", "key", "value", "headers")
"""`time` in milliseconds. A tick is a row that has a partition and nothing else."""


@attrs.define
class TaskRows:
    """A task's part of a batch; `tick` = the wall clock moves on for it, too."""

    records: list[InputRecord] = attrs.field(factory=list)
    tick: bool = False


def by_task(batches: Iterable[pa.RecordBatch], *, shuffled: bool) -> Mapping[int, TaskRows]:
    """Return partition → rows, by offset within each topic; Spark keeps their order unless it shuffles."""
    tasks: dict[int, TaskRows] = {}
    for batch in batches:
        if batch.num_rows:
            _sort_out(batch, tasks)
    if shuffled:
        for task in tasks.values():
            task.records.sort(key=itemgetter(0, 2))
    return tasks


def _sort_out(batch: pa.RecordBatch, tasks: dict[int, TaskRows]) -> None:
    partitions = batch.column("partition")
    range_ = pyarrow.compute.min_max(partitions).as_py()
    records = list(_records(batch))
    if range_["min"] == range_["max"] and not batch.column("topic").null_count:
        tasks.setdefault(range_["min"], TaskRows()).records.extend(records)
        return
    is_tick = batch.column("topic").is_null().to_pylist()
    for record, tick in zip(records, is_tick, strict=True):
        task = tasks.setdefault(record[1], TaskRows())
        if tick:
            task.tick = True
        else:
            task.records.append(record)


def _records(batch: pa.RecordBatch) -> Iterable[InputRecord]:
    columns = [batch.column(name).to_pylist() for name in COLUMNS[:-1]]
    return zip(*columns, _headers(batch.column("headers")), strict=True)


def _headers(column: pa.Array) -> Iterable[Headers]:
    if not len(column.values):
        return ((),) * len(column)
    return [
        tuple((header["key"], header["value"]) for header in headers or ()) for headers in column.to_pylist()
    ]
