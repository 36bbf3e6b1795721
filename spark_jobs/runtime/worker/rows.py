"""Spark's rows of a batch, sorted out by task."""

from collections.abc import Iterable, Mapping
from operator import itemgetter
from typing import TYPE_CHECKING

import attrs
import pyarrow as pa  # type: ignore[import-untyped]
import pyarrow.compute as pc  # type: ignore[import-untyped]

from spark_jobs.runtime.worker.task_input import Columns, Records, TaskInput, records

if TYPE_CHECKING:
    from spark_jobs.runtime.engine.records import InputRecord


@attrs.define
class TaskRows:
    """A task's part of a batch; `tick` = the wall clock moves on for it, too."""

    input: TaskInput
    tick: bool = False


def by_task(batches: Iterable[pa.RecordBatch], *, shuffled: bool) -> Mapping[int, TaskRows]:
    """Return partition → rows, by offset within each topic.

    Unless Spark has shuffled them they are of one input partition or few, one after the other, in order.
    """
    filled = (batch for batch in batches if batch.num_rows)
    return _shuffled(filled) if shuffled else _in_order(filled)


def _in_order(batches: Iterable[pa.RecordBatch]) -> Mapping[int, TaskRows]:
    places: dict[int, Columns] = {}
    for batch in batches:
        partitions = batch.column("partition")
        found = pc.unique(partitions).to_pylist()
        for partition in found:
            rows = batch if len(found) == 1 else batch.filter(pc.equal(partitions, partition))
            place = (rows.column("topic")[0].as_py(), partition)
            places.setdefault(partition, Columns(place, [])).batches.append(rows)
    return {partition: TaskRows(columns) for partition, columns in places.items()}


def _shuffled(batches: Iterable[pa.RecordBatch]) -> Mapping[int, TaskRows]:
    tasks: dict[int, list[InputRecord]] = {}
    ticks: set[int] = set()
    for batch in batches:
        for record, is_tick in zip(records(batch), batch.column("topic").is_null().to_pylist(), strict=True):
            task = tasks.setdefault(record[1], [])
            if is_tick:
                ticks.add(record[1])
            else:
                task.append(record)
    for task in tasks.values():
        task.sort(key=itemgetter(0, 2))
    return {partition: TaskRows(Records(task), partition in ticks) for partition, task in tasks.items()}
