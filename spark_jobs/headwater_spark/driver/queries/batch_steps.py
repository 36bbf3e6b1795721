"""What each batch of a query reads: the rows of Spark's batch at once, or offset ranges in steps.

`input.step_planner` chooses the ranges of a step. A batch is read in steps if its records do not fit into
memory, or if tasks have to process them in the order of time.
"""

import time
from collections.abc import Callable
from functools import cache, partial, reduce
from secrets import token_hex
from threading import Event

import attrs
from pyspark.sql import DataFrame

from headwater_spark.driver.input.expansion import InputExpansion
from headwater_spark.driver.input.step_planner import StepPlanner
from headwater_spark.driver.queries.row_distribution import InputRows, select_task_rows
from headwater_spark.driver.queries.specs import QuerySpec
from headwater_spark.driver.queries.task_runner import BatchStoppedError, TaskRunner
from headwater_spark.engine.records import OffsetRanges, Offsets
from headwater_spark.spark_internals.input_partitions import InputRanges

_TICK_MS = 1000
_POLL_SECONDS, _CHECK_SECONDS = 0.05, 1.0


class BatchSteps:
    """Processes the batches of one query, each at once or in steps; only the query's thread calls it.

    A batch ends between two steps when `stopping` is set, or `may_begin` is not set any more. `on_commit` is
    called after each step that has committed records.
    """

    def __init__(
        self,
        spec: QuerySpec,
        runner: TaskRunner,
        stopping: Event,
        may_begin: Event,
        on_commit: Callable[[], None],
    ) -> None:
        self._spec, self._runner = spec, runner
        self._stopping, self._may_begin = stopping, may_begin
        self._on_commit = on_commit
        self._ranges = InputRanges()
        self._rows: DataFrame | None = None
        """The rows of Spark's batch: steps are read in the same way."""
        self._planner: StepPlanner | None = None
        self._expansion: InputExpansion | None = None
        self._starts: Offsets = {}
        self._consumer_group = ""
        self._ticked_ms = 0
        self._check_requested_at = float("-inf")

    def use_new_consumer_group(self) -> None:
        """Read with another consumer group from now on.

        Spark keeps records that it read ahead, by group and offset: a re-created topic needs a new group.
        """
        self._consumer_group = token_hex(4)

    def begin_at(self, positions: Offsets) -> None:
        """Begin at offsets of the input partitions."""
        self._starts = positions
        self._planner = self._spec.input.create_step_planner() if self._spec.reads_in_steps else None
        self._expansion = self._spec.input.create_expansion()
        if self._planner is not None:
            self._planner.start(positions)

    def process(self, rows: DataFrame, batch: int, *, is_rest: bool) -> bool:
        """Process and commit a batch; return False if a hold was requested before the last step.

        `is_rest`: a hold was requested in an earlier call for this batch. Raises as `TaskRunner.process`.
        """
        self._rows = rows
        self._runner.forget_threads()
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
        return self._runner.records_at_once(ranges) >= sum(end - first for first, end in ranges.values())

    def _process_whole(self, rows: DataFrame, batch: int) -> Offsets:
        """Process the rows of Spark's batch and the rest of their rounds; return the end offsets."""
        with self._spec.batches.run_round():
            ends = self._spec.input.batch_end_offsets(batch)
            if not ends:  # a remote checkpoint does not show them
                ends = {**self._runner.uncommitted.ends, **self._ranges.ends(rows)}
            request = self._spec.batches.create_request(batch, ends)
            extra = self._spec.batches.await_round(request.end_offsets)
            read = InputRows(batch=rows, has_extra=bool(extra), read=lambda: rows)
            if extra:
                read = attrs.evolve(read, read=cache(lambda: rows.unionByName(self._read(extra))))
                extra_ends = {partition: end for partition, (_, end) in extra.items()}
                request = attrs.evolve(request, end_offsets={**request.end_offsets, **extra_ends})
            self._runner.process(read, batch, request)
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
            self._runner.uncommitted.skip_to({each: first[each] for each in ends.keys() & first.keys()})
            ranges = planner.next_ranges(ends, _now_ms())
            if not self._fits_memory(ranges):
                ranges = planner.next_ranges(ends, _now_ms(), self._runner.records_at_once(ranges))
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
        if not has_step and self._runner.uncommitted.pending:
            # Records were deleted, and no step has read any others: tasks commit their end.
            with self._spec.batches.run_round():
                self._runner.process(None, batch, self._spec.batches.create_request(batch))
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
                awaited=planner.find_awaited(ranges, ends),
            )
            read = cache(partial(self._read_step, ranges, tick=tick))
            rows = InputRows(batch=self._rows, ranges={} if tick else ranges, has_extra=True, read=read)
            if tick:
                self._ticked_ms = _now_ms()
            results = self._runner.process(rows, batch, request)
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


def _now_ms() -> int:
    return time.monotonic_ns() // 1_000_000
