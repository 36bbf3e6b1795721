"""Prepare an expansion's cut by short Spark jobs (KIP-287): start workers, restore state of added processors.

After the cut more tasks run at the same time. New Python workers import, for two seconds on an executor: they
are started before. Then one Spark task at a time restores local state, for half a second, on any executor. If
the first batch after the cut runs a task on another machine, the task restores its whole state there, as
without a warm-up.
"""

import json
import time
from collections.abc import Callable, Iterable, Iterator
from pathlib import Path
from secrets import token_hex
from threading import Event
from typing import Protocol

import attrs
import pyarrow as pa  # type: ignore[import-untyped]
import structlog
from pyspark import InheritableThread
from pyspark.sql import SparkSession

from headwater_spark.driver.captured_failures import failure_reason
from headwater_spark.driver.queries import task_function
from headwater_spark.driver.queries.task_function import RESULT_SCHEMA, result_rows
from headwater_spark.worker.interpreter import paused_gc
from headwater_spark.worker.warm_up import WarmUpRequest, WarmUpResult, warm_up

_log = structlog.get_logger(__name__)
_POOL = "headwater-warm-up"
"""A scheduler pool of its own: a job that is short does not wait for all tasks of the batches before it."""
_POLL_SECONDS = 0.1
_WORKER_SECONDS = 0.3
"""How long a worker is kept busy, so that Spark starts another one for the next task."""
_JOB_SECONDS = 60.0
_CANCEL_SECONDS = 5.0
_MOST_IDLE = 3
"""So many jobs in a row may restore nothing, until the warm-up is given up."""


class WarmUpJobs(Protocol):
    """Runs parts of a warm-up where the tasks of the application run."""

    @property
    def state_folder(self) -> Path:
        """The folder of the application's local states."""
        ...

    def start_workers(self, tasks: int, stopping: Event) -> str | None:
        """Start Python workers for `tasks` tasks, at most one for each slot; return why that failed."""
        ...

    def run(self, request: WarmUpRequest, stopping: Event) -> WarmUpResult:
        """Restore for a short time; the failure of the job is a result."""
        ...


@attrs.define(eq=False)
class WarmUp:
    """The warm-up of one expansion. If it fails, it logs a warning: the processors restore their state later.

    `report` is called after each job.
    """

    _request: WarmUpRequest
    _jobs: WarmUpJobs
    _report: Callable[[], None]
    restored: int = attrs.field(default=0, init=False)
    """How many records were restored."""
    _warned: set[str] = attrs.field(factory=set, init=False)

    def start_workers(self, tasks: int, stopping: Event) -> None:
        """Let Spark start the Python workers for this number of tasks."""
        failure = self._jobs.start_workers(tasks, stopping)
        if failure is not None and not stopping.is_set():
            _log.warning("workers were not started before processors are added", reason=failure)

    def advance(self, stopping: Event) -> int:
        """Restore all records that are copied now; return how many were restored."""
        before, left, idle = self.restored, self._request.tasks, 0
        while left and not stopping.is_set() and idle < _MOST_IDLE:
            result = self._jobs.run(attrs.evolve(self._request, tasks=left), stopping)
            for failure in () if stopping.is_set() else result.failures:  # a stop ends the job
                self._warn(failure)
            left = left[result.done :]
            self.restored += result.restored
            idle = 0 if result.done or result.restored else idle + 1
            self._report()
        if idle and not stopping.is_set():
            self._warn("no records were read")
        return self.restored - before

    def _warn(self, reason: str) -> None:
        """Log a failure once: while the cut has to wait, the warm-up is tried again every few seconds."""
        if reason not in self._warned:
            self._warned.add(reason)
            _log.warning("local state of added processors was not restored", reason=reason)


def is_behind(restored: int, before: int | None, limit: int) -> bool:
    """Return whether entries have to be copied and restored again before the cut.

    `restored` records were restored, `before` in the round before. The application has written meanwhile: at
    most `limit` is little. If it is not less than before, another round would not make it less.
    """
    return restored > limit and (before is None or restored < before)


@attrs.frozen(eq=False)
class SparkWarmUpJobs:
    """`WarmUpJobs` on Spark's executors; `state_folder` is on the disk of each of them."""

    _spark: SparkSession
    state_folder: Path

    def start_workers(self, tasks: int, stopping: Event) -> str | None:
        slots = self._spark.sparkContext.defaultParallelism
        _, failure = self._results(
            _begin_worker, min(tasks, slots), "Python workers of added processors", stopping
        )
        return failure

    def run(self, request: WarmUpRequest, stopping: Event) -> WarmUpResult:
        description = f"{request.application}: state of added processors"
        results, failure = self._results(lambda: _restore_state(request), 1, description, stopping)
        if failure is not None:
            return WarmUpResult(done=len(request.tasks), failures=(failure,))
        fields = json.loads(results[0])
        return WarmUpResult(**{**fields, "failures": tuple(fields["failures"])})

    def _results(
        self, function: Callable[[], str], tasks: int, description: str, stopping: Event
    ) -> tuple[list[str], str | None]:
        """Return the results of a job that calls `function` in each of its `tasks`, or why it failed.

        It is the same kind of job as a batch: Spark has other Python workers for other kinds of jobs.
        """
        context, group = self._spark.sparkContext, f"{_POOL}-{token_hex(4)}"
        results: list[str] = []
        failures: list[str] = []

        def call(batches: Iterable[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
            for _ in batches:
                yield result_rows([function()])

        def run_job() -> None:
            try:
                context.setJobGroup(group, description)
                context.setLocalProperty("spark.scheduler.pool", _POOL)
                rows = self._spark.range(0, tasks, 1, tasks).mapInArrow(call, RESULT_SCHEMA).collect()
                results.extend(row.result for row in rows)
            except Exception as error:  # noqa: BLE001 - of Spark; the expansion continues
                failures.append(failure_reason(error))

        thread = InheritableThread(target=run_job, name=group, daemon=True)
        thread.start()
        deadline = time.monotonic() + _JOB_SECONDS
        while thread.is_alive() and not stopping.is_set() and time.monotonic() < deadline:
            thread.join(_POLL_SECONDS)
        if thread.is_alive():
            context.cancelJobGroup(group)
            thread.join(_CANCEL_SECONDS)
        if results:
            return results, None
        return [], next(iter(failures), f"a job of Spark has not ended within {_JOB_SECONDS:g} s")


def _begin_worker() -> str:
    """Import what tasks import, and keep the worker busy for a moment."""
    with paused_gc():
        time.sleep(_WORKER_SECONDS)
    return task_function.__name__


def _restore_state(request: WarmUpRequest) -> str:
    return json.dumps(attrs.asdict(warm_up(request)))
