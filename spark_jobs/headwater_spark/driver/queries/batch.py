"""One batch of a query: its rows go to the workers, one Spark task for each task of the sub-topology."""

import threading
import time
from collections.abc import Callable
from contextlib import suppress
from functools import cache, partial, reduce
from secrets import token_hex
from types import MappingProxyType

import attrs
from confluent_kafka import KafkaException
from pyspark.sql import DataFrame, SparkSession

from headwater_spark.driver.input.expansion import InputExpansion
from headwater_spark.driver.input.record_sizes import BYTES_AT_ONCE, RecordSizes, no_sample
from headwater_spark.driver.input.step_planner import OffsetRanges, Offsets, StepPlanner
from headwater_spark.driver.offsets import GroupOffsets
from headwater_spark.driver.queries.known_commits import Commits, KnownCommits, UncommittedInput
from headwater_spark.driver.queries.row_distribution import (
    DistributedRows,
    InputRows,
    RowDistribution,
    TaskRun,
    select_task_rows,
)
from headwater_spark.driver.queries.specs import QuerySpec
from headwater_spark.driver.queries.task_function import TaskFunction, raise_failures
from headwater_spark.driver.threads.stream_threads import TakenThreads
from headwater_spark.engine.records import TopicPartition
from headwater_spark.spark_internals.input_partitions import InputRanges
from headwater_spark.spark_internals.python_tasks import BATCH_PROPERTY
from headwater_spark.worker.messages import BatchRequest, BatchResult

_TICK_MS = 1000
_POLL_SECONDS, _CHECK_SECONDS = 0.05, 1.0
_REPAIR_SECONDS = 5.0
"""How long a repair of commits, or a renewal of offsets, waits for the end of a batch or step."""


class BatchStoppedError(Exception):
    """The query was stopped between two steps of a batch; its next start processes the rest."""


class BatchProcessor:
    """Processes the batches of one query; Spark's `foreachBatch` calls it in the query's thread.

    `start` it whenever the query starts. `stop` may be called from any thread. `on_commit` is called in the
    query's thread after each step of a batch that has committed records.
    """

    def __init__(self, spec: QuerySpec, on_commit: Callable[[], None] = lambda: None) -> None:
        self._spec = spec
        self._on_commit = on_commit
        self._tasks = TaskFunction()
        self._distribution = RowDistribution(spec)
        self._ranges = InputRanges()
        self._rows: DataFrame | None = None
        """The rows of Spark's batch: steps are read in the same way."""
        self._planner: StepPlanner | None = None
        self._expansion: InputExpansion | None = None
        self._starts: Offsets = {}
        self._uncommitted = UncommittedInput({})
        self._sizes = RecordSizes(BYTES_AT_ONCE, no_sample)
        self._stopping = threading.Event()
        self._may_begin = threading.Event()
        self._may_begin.set()
        self._running = threading.Lock()
        """Held while a batch is processed."""
        self._processing = threading.Lock()
        """Held while tasks process records: in a batch of several steps, not between them."""
        self._batch = 0
        """The number of the last batch."""
        self._consumer_group = ""
        self._ticked_ms = 0
        self._check_requested_at = float("-inf")
        self.thread_names: tuple[str, ...] = ()
        """The stream threads of the last tasks: Spark's task i ran on thread i, modulo their number."""
        self.failed_thread = ""
        """The stream thread of the task whose result is a failure."""

    @property
    def known_commits(self) -> KnownCommits:
        """What the tasks have committed since the last start."""
        return self._tasks.commits

    def start(
        self,
        positions: Offsets,
        committed: Commits = MappingProxyType({}),
        overtaken: Offsets = MappingProxyType({}),
    ) -> None:
        """Begin at offsets of the input partitions.

        `committed` are the commits of the tasks that are compared later (`repair_commits`). `overtaken` are
        the committed offsets before `positions`: the records in between were deleted.
        """
        self._stopping.clear()
        self.thread_names, self.failed_thread = (), ""
        # Spark keeps records that it read ahead, by group and offset: a re-created topic needs a new group.
        self._consumer_group = token_hex(4)
        self._begin_at(positions, overtaken)
        self._tasks.commits.learn(committed)

    def stop(self) -> None:
        """End the running batch before its next step; process no other one."""
        self._stopping.set()

    def request_hold(self) -> None:
        """Begin no batch and no step until `cancel_hold` or `release`; one that has begun continues."""
        self._may_begin.clear()

    def cancel_hold(self) -> None:
        self._may_begin.set()

    def hold(self, seconds: float) -> bool:
        """Process nothing until `release`; return False, and hold nothing, if that takes longer.

        A batch or step, and a repair of commits, have to end in `seconds`; without `request_hold`, all steps.
        """
        deadline = time.monotonic() + seconds
        if not self._running.acquire(timeout=seconds):
            return False
        if not self._processing.acquire(timeout=max(0.0, deadline - time.monotonic())):  # a repair
            self._running.release()
            return False
        return True

    def release(self, committed: Commits | None = None) -> None:
        """Process batches again; from what is `committed` now if processors were added.

        Otherwise nothing was committed, and the known commits stay known.
        """
        self._tasks.versions.forget()
        if committed is not None:
            self._begin_at({partition: offset for partition, (offset, _) in committed.items()})
            if not self._spec.input.services.exactly_once:
                self._tasks.commits.learn(committed)
        self._processing.release()
        self._running.release()
        self._may_begin.set()

    def forget_commits(self) -> None:
        """Repair no commit until tasks have committed again: a move that failed may have committed."""
        self._tasks.forget()

    def repair_commits(self, offsets: GroupOffsets) -> tuple[TopicPartition, ...]:
        """Commit again what earlier commits of the tasks have replaced, while no task processes records.

        Return where; nothing happens if a batch or step takes too long. Raises `KafkaException`.
        """
        if not self._processing.acquire(timeout=_REPAIR_SECONDS):
            return ()
        try:
            return self._tasks.commits.repair(offsets)
        finally:
            self._processing.release()

    def renew_offsets(self) -> bool:
        """Let tasks commit the offsets of partitions that have not advanced since the last call.

        Brokers would forget them (`headwater_spark.driver.queries.offset_renewal`). Any thread may call it.
        Return False if a batch takes too long, or if none may begin.

        Raises:
            Exception: A task, Spark or Kafka failed.
        """
        if not self._running.acquire(timeout=_REPAIR_SECONDS):
            return False
        try:
            has_threads = self._spec.input.services.threads.alive > 0  # to wait for one would prevent a hold
            if self._stopping.is_set() or not self._may_begin.is_set() or not has_threads:
                return False
            idle = self._spec.input.select_renewable(self._uncommitted.take_idle())
            if idle:
                ends = {each: end for each, end in self._uncommitted.ends.items() if each in idle}
                with self._spec.batches.run_round():
                    request = self._spec.batches.create_request(self._batch)
                    self._renew(attrs.evolve(request, end_offsets=ends, renews_offsets=True), idle)
            return True
        finally:
            self._running.release()

    def await_renewal(self) -> None:
        """Wait for the end of a renewal of offsets; after `stop`, its tasks commit nothing later."""
        with self._running:
            pass

    def _renew(self, request: BatchRequest, idle: frozenset[TopicPartition]) -> None:
        tasks = [each for each in range(request.tasks) if not idle.isdisjoint(request.input_partitions(each))]
        with self._spec.batches.take_threads(request.tasks, self._stopping) as threads:
            if threads is not None:
                run = self._create_run(self._batch, request, threads)
                spark = self._spec.input.services.spark
                # Spark sets it in the query's thread: tasks check to which batch their properties belong.
                spark.sparkContext.setLocalProperty(BATCH_PROPERTY, str(self._batch))
                self._run(run, self._distribution.distribute_ticks(spark, tasks, run))

    def _begin_at(self, positions: Offsets, overtaken: Offsets = MappingProxyType({})) -> None:
        self._starts = positions
        self._uncommitted = UncommittedInput(positions, overtaken)
        self._sizes = self._spec.input.create_record_sizes()
        self._tasks.forget()
        self._planner = self._spec.input.create_step_planner() if self._spec.reads_in_steps else None
        self._expansion = self._spec.input.create_expansion()
        if self._planner is not None:
            self._planner.start(positions)

    def __call__(self, rows: DataFrame, batch: int) -> None:
        """Process and commit a batch.

        Every task processes its part, then the first failure is raised. When the batch is repeated, tasks
        skip the records that they have committed.

        Raises:
            TaskMigrated: A record's partition does not exist yet.
            PoisonRecordError: A record cannot be processed, and the exception handlers fail.
            BatchStoppedError: The query is being stopped.
        """
        self._rows, self._batch = rows, batch
        is_complete = is_rest = False
        while not is_complete:
            while not self._may_begin.wait(_POLL_SECONDS) and not self._stopping.is_set():
                pass
            with self._running:
                if self._stopping.is_set():
                    raise BatchStoppedError
                is_complete = self._process_batch(rows, batch, is_rest=is_rest)
            is_rest = True

    def _process_batch(self, rows: DataFrame, batch: int, *, is_rest: bool) -> bool:
        """Return False if a hold was requested before the last step. `is_rest`: so it was before."""
        self.thread_names, self.failed_thread = (), ""
        if self._expansion is not None:
            is_complete = self._process_expanded(self._expansion, batch)
            if is_complete is not None:
                return is_complete
        planner = self._planner
        if planner is None and is_rest:
            # Not Spark's rows: what is processed may have been purged from the repartition topics.
            planner = self._spec.input.create_step_planner()
            planner.start(self._starts)
        if planner is None:
            self._process_whole(rows, batch)
            return True
        offsets = self._spec.input.batch_offsets(batch)
        if offsets is None:
            return self._process_in_steps(
                planner, batch, self._spec.input.end_offsets(), self._spec.input.end_offsets
            )
        starts, ends = offsets
        if batch == 0:  # each start of the query has a new checkpoint
            starts = planner.positions
        ranges = {each: (starts.get(each, 0), end) for each, end in ends.items()}
        if is_rest or not (planner.fits_one_batch(starts, ends) and self._fits_memory(ranges)):
            return self._process_in_steps(planner, batch, ends, partial(self._readable_ends, ends))
        read = self._process_whole(rows, batch)
        ranges = {each: (planner.position(each), end) for each, end in read.items()}
        planner.advance(ranges, {}, ends, _now_ms())
        return True

    def _fits_memory(self, ranges: OffsetRanges) -> bool:
        return self._sizes.records_at_once(ranges) >= sum(end - first for first, end in ranges.values())

    def _process_whole(self, rows: DataFrame, batch: int) -> Offsets:
        """Process the rows of Spark's batch and the rest of their rounds; return the end offsets."""
        with self._spec.batches.run_round():
            ends = self._spec.input.batch_end_offsets(batch)
            if not ends:  # a remote checkpoint does not show them
                ends = {**self._uncommitted.ends, **self._ranges.ends(rows)}
            request = self._spec.batches.create_request(batch, ends)
            extra = self._spec.batches.await_round(request.end_offsets)
            read = InputRows(batch=rows, has_extra=bool(extra), read=lambda: rows)
            if extra:
                read = attrs.evolve(read, read=cache(lambda: rows.unionByName(self._read(extra))))
                extra_ends = {partition: end for partition, (_, end) in extra.items()}
                request = attrs.evolve(request, end_offsets={**request.end_offsets, **extra_ends})
            self._process(read, batch, request)
        return request.end_offsets

    def _process_expanded(self, expansion: InputExpansion, batch: int) -> bool | None:
        """Process a batch in steps if tasks have several partitions of a topic; return None if they have not.

        Return False if a hold was requested before the last step.
        """
        offsets = self._spec.input.batch_offsets(batch)
        if not expansion.applies_to(offsets and offsets[1]):
            return None
        planner = self._planner
        if planner is None:
            planner = self._planner = self._spec.input.create_step_planner()
            planner.start({**self._starts, **expansion.positions()})
        until = offsets[1] if offsets else self._spec.input.end_offsets()
        return self._process_in_steps(
            planner, batch, until, lambda: expansion.readable_ends(until, planner.positions)
        )

    def _process_in_steps(
        self, planner: StepPlanner, batch: int, until: Offsets, end_offsets: Callable[[], Offsets]
    ) -> bool:
        """Process steps until all records before `until` are processed; return False if a hold is requested.

        `end_offsets` returns the present ends of the partitions that may be read.
        """
        tick = self._is_tick_due()
        has_step = False
        while tick or planner.is_behind(until):
            if self._stopping.is_set():
                raise BatchStoppedError
            if not self._may_begin.is_set():
                return False
            first = self._spec.input.first_offsets()
            planner.skip_to(first)
            ends = end_offsets()
            self._uncommitted.skip_to({each: first[each] for each in ends.keys() & first.keys()})
            ranges = planner.next_ranges(ends, _now_ms())
            if not self._fits_memory(ranges):
                ranges = planner.next_ranges(ends, _now_ms(), self._sizes.records_at_once(ranges))
            if ranges or tick:
                has_step = True
                if self._process_step(planner, batch, ranges, ends, tick=tick):
                    self._on_commit()
                # Not beyond `until`: Spark's next batch begins there, and may read what was processed.
                positions = planner.positions
                self._spec.batches.record_positions(
                    {each: min(at, until.get(each, at)) for each, at in positions.items()}
                )
            else:
                self._spec.batches.record_wait(
                    batch, for_partitions=not self._spec.input.has_partitions(until)
                )
                self._stopping.wait(_POLL_SECONDS)
            tick = planner.is_behind(until) and self._is_tick_due()
        if not has_step and self._uncommitted.pending:
            # Records were deleted, and no step has read any others: tasks commit their end.
            with self._spec.batches.run_round():
                self._process(None, batch, self._spec.batches.create_request(batch))
        return True

    def _readable_ends(self, until: Offsets) -> Offsets:
        """Return the end offsets of the partitions that the layout has; request a topic check for others.

        `until` are the end offsets of Spark's batch. Of one topic, they are the result: the next batch would
        read again what is beyond. The records beyond do not wait for the check.
        """
        are_known = self._spec.input.has_partitions(until)
        if are_known and self._spec.reads_single_topic:
            return until
        now = time.monotonic()
        if not are_known and now - self._check_requested_at >= _CHECK_SECONDS:
            self._check_requested_at = now
            self._spec.input.request_check()
        return self._spec.input.end_offsets()

    def _is_tick_due(self) -> bool:
        return self._spec.ticks and _now_ms() - self._ticked_ms >= _TICK_MS

    def _process_step(
        self, planner: StepPlanner, batch: int, ranges: OffsetRanges, ends: Offsets, *, tick: bool
    ) -> bool:
        """Return whether the step has committed records."""
        with self._spec.batches.run_round():
            request = self._spec.batches.create_request(batch)
            extra = self._spec.batches.await_round({each: end for each, (_, end) in ranges.items()})
            ranges = {
                each: (first, extra[each][1] if each in extra else end)
                for each, (first, end) in ranges.items()
            }
            request = attrs.evolve(
                request,
                end_offsets={each: end for each, (_, end) in ranges.items()},
                awaited=planner.awaited(ranges, ends),
            )
            read = cache(partial(self._read_step, ranges, tick=tick))
            rows = InputRows(batch=self._rows, ranges={} if tick else ranges, has_extra=True, read=read)
            if tick:
                self._ticked_ms = _now_ms()
            results = self._process(rows, batch, request)
        held_back = {each: at for result in results for each, at in result.first_held_back.items()}
        planner.advance(ranges, held_back, ends, _now_ms())
        return any(result.read for result in results)

    def _read(self, ranges: OffsetRanges) -> DataFrame:
        return select_task_rows(self._spec.input.read_ranges(ranges, self._consumer_group), self._spec)

    def _read_step(self, ranges: OffsetRanges, *, tick: bool) -> DataFrame:
        parts = [self._read(ranges)] if ranges else []
        if tick:
            parts.append(self._spec.input.read_tick())
        return reduce(DataFrame.unionByName, parts)

    def _process(self, rows: InputRows | None, batch: int, request: BatchRequest) -> list[BatchResult]:
        """Process and commit rows; None = there are none, only offsets are committed."""
        spark = self._spec.input.services.spark
        spark.sparkContext.setJobDescription(
            f"{request.application}: sub-topology {request.subtopology}, batch {batch}"
        )
        with self._spec.batches.take_threads(request.tasks, self._stopping) as threads:
            if threads is None:
                raise BatchStoppedError
            self.thread_names = threads.names
            ends = {**self._uncommitted.pending, **request.end_offsets}
            run = self._create_run(batch, attrs.evolve(request, end_offsets=ends), threads)
            results: list[BatchResult] = []
            if rows is not None:
                records = self._uncommitted.count_new(ends)
                size = self._sizes.known_size(self._uncommitted.new_ranges(ends))
                results = self._run(run, self._distribution.distribute(rows, run, records=records, size=size))
            if not self._spec.ticks:  # with ticks, each task commits once per second
                self._commit_without_records(run, spark)
        return results

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
        tasks = self._uncommitted.tasks(run.request)
        ends: Offsets = {}
        with suppress(KafkaException):  # no broker answers
            ends = self._spec.input.end_offsets() if tasks else {}
        if not tasks or not self._uncommitted.is_due(ends, time.monotonic()):
            return
        request = attrs.evolve(run.request, end_offsets=self._uncommitted.pending, awaited=frozenset())
        run = attrs.evolve(run, request=request)
        self._run(run, self._distribution.distribute_ticks(spark, tasks, run))

    def _run(self, run: TaskRun, distributed: DistributedRows) -> list[BatchResult]:
        """Run the tasks; raise the first failure."""
        uncommitted = self._uncommitted  # if the query is restarted during a renewal, it gets another one
        place = run.place(shuffled=distributed.shuffled)
        with self._processing:
            results = self._tasks.run(
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


def _now_ms() -> int:
    return time.monotonic_ns() // 1_000_000
