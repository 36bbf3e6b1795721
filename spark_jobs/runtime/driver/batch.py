"""One batch of a query: its rows go to the workers, one Spark task for each task of the sub-topology."""

import json
from collections.abc import Callable, Iterable, Iterator, Mapping
from typing import TYPE_CHECKING

import attrs
import pyarrow as pa  # type: ignore[import-untyped]
from pyspark import TaskContext
from pyspark.sql import Column, DataFrame
from pyspark.sql import functions as sql
from pyspark.sql.pandas.functions import PythonEvalType, pandas_udf

from spark_jobs.runtime.driver.native import evaluate_program
from spark_jobs.runtime.engine.partitioners.static import TaskMigrated
from spark_jobs.runtime.engine.records import TopicPartition
from spark_jobs.runtime.engine.task import PoisonRecordError
from spark_jobs.runtime.worker.gc_pause import paused_gc
from spark_jobs.runtime.worker.messages import BatchRequest, BatchResult
from spark_jobs.runtime.worker.task_input import COLUMNS, split_by_task
from spark_jobs.runtime.worker.task_owner import process_task_batch

if TYPE_CHECKING:  # Python workers import this module, too: they need none of the driver's other modules
    from spark_jobs.runtime.driver.query_specs import QuerySpec

_RESULT_SCHEMA = "result string"
_END_OFFSETS_KEY = "headwater.ends"
_BATCH_KEY = "streaming.sql.batchId"
"""Spark's own key."""
ArrowFunction = Callable[[Iterable[pa.RecordBatch]], Iterator[pa.RecordBatch]]
EndOffsets = Mapping[TopicPartition, int]


class BatchProcessor:
    """Processes the batches of one query; Spark's `foreachBatch` calls it in the query's thread."""

    def __init__(self, spec: "QuerySpec") -> None:
        self._spec = spec
        self._tasks = TaskFunction()

    def __call__(self, rows: DataFrame, batch: int) -> None:
        """Process and commit a batch.

        Every task processes its part, then the first failure is raised. When the batch is repeated, tasks
        skip the records that they have committed.

        Raises:
            TaskMigrated: A record's partition does not exist yet.
            PoisonRecordError: A record cannot be processed, and the exception handlers fail.
        """
        with self._spec.round():
            request = self._spec.request(batch)
            extra = self._spec.extra_ranges(request)
            if extra:
                rows = rows.unionByName(self.evaluate_native(self._spec.read_ranges(extra)))
                ends = {partition: end for partition, (_, end) in extra.items()}
                request = attrs.evolve(request, end_offsets={**request.end_offsets, **ends})
            self._process(rows, batch, request, has_extra=bool(extra))

    def evaluate_native(self, rows: DataFrame) -> DataFrame:
        """Return `rows` as the tasks read them.

        Call it once for a stream: Spark's analysis takes as long as a batch.
        """
        program = self._spec.native_program
        return rows if program is None else evaluate_program(rows, program)

    def _process(self, rows: DataFrame, batch: int, request: BatchRequest, *, has_extra: bool) -> None:
        context = rows.sparkSession.sparkContext
        context.setJobDescription(f"{request.application}: sub-topology {request.subtopology}, batch {batch}")
        shuffled = self._spec.ticks or not self._spec.reads_single_topic or has_extra
        if shuffled:
            tasks = max(request.partition_counts.values())
            rows = _partitioned_by_task(rows, tasks, ticks=self._spec.ticks)
        results = self._tasks.run(rows, batch, request, shuffled=shuffled)
        self._spec.report(batch, results)
        _raise_failures(results)


class TaskFunction:
    """The function that Spark's workers run, for one query; only the query's thread calls it.

    `DataFrame.mapInArrow` pickles its function, looks up Java classes by name and resolves columns at each
    call, which takes longer than a small batch. So the prepared call is kept as long as the request stays the
    same. The batch's end offsets differ each time; they are passed as a property of the Spark job.
    """

    def __init__(self) -> None:
        self._prepared_for: tuple[BatchRequest, bool] | None = None
        self._call: Column | None = None

    def run(self, rows: DataFrame, batch: int, request: BatchRequest, *, shuffled: bool) -> list[BatchResult]:
        """Process `rows` (columns of `worker.task_input`) in the workers; return the tasks' results."""
        constant = attrs.evolve(request, end_offsets={})
        if self._call is None or self._prepared_for != (constant, shuffled):
            function = pandas_udf(  # type: ignore[call-overload]
                _arrow_function(constant, shuffled=shuffled),
                _RESULT_SCHEMA,
                PythonEvalType.SQL_MAP_ARROW_ITER_UDF,
            )
            self._call, self._prepared_for = function(*COLUMNS), (constant, shuffled)
        context = rows.sparkSession.sparkContext
        context.setLocalProperty(_END_OFFSETS_KEY, encode_end_offsets(request, batch))
        results = DataFrame(rows._jdf.mapInArrow(self._call._jc, False, None), rows.sparkSession)  # noqa: SLF001, FBT003 - as PySpark's own method
        return [_decode_result(row.result) for row in results.collect()]


def encode_end_offsets(request: BatchRequest, batch: int) -> str:
    """Return the end offsets of a batch, with the application, sub-topology and batch that they belong to."""
    ends = [[*partition, end] for partition, end in request.end_offsets.items()]
    return json.dumps([request.application, request.subtopology, batch, ends])


def decode_end_offsets(text: str | None, request: BatchRequest, batch: str | None) -> EndOffsets:
    """Return the end offsets, or none if they belong to another batch.

    Without them the committed offsets may lie before transaction markers, which only affects the lag.
    """
    if text is None:
        return {}
    *owner, ends = json.loads(text)
    if [*map(str, owner)] != [request.application, request.subtopology, batch]:
        return {}
    return {(topic, partition): end for topic, partition, end in ends}


def _arrow_function(constant: BatchRequest, *, shuffled: bool) -> ArrowFunction:
    def run(batches: Iterable[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        request = attrs.evolve(constant, end_offsets=_end_offsets_of_job(constant))
        with paused_gc():
            tasks = split_by_task(batches, shuffled=shuffled)
            results = [
                process_task_batch(request, partition, rows.input, tick=rows.tick)
                for partition, rows in sorted(tasks.items())
            ]
            del tasks
        if results:
            lines = [json.dumps(attrs.asdict(result)) for result in results]
            yield pa.RecordBatch.from_pydict({"result": lines})

    return run


def _end_offsets_of_job(request: BatchRequest) -> EndOffsets:
    context = TaskContext.get()
    if context is None:
        return {}
    text, batch = context.getLocalProperty(_END_OFFSETS_KEY), context.getLocalProperty(_BATCH_KEY)
    return decode_end_offsets(text, request, batch)


def _partitioned_by_task(rows: DataFrame, tasks: int, *, ticks: bool) -> DataFrame:
    """Return the rows with Spark partition = task; each tick goes to every task."""
    if ticks:
        all_tasks = sql.sequence(sql.lit(0), sql.lit(tasks - 1))
        partitions = sql.when(sql.col("topic").isNull(), all_tasks).otherwise(sql.array("partition"))
        rows = rows.withColumn("partition", sql.explode(partitions))
    return rows.repartitionById(tasks, sql.col("partition"))


def _decode_result(line: str) -> BatchResult:
    fields = json.loads(line)
    missing = fields.pop("missing_partition")
    return BatchResult(**fields, missing_partition=tuple(missing) if missing else None)


def _raise_failures(results: Iterable[BatchResult]) -> None:
    for result in results:
        if result.poison_record is not None:
            raise PoisonRecordError(result.poison_record, result.poison_handler)
    for result in results:
        if result.missing_partition is not None:
            raise TaskMigrated(*result.missing_partition)
