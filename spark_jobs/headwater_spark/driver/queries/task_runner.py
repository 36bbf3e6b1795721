"""Runs the tasks of a query: a Spark job over the rows of a batch or step, and what its results change.

Tasks without records commit, too: the end of what was read for them in a second job (`UncommittedInput`), and
the offsets of idle partitions when these are renewed (`queries.offset_renewal`).
"""

import time
from contextlib import suppress
from threading import Event, Lock
from types import MappingProxyType

import attrs
from confluent_kafka import KafkaException
from pyspark.sql import SparkSession

from headwater_spark.driver.input.record_sizes import BYTES_AT_ONCE, RecordSizes, no_sample
from headwater_spark.driver.queries.row_distribution import (
    DistributedRows,
    InputRows,
    RowDistribution,
    TaskRun,
)
from headwater_spark.driver.queries.specs import QuerySpec
from headwater_spark.driver.queries.task_function import TaskFunction, raise_failures
from headwater_spark.driver.queries.uncommitted_input import UncommittedInput
from headwater_spark.driver.threads.stream_threads import TakenThreads
from headwater_spark.engine.records import OffsetRanges, Offsets, TopicPartition
from headwater_spark.spark_internals.python_tasks import BATCH_PROPERTY
from headwater_spark.worker.messages import BatchRequest, BatchResult


class BatchStoppedError(Exception):
    """The query was stopped between two steps of a batch; its next start processes the rest."""


class TaskRunner:
    """Runs the tasks of one query, in the query's thread; `renew_offsets` may run in another one.

    `stopping` is set when the query is stopped: tasks do not wait for a stream thread then. `processing` is
    held while tasks run.
    """

    def __init__(self, spec: QuerySpec, stopping: Event, processing: Lock) -> None:
        self.function = TaskFunction()
        """What the tasks run; it knows what they have committed."""
        self.uncommitted = UncommittedInput({})
        self.thread_names: tuple[str, ...] = ()
        """The stream threads of the last tasks: Spark's task i ran on thread i, modulo their number."""
        self.failed_thread = ""
        """The stream thread of the task whose result is a failure."""
        self._spec, self._stopping, self._processing = spec, stopping, processing
        self._distribution = RowDistribution(spec)
        self._sizes = RecordSizes(BYTES_AT_ONCE, no_sample)

    def begin_at(self, positions: Offsets, overtaken: Offsets = MappingProxyType({})) -> None:
        """Know nothing but the start offsets; `overtaken` are the committed offsets before them."""
        self.uncommitted = UncommittedInput(positions, overtaken)
        self._sizes = self._spec.input.create_record_sizes()
        self.function.forget()

    def forget_threads(self) -> None:
        """Know no stream thread of earlier tasks any more."""
        self.thread_names, self.failed_thread = (), ""

    def records_at_once(self, ranges: OffsetRanges) -> int:
        """Return how many records of `ranges` fit into memory, by the sizes of earlier ones."""
        return self._sizes.records_at_once(ranges)

    def process(self, rows: InputRows | None, batch: int, request: BatchRequest) -> list[BatchResult]:
        """Process and commit rows; None = there are none, only offsets are committed.

        Raises:
            TaskMigrated: A record's partition does not exist yet.
            PoisonRecordError: A record cannot be processed, and the exception handlers fail.
            BatchStoppedError: The query is being stopped.
        """
        spark = self._spec.input.services.spark
        spark.sparkContext.setJobDescription(
            f"{request.application}: sub-topology {request.subtopology}, batch {batch}"
        )
        with self._spec.batches.take_threads(request.tasks, self._stopping) as threads:
            if threads is None:
                raise BatchStoppedError
            self.thread_names = threads.names
            ends = {**self.uncommitted.pending, **request.end_offsets}
            run = self._create_run(batch, attrs.evolve(request, end_offsets=ends), threads)
            results: list[BatchResult] = []
            if rows is not None:
                records = self.uncommitted.count_new(ends)
                size = self._sizes.known_size(self.uncommitted.new_ranges(ends))
                results = self._run(
                    run, self._distribution.distribute_rows(rows, run, records=records, size=size)
                )
            if not self._spec.ticks:  # with ticks, each task commits once per second
                self._commit_without_records(run, spark)
        return results

    def renew_offsets(self, batch: int, idle: frozenset[TopicPartition]) -> None:
        """Let the tasks of `idle` partitions commit their offsets again; `batch` is the last one."""
        ends = {each: end for each, end in self.uncommitted.ends.items() if each in idle}
        with self._spec.batches.run_round():
            request = self._spec.batches.create_request(batch)
            request = attrs.evolve(request, end_offsets=ends, renews_offsets=True)
            tasks = [
                each for each in range(request.tasks) if not idle.isdisjoint(request.input_partitions(each))
            ]
            with self._spec.batches.take_threads(request.tasks, self._stopping) as threads:
                if threads is not None:
                    run = self._create_run(batch, request, threads)
                    spark = self._spec.input.services.spark
                    # Spark sets it in the query's thread: tasks check to which batch their properties belong.
                    spark.sparkContext.setLocalProperty(BATCH_PROPERTY, str(batch))
                    self._run(run, self._distribution.distribute_ticks(spark, tasks, run))

    def _create_run(self, batch: int, request: BatchRequest, threads: TakenThreads) -> TaskRun:
        tasks = request.tasks
        return TaskRun(
            batch=batch,
            request=attrs.evolve(request, stream_threads=threads.alive),
            threads=threads.names,
            placed=self._spec.batches.place_tasks(tasks),
            limit=min(threads.limit or tasks, tasks),
        )

    def _commit_without_records(self, run: TaskRun, spark: SparkSession) -> None:
        """Let tasks that no record has reached commit the end of what was read for them."""
        tasks = self.uncommitted.tasks(run.request)
        ends: Offsets = {}
        with suppress(KafkaException):  # no broker answers
            ends = self._spec.input.end_offsets() if tasks else {}
        if not tasks or not self.uncommitted.is_due(ends, time.monotonic()):
            return
        request = attrs.evolve(run.request, end_offsets=self.uncommitted.pending, awaited=frozenset())
        run = attrs.evolve(run, request=request)
        self._run(run, self._distribution.distribute_ticks(spark, tasks, run))

    def _run(self, run: TaskRun, distributed: DistributedRows) -> list[BatchResult]:
        """Run the tasks; raise the first failure."""
        uncommitted = self.uncommitted  # if the query is restarted during a renewal, it gets another one
        place = run.place(shuffled=distributed.shuffled)
        with self._processing:
            results = self.function.run(
                distributed.rows,
                run.batch,
                run.request,
                run.threads,
                shuffled=distributed.shuffled,
                packed=distributed.packed,
                place=place,
            )
        self._spec.batches.record_results(run.batch, results)
        self._sizes.learn(each for result in results for each in result.read_bytes)
        self.failed_thread = next((result.thread for result in results if result.has_failed), "")
        raise_failures(results)
        uncommitted.add(run.request, results)
        return results
