"""Restore the local state of added processors before an expansion's cut, by short Spark jobs (KIP-287).

One Spark task runs at a time, for half a second, on any executor. If the first batch after the cut runs a
task on another machine, the task restores its whole state there, as without a warm-up.
"""

import time
from collections.abc import Callable
from pathlib import Path
from secrets import token_hex
from threading import Event
from typing import Protocol

import attrs
import structlog
from pyspark import InheritableThread
from pyspark.sql import SparkSession

from spark_jobs.runtime.driver.failures import failure_reason
from spark_jobs.runtime.worker.warm_up import WarmUpRequest, WarmUpResult, warm_up

_log = structlog.get_logger(__name__)
_POOL = "headwater-warm-up"
"""A scheduler pool of its own: a job that is short does not wait for all tasks of the batches before it."""
_POLL_SECONDS = 0.1
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

    def advance(self, stopping: Event) -> int:
        """Restore all records that are copied now; return how many were restored."""
        before, left, idle = self.restored, self._request.tasks, 0
        while left and not stopping.is_set() and idle < _MOST_IDLE:
            result = self._jobs.run(attrs.evolve(self._request, tasks=left), stopping)
            for failure in result.failures:
                self._warn(failure)
            left = left[result.done :]
            self.restored += result.restored
            idle = 0 if result.done or result.restored else idle + 1
            self._report()
        if idle:
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

    def run(self, request: WarmUpRequest, stopping: Event) -> WarmUpResult:
        context, group = self._spark.sparkContext, f"{_POOL}-{token_hex(4)}"
        results: list[WarmUpResult] = []
        everything = len(request.tasks)

        def run_job() -> None:
            try:
                context.setJobGroup(group, f"{request.application}: state of added processors")
                context.setLocalProperty("spark.scheduler.pool", _POOL)
                results.extend(context.parallelize([0], 1).map(lambda _: warm_up(request)).collect())
            except Exception as error:  # noqa: BLE001 - of Spark; the expansion continues
                results.append(WarmUpResult(done=everything, failures=(failure_reason(error),)))

        thread = InheritableThread(target=run_job, name=group, daemon=True)
        thread.start()
        deadline = time.monotonic() + _JOB_SECONDS
        while thread.is_alive() and not stopping.is_set() and time.monotonic() < deadline:
            thread.join(_POLL_SECONDS)
        if thread.is_alive():
            context.cancelJobGroup(group)
            thread.join(_CANCEL_SECONDS)
        failure = f"a job of Spark has not ended within {_JOB_SECONDS:g} s"
        return results[0] if results else WarmUpResult(done=everything, failures=(failure,))
