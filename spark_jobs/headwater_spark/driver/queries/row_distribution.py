"""How the rows of a batch get to the Spark tasks: packed, grouped, shuffled or coalesced."""

from collections.abc import Callable, Iterable, Sequence
from functools import partial

import attrs
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as sql

from headwater_spark.driver.input.sources import ROW_SCHEMA, task_ticks
from headwater_spark.driver.placement.task_placement import PlacedTasks
from headwater_spark.driver.queries.native import evaluate_program
from headwater_spark.driver.queries.specs import QuerySpec
from headwater_spark.engine.records import OffsetRanges
from headwater_spark.spark_internals.input_partitions import RowGroups
from headwater_spark.spark_internals.packing import Evaluation, RecordPacking
from headwater_spark.worker.messages import BatchRequest
from headwater_spark.worker.task_input import TOPIC
from headwater_spark.worker.task_rows import SCHEMA

FEWEST_PACKED = 10_000
"""Packing saves about a microsecond per record, and takes some milliseconds per batch."""
_LARGE_BYTES = 16 * 1024 * 1024
"""Without packing, Spark's JVM holds up to 2,000 records in one Arrow batch, whatever their size."""
_VALUE = "value"


@attrs.frozen(eq=False)
class DistributedRows:
    """The rows of a batch, divided into the Spark partitions that Spark's tasks read.

    - `packed`: each row holds many records (`worker.task_rows`).
    - `shuffled`: Spark's partition is the task, or its group. Otherwise, it has whole input partitions.
    """

    rows: DataFrame
    packed: bool
    shuffled: bool


@attrs.frozen(kw_only=True, eq=False)
class InputRows:
    """The rows of a batch, or of a step of one.

    - `batch`: what Spark has read for the batch.
    - `ranges`: the offset ranges, if the rows are all records of these, and no others; else empty.
    - `has_extra`: the rows are not, or not only, the rows of `batch`.
    - `read`: returns the rows, with the columns of `worker.task_input`; always the same DataFrame.
    """

    batch: DataFrame | None
    ranges: OffsetRanges = attrs.field(factory=dict)
    has_extra: bool
    read: Callable[[], DataFrame]


@attrs.frozen(kw_only=True, eq=False)
class TaskRun:
    """How the tasks of a batch, or of a step of one, run.

    - `request`: the request for the tasks.
    - `threads`: the names of their stream threads.
    - `placed`: the locations of the tasks; None = Spark chooses them.
    - `limit`: how many tasks run at once, at most the number of tasks.
    """

    batch: int
    request: BatchRequest
    threads: tuple[str, ...]
    placed: PlacedTasks | None
    limit: int

    @property
    def placed_groups(self) -> Sequence[int] | None:
        """The Spark partition of each task; None = the number of the task, modulo `limit`."""
        if self.placed is None or self.limit == self.request.tasks:
            return None
        return self.placed.groups(self.limit)

    def group_tasks(self, tasks: Iterable[int]) -> list[int]:
        """Return the Spark partition of each of `tasks`, if all rows of a task are in one."""
        groups = self.placed_groups
        return [task % self.limit if groups is None else groups[task] for task in tasks]

    def place(self, *, shuffled: bool) -> Callable[[DataFrame], DataFrame] | None:
        """Return what lets Spark compute results where their tasks are; None = anywhere."""
        placed = self.placed
        return None if placed is None else partial(placed.place, limit=self.limit, shuffled=shuffled)


class RowDistribution:
    """Distributes the rows of one query's batches; only the query's thread calls it."""

    def __init__(self, spec: QuerySpec) -> None:
        self._spec = spec
        self._groups = RowGroups()
        evaluation = None
        if spec.native_program is not None:
            evaluation = Evaluation(ROW_SCHEMA, partial(select_task_rows, spec=spec))
        self._packing = RecordPacking(SCHEMA, evaluation)

    def distribute_rows(
        self, rows: InputRows, run: TaskRun, *, records: int, size: float = 0
    ) -> DistributedRows:
        """Return `rows` in as many Spark partitions as `run` allows, all rows of a task in one of them.

        `records` is about how many rows there are, `size` how many bytes: a small batch is not worth packing.
        """
        limit, tasks = run.limit, run.request.tasks
        shuffled = self._spec.ticks or not self._spec.reads_single_topic or rows.has_extra
        # A shuffle costs less than tasks that move between executors.
        shuffled = shuffled or (limit < tasks and run.placed is not None and run.placed.is_spread)
        chosen = run.group_tasks(run.request.owners)
        packed = None if self._spec.ticks else self._packed_ranges(rows, chosen, run)
        is_large = records >= FEWEST_PACKED or size >= _LARGE_BYTES
        if packed is None and is_large and not self._spec.ticks:
            groups = chosen if shuffled else None
            reads_values = self._spec.reads_values
            packed = self._packing.packed(rows.read(), groups, run.limit, reads_values=reads_values)
        if packed is not None:
            found = packed
        elif shuffled:
            found = self._divide_by_task(rows.read(), run, chosen)
        else:
            found = rows.read()
        if not shuffled and limit < tasks:
            found = found.coalesce(limit)
        return DistributedRows(found, packed=packed is not None, shuffled=shuffled)

    @staticmethod
    def distribute_ticks(spark: SparkSession, tasks: Iterable[int], run: TaskRun) -> DistributedRows:
        """Return a tick for each of `tasks`, where `distribute_rows` has their shuffled rows."""
        of_groups: list[list[int]] = [[] for _ in range(run.limit)]
        found = tuple(tasks)
        for task, group in zip(found, run.group_tasks(found), strict=True):
            of_groups[group].append(task)
        return DistributedRows(task_ticks(spark, of_groups), packed=False, shuffled=True)

    def _packed_ranges(self, rows: InputRows, chosen: Sequence[int], run: TaskRun) -> DataFrame | None:
        """Return the packed records of a step, grouped as `chosen`; None = Spark SQL has to plan the step.

        Also of a small step: a plan takes longer than packing.
        """
        # On a cluster, Spark chooses the executor that reads a partition.
        if rows.batch is None or not rows.ranges or run.placed is not None:
            return None
        reads_values = self._spec.reads_values
        return self._packing.packed_ranges(
            rows.batch, rows.ranges, chosen, run.limit, reads_values=reads_values
        )

    def _divide_by_task(self, rows: DataFrame, run: TaskRun, chosen: Sequence[int]) -> DataFrame:
        """Return the rows with Spark partition = task or its group: grouped as `chosen`, or else shuffled."""
        if not self._spec.ticks:
            grouped = self._groups.grouped(rows, chosen, run.limit)
            if grouped is not None:
                return grouped
        if run.limit < run.request.tasks:
            rows = rows.coalesce(run.limit)  # the reading tasks, too
        return _shuffled_by_task(rows, run.request, run.limit, run.placed_groups, ticks=self._spec.ticks)


def select_task_rows(rows: DataFrame, spec: QuerySpec) -> DataFrame:
    """Return `rows` (columns of `worker.task_input`) as the tasks read them.

    Each field of a row that is not needed would be copied twice in the JVM.
    """
    if spec.native_program is not None:
        rows = evaluate_program(rows, spec.native_program)
    if not spec.reads_values:
        rows = rows.withColumn(_VALUE, sql.when(sql.col(_VALUE).isNotNull(), sql.lit(b"")))
    return rows if spec.row_topic is None else rows.drop(TOPIC)


def _shuffled_by_task(
    rows: DataFrame, request: BatchRequest, limit: int, groups: Sequence[int] | None, *, ticks: bool
) -> DataFrame:
    """Return the rows with Spark partition = task, modulo `limit`; each tick goes to every task.

    `groups` are the Spark partitions of the tasks, if they are chosen otherwise.
    """
    tasks = request.tasks
    if ticks:
        all_tasks = sql.sequence(sql.lit(0), sql.lit(tasks - 1))
        partitions = sql.when(sql.col(TOPIC).isNull(), all_tasks).otherwise(sql.array("partition"))
        rows = rows.withColumn("partition", sql.explode(partitions))
    task = sql.col("partition")
    if request.processors is not None:
        task = sql.element_at(sql.array(*map(sql.lit, request.owners)), task + 1)
    if groups is not None:
        group = sql.element_at(sql.array(*map(sql.lit, groups)), task + 1)
    else:
        group = task if limit == tasks else task % limit
    return rows.repartitionById(limit, group)
