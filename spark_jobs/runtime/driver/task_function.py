"""The function that works off a batch's rows on the workers, made known to Spark once.

`DataFrame.mapInArrow` pickles its function, looks up Java's classes by their names and resolves columns at
each call: more work than a small batch is. So the call of the function is kept as long as the work order is
the same. Where a batch ends, which differs each time, goes along as a property of its job.
"""

import json
from collections.abc import Callable, Iterable, Iterator, Mapping

import attrs
import pyarrow as pa  # type: ignore[import-untyped]
from pyspark import TaskContext
from pyspark.sql import Column, DataFrame
from pyspark.sql.pandas.functions import PythonEvalType, pandas_udf

from spark_jobs.runtime.worker.gc_pause import paused_gc
from spark_jobs.runtime.worker.messages import BatchRequest, BatchResult
from spark_jobs.runtime.worker.task_input import COLUMNS, split_by_task
from spark_jobs.runtime.worker.task_owner import process_task_batch

_SCHEMA = "outcome string"
_ENDS_KEY = "headwater.ends"
_BATCH_KEY = "streaming.sql.batchId"
"""Spark's own."""
ToArrow = Callable[[Iterable[pa.RecordBatch]], Iterator[pa.RecordBatch]]
Ends = Mapping[tuple[str, int], int]


class TaskFunction:
    """Of one query, called by its thread alone."""

    def __init__(self) -> None:
        self._made_for: tuple[BatchRequest, bool] | None = None
        self._call: Column | None = None

    def over(self, rows: DataFrame, batch: int, order: BatchRequest, *, shuffled: bool) -> list[BatchResult]:
        """Return what became of the tasks' parts of `rows` (columns of `worker.task_input`)."""
        lasting = attrs.evolve(order, end_offsets={})
        if self._call is None or self._made_for != (lasting, shuffled):
            function = pandas_udf(  # type: ignore[call-overload]
                _worker(lasting, shuffled=shuffled), _SCHEMA, PythonEvalType.SQL_MAP_ARROW_ITER_UDF
            )
            self._call, self._made_for = function(*COLUMNS), (lasting, shuffled)
        rows.sparkSession.sparkContext.setLocalProperty(_ENDS_KEY, written_ends(order, batch))
        told = DataFrame(rows._jdf.mapInArrow(self._call._jc, False, None), rows.sparkSession)  # noqa: SLF001, FBT003 - what PySpark's own does
        return [_outcome(row.outcome) for row in told.collect()]


def written_ends(order: BatchRequest, batch: int) -> str:
    """Return the ends of a batch with whose they are."""
    ends = [[*place, end] for place, end in order.end_offsets.items()]
    return json.dumps([order.application, order.subtopology, batch, ends])


def read_ends(text: str | None, order: BatchRequest, batch: str | None) -> Ends:
    """Return the ends if they are this batch's. None are missed but by who looks at lags (`offset_log`)."""
    if text is None:
        return {}
    *whose, ends = json.loads(text)
    if [*map(str, whose)] != [order.application, order.subtopology, batch]:
        return {}
    return {(topic, partition): end for topic, partition, end in ends}


def _worker(lasting: BatchRequest, *, shuffled: bool) -> ToArrow:
    def run(batches: Iterable[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        order = attrs.evolve(lasting, end_offsets=_ends_here(lasting))
        with paused_gc():
            tasks = split_by_task(batches, shuffled=shuffled)
            outcomes = [
                process_task_batch(order, partition, rows.input, tick=rows.tick)
                for partition, rows in sorted(tasks.items())
            ]
            del tasks
        if outcomes:
            lines = [json.dumps(attrs.asdict(outcome)) for outcome in outcomes]
            yield pa.RecordBatch.from_pydict({"outcome": lines})

    return run


def _ends_here(order: BatchRequest) -> Ends:
    context = TaskContext.get()
    if context is None:
        return {}
    return read_ends(context.getLocalProperty(_ENDS_KEY), order, context.getLocalProperty(_BATCH_KEY))


def _outcome(line: str) -> BatchResult:
    fields = json.loads(line)
    migrated = fields.pop("missing_partition")
    return BatchResult(**fields, missing_partition=tuple(migrated) if migrated else None)
