"""How the rows of a batch get to the Spark tasks: packed, grouped, shuffled or coalesced."""

from collections.abc import Sequence
from functools import partial

import attrs
from pyspark.sql import DataFrame
from pyspark.sql import functions as sql

from headwater_spark.driver.input.sources import ROW_SCHEMA
from headwater_spark.driver.placement.task_placement import PlacedTasks
from headwater_spark.driver.queries.native import evaluate_program
from headwater_spark.driver.queries.specs import QuerySpec
from headwater_spark.spark_internals.grouping import RowGroups
from headwater_spark.spark_internals.packing import Evaluation, RecordPacking
from headwater_spark.worker.messages import BatchRequest
from headwater_spark.worker.packed_records import SCHEMA
from headwater_spark.worker.task_input import TOPIC

FEWEST_PACKED = 10_000
"""Packing saves about a microsecond per record, and takes some milliseconds per batch."""
_VALUE = "value"


@attrs.frozen(eq=False)
class DistributedRows:
    """The rows of a batch, divided into the Spark partitions that Spark's tasks read.

    - `packed`: each row holds many records (`worker.packed_records`).
    - `shuffled`: Spark's partition is the task, or its group. Otherwise, it has whole input partitions.
    """

    rows: DataFrame
    packed: bool
    shuffled: bool


class RowDistribution:
    """Distributes the rows of one query's batches; only the query's thread calls it."""

    def __init__(self, spec: QuerySpec) -> None:
        self._spec = spec
        self._groups = RowGroups()
        evaluation = None
        if spec.native_program is not None:
            evaluation = Evaluation(ROW_SCHEMA, partial(select_task_rows, spec=spec))
        self._packing = RecordPacking(SCHEMA, evaluation)

    def distribute(
        self,
        rows: DataFrame,
        request: BatchRequest,
        placed: PlacedTasks | None,
        limit: int,
        *,
        records: int,
        has_extra: bool,
    ) -> DistributedRows:
        """Return `rows` in at most `limit` Spark partitions, and with all rows of a task in one of them.

        Args:
            rows: The columns of `worker.task_input`.
            request: The request for the tasks.
            placed: The locations of the tasks; None = Spark chooses them.
            limit: How many tasks run at once, at most the number of tasks.
            records: About how many rows there are: a small batch is not worth packing.
            has_extra: The rows are not, or not only, what Spark has read for the batch.
        """
        tasks = request.tasks
        shuffled = self._spec.ticks or not self._spec.reads_single_topic or has_extra
        # A shuffle costs less than tasks that move between executors.
        shuffled = shuffled or (limit < tasks and placed is not None and placed.is_spread)
        groups = None if placed is None or limit == tasks else placed.groups(limit)
        chosen = [task % limit if groups is None else groups[task] for task in request.owners]
        is_large = records >= FEWEST_PACKED
        packed = self._packed(rows, chosen if shuffled else None, limit) if is_large else None
        if packed is not None:
            rows = packed
        elif shuffled:
            rows = self._divide_by_task(rows, request, chosen, limit, groups)
        if not shuffled and limit < tasks:
            rows = rows.coalesce(limit)
        return DistributedRows(rows, packed=packed is not None, shuffled=shuffled)

    def _packed(self, rows: DataFrame, chosen: Sequence[int] | None, limit: int) -> DataFrame | None:
        """Return the packed records, grouped as `chosen`; None = Spark has to read row by row."""
        if self._spec.ticks:
            return None
        return self._packing.packed(rows, chosen, limit, reads_values=self._spec.reads_values)

    def _divide_by_task(
        self,
        rows: DataFrame,
        request: BatchRequest,
        chosen: Sequence[int],
        limit: int,
        groups: Sequence[int] | None,
    ) -> DataFrame:
        """Return the rows with Spark partition = task or its group: grouped as `chosen`, or else shuffled."""
        if not self._spec.ticks:
            grouped = self._groups.grouped(rows, chosen, limit)
            if grouped is not None:
                return grouped
        if limit < request.tasks:
            rows = rows.coalesce(limit)  # the reading tasks, too
        return _shuffled_by_task(rows, request, limit, groups, ticks=self._spec.ticks)


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
