"""Watch whether the queries make progress, for health, status and metrics; any thread may ask."""

import time
from collections.abc import Callable, Mapping
from typing import Any

import attrs
import structlog

from headwater_spark.driver.offsets import Backlog
from headwater_spark.driver.queries.progress import Progress
from headwater_spark.driver.queries.query import SubtopologyQuery
from headwater_spark.driver.queries.stall import (
    Observation,
    ProgressClock,
    stall_reason,
    waits_for,
    waits_for_jvm,
)

_log = structlog.get_logger(__name__)
_UNKNOWN = Backlog(lag=None, committed=0)
_LONG_BATCHES_PER_LIMIT = 5
"""A batch is reported in the log when it takes this part of the time after which its query is stalled."""


@attrs.define(kw_only=True, eq=False)
class ProgressWatch:
    """One thread calls `observe` about once per second. `queries` is name → query, of those that run."""

    queries: Mapping[str, SubtopologyQuery]
    limit_seconds: float
    """`max.poll.interval.ms` of the application."""
    has_executors: Callable[[], bool] = lambda: True
    """Returns whether Spark has executors for the tasks of a batch."""
    jvm_silence: Callable[[], float] = lambda: 0.0
    """Returns for how many seconds Spark's JVM has not answered."""
    _reported: dict[str, float] = attrs.field(factory=dict, init=False)
    """Query → the begin of the batch that was reported last, because it takes long."""
    _clocks: dict[str, ProgressClock] = attrs.field(factory=dict, init=False)

    def observe(
        self, name: str, backlog: Backlog | None, progress: Progress, *, has_threads: bool = True
    ) -> None:
        """Observe a query; `backlog` is None if no broker answers."""
        query, known = self.queries[name], backlog or _UNKNOWN
        observation = Observation(
            state=query.state,
            lag=known.lag,
            committed=known.committed,
            batches=progress.batches(name),
            restarts=query.restarts,
            has_threads=has_threads,
        )
        now = time.monotonic()
        clock = self._clocks.get(name) or ProgressClock(observed_at=now)
        self._clocks[name] = clock.observed(observation, now)
        self._report_long_batch(name, progress, now)

    def status(self, name: str, progress: Progress) -> Mapping[str, Any]:
        """Return the status of a query, as in the JSON of `/status`."""
        now = time.monotonic()
        clock = self._clocks.get(name)
        return {
            "lag": clock.last.lag if clock is not None and clock.last is not None else None,
            "waitsFor": self._waits_for(name, progress, now),
            "secondsWithoutProgress": round(clock.seconds, 1) if clock is not None else 0.0,
            "stalled": bool(self._reason(name, progress, now)),
            "batchSeconds": round(now - batch.since, 1) if (batch := progress.running(name)) else 0.0,
        }

    def reason(self, progress: Progress) -> str:
        """Return one sentence for each query that is stalled; empty if none is."""
        now = time.monotonic()
        found = ((name, self._reason(name, progress, now)) for name in self.queries)
        return " ".join(f"Sub-topology {name} {reason}." for name, reason in found if reason)

    def _report_long_batch(self, name: str, progress: Progress, now: float) -> None:
        """Log once that a batch takes long: the host of a task may hang until Spark notices it."""
        batch = progress.running(name)
        if batch is None or not batch.is_long(self.limit_seconds / _LONG_BATCHES_PER_LIMIT, now):
            return
        if self._reported.get(name) != batch.since:
            self._reported[name] = batch.since
            waiting = self._waits_for(name, progress, now)
            _log.warning("batch takes long", subtopology=name, batch=batch.number, waits_for=waiting)

    def _reason(self, name: str, progress: Progress, now: float) -> str:
        silence = self.jvm_silence()
        if waits_for_jvm(self.queries[name].state, silence, self.limit_seconds):
            return f"waits for Spark's JVM, which has not answered for {silence:.0f} s"
        clock = self._clocks.get(name)
        if clock is None:
            return ""
        return stall_reason(clock, self.limit_seconds, self._waits_for(name, progress, now), now)

    def _waits_for(self, name: str, progress: Progress, now: float) -> str:
        query, clock = self.queries[name], self._clocks.get(name)
        lag = clock.last.lag if clock is not None and clock.last is not None else None
        observation = Observation(state=query.state, lag=lag)
        has_executors = self.has_executors()
        return waits_for(
            observation, progress.running(name), query.restart_in, now, has_executors=has_executors
        )
