"""One micro-batch through the tasks: a Spark task for each task of the sub-topology."""

from collections.abc import Callable, Iterable
from contextlib import AbstractContextManager

import attrs
from pyspark.sql import DataFrame
from pyspark.sql import functions as sql

from spark_jobs.runtime.driver.exchange import Ranges
from spark_jobs.runtime.driver.native import transformed
from spark_jobs.runtime.driver.task_function import TaskFunction
from spark_jobs.runtime.engine.partitioners.checked import TaskMigrated
from spark_jobs.runtime.engine.program import SubtopologyProgram
from spark_jobs.runtime.engine.task import PoisonRecordError
from spark_jobs.runtime.worker.messages import BatchRequest, BatchResult


@attrs.frozen(kw_only=True)
class Batches:
    """What `foreachBatch` calls. `order` is asked for anew by each batch: partitions may have come.

    `round` is about each batch; `rest` says what goes along (`client.exchange`), `more` reads that.
    `is_single` = all input is of one topic, so Spark's partitions are the tasks' as they come. `report` gets
    the outcomes. `native` is the program that Spark SQL evaluates, if it does. Raises `TaskMigrated` or
    `PoisonRecordError` after every task has done what it could; what others committed is left out when the
    batch is tried again.
    """

    order: Callable[[int], BatchRequest]
    is_single: bool
    report: Callable[[int, list[BatchResult]], None]
    round: Callable[[], AbstractContextManager[None]]
    rest: Callable[[BatchRequest], Ranges]
    more: Callable[[Ranges], DataFrame]
    native: SubtopologyProgram | None = None
    ticks: bool = False
    function: TaskFunction = attrs.field(factory=TaskFunction, init=False)

    def __call__(self, rows: DataFrame, batch: int) -> None:
        with self.round():
            order = self.order(batch)
            rest = self.rest(order)
            if rest:
                rows = rows.unionByName(self.evaluated(self.more(rest)))
                order = attrs.evolve(
                    order, end_offsets={**order.end_offsets, **{place: rest[place][1] for place in rest}}
                )
            self._work(rows, batch, order, is_whole=not rest)

    def evaluated(self, rows: DataFrame) -> DataFrame:
        """Return `rows` as tasks want them; of a stream once, for to analyze it takes as long as a batch."""
        return rows if self.native is None else transformed(rows, self.native)

    def _work(self, rows: DataFrame, batch: int, order: BatchRequest, *, is_whole: bool) -> None:
        context = rows.sparkSession.sparkContext
        context.setJobDescription(f"{order.application}: sub-topology {order.subtopology}, batch {batch}")
        shuffled = self.ticks or not self.is_single or not is_whole
        if shuffled:
            rows = _placed(
                rows, max(order.partition_counts[topic] for topic in order.partition_counts), ticks=self.ticks
            )
        outcomes = self.function.over(rows, batch, order, shuffled=shuffled)
        self.report(batch, outcomes)
        _check(outcomes)


def _placed(rows: DataFrame, tasks: int, *, ticks: bool) -> DataFrame:
    """Return the rows with Spark partition = task; a tick goes to every task."""
    if ticks:
        everywhere = sql.sequence(sql.lit(0), sql.lit(tasks - 1))
        places = sql.when(sql.col("topic").isNull(), everywhere).otherwise(sql.array("partition"))
        rows = rows.withColumn("partition", sql.explode(places))
    return rows.repartitionById(tasks, sql.col("partition"))


def _check(outcomes: Iterable[BatchResult]) -> None:
    for outcome in outcomes:
        if outcome.poison_record is not None:
            raise PoisonRecordError(outcome.poison_record)
    for outcome in outcomes:
        if outcome.missing_partition is not None:
            raise TaskMigrated(*outcome.missing_partition)
