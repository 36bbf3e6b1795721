"""Counters of what an application's batches have done, for its status and metrics."""

import time
from collections import deque
from collections.abc import Callable, Iterable, Mapping, Sequence
from threading import Lock
from typing import Any, Protocol

import attrs
import structlog

from headwater_spark.driver.offsets import Backlog
from headwater_spark.driver.queries.stall import (
    Observation,
    ProgressClock,
    RunningBatch,
    stall_reason,
    waits_for,
    waits_for_jvm,
)
from headwater_spark.driver.states import QueryState
from headwater_spark.engine.records import Offsets
from headwater_spark.worker.messages import BatchResult
from headwater_spark.worker.task_activity import TaskActivity

_log = structlog.get_logger(__name__)
_RATE_WINDOW_SECONDS = 30.0
NO_PROGRESS: Mapping[str, int | float] = {
    "batch": -1,
    "recordsRead": 0,
    "recordsWritten": 0,
    "recordsSkipped": 0,
    "recordsDropped": 0,
    "recordsRestored": 0,
    "tasksOpened": 0,
    "recordsPerSecond": 0.0,
    "stateBytes": 0,
    "streamTimeMs": -1,
}
"""The status of a query before its first batch."""
_UNKNOWN = Backlog(lag=None, committed=0)
_LONG_BATCHES_PER_LIMIT = 5
"""A batch is reported in the log when it takes this part of the time after which its query is stalled."""


@attrs.frozen
class Records:
    """How many records queries have read from their topics, and written to topics."""

    read: int
    written: int


class Progress:
    """The counters of all queries; their threads write it, any thread reads it."""

    def __init__(self) -> None:
        self._queries: dict[str, _QueryProgress] = {}
        self._lock = Lock()

    def record_batch(self, query: str, number: int, results: Iterable[BatchResult]) -> None:
        with self._lock:
            progress = self._queries.setdefault(query, _QueryProgress())
            progress.batch = number
            progress.batches += 1
            read = 0
            for result in results:
                read += result.read
                progress.written += result.written
                progress.skipped += result.skipped
                progress.dropped += result.dropped
                progress.restored += result.restored
                progress.opened += result.opened
                progress.state_bytes[result.partition] = result.state_bytes
                progress.stream_time = max(progress.stream_time, result.stream_time)
            progress.read += read
            progress.recent.append((time.monotonic(), read))

    def begin_batch(self, query: str, number: int, end_offsets: Offsets) -> None:
        """Record that a batch runs; `end_offsets` are those after it, empty if unknown."""
        with self._lock:
            progress = self._queries.setdefault(query, _QueryProgress())
            progress.running = RunningBatch(number, time.monotonic())
            progress.next_read_to = end_offsets

    def record_wait(self, query: str, **waits: bool) -> None:
        """Record what the running batch waits for, or not any more: `in_round` or `for_thread`."""
        with self._lock:
            progress = self._queries.get(query)
            if progress is not None and progress.running is not None:
                progress.running = attrs.evolve(progress.running, **waits)

    def wait_for_input(self, query: str, number: int, *, for_partitions: bool) -> None:
        """Record that a batch waits for a topic check, because partitions were added, or for other topics.

        To wait for records of other topics (`max.task.idle.ms`) is progress.
        """
        with self._lock:
            progress = self._queries.setdefault(query, _QueryProgress())
            before = progress.running
            if not for_partitions:
                progress.batches += 1
            if before is None or not (before.for_partitions if for_partitions else before.for_topics):
                progress.running = RunningBatch(
                    number, time.monotonic(), for_topics=not for_partitions, for_partitions=for_partitions
                )

    def pause_batch(self, query: str) -> None:
        """Record that no task runs: the batch has finished or failed, or a part of it has."""
        with self._lock:
            if (progress := self._queries.get(query)) is not None:
                progress.running = None

    def finish_batch(self, query: str) -> None:
        """Record that all records of the batch are processed."""
        with self._lock:
            if (progress := self._queries.get(query)) is not None and progress.next_read_to:
                progress.read_to = progress.next_read_to

    def set_read_to(self, query: str, offsets: Offsets) -> None:
        """Record up to where Spark has read, where the checkpoint cannot be read."""
        with self._lock:
            self._queries.setdefault(query, _QueryProgress()).read_to = offsets

    def batches(self, query: str) -> int:
        """Return the number of finished batches since the start of the process."""
        with self._lock:
            return self._queries.get(query, _QueryProgress()).batches

    def running(self, query: str) -> RunningBatch | None:
        with self._lock:
            return self._queries.get(query, _QueryProgress()).running

    def read_to(self, query: str) -> Offsets:
        """Return the offsets after the last finished batch; partitions where they are unknown are missing."""
        with self._lock:
            return self._queries.get(query, _QueryProgress()).read_to

    def records(self) -> Records:
        """Return the records of all queries since the start of the process."""
        with self._lock:
            queries = self._queries.values()
            return Records(sum(each.read for each in queries), sum(each.written for each in queries))

    def status(self) -> Mapping[str, Mapping[str, int | float]]:
        """Return query → status, with the keys of `NO_PROGRESS`."""
        now = time.monotonic()
        with self._lock:
            return {
                name: {
                    "batch": progress.batch,
                    "recordsRead": progress.read,
                    "recordsWritten": progress.written,
                    "recordsSkipped": progress.skipped,
                    "recordsDropped": progress.dropped,
                    "recordsRestored": progress.restored,
                    "tasksOpened": progress.opened,
                    "recordsPerSecond": round(progress.rate(now), 1),
                    "stateBytes": sum(progress.state_bytes.values()),
                    "streamTimeMs": progress.stream_time,
                }
                for name, progress in sorted(self._queries.items())
            }


@attrs.define
class _QueryProgress:
    """Totals since the start; `recent` is (time, records read) of each batch in the rate window."""

    batch: int = -1
    read: int = 0
    written: int = 0
    skipped: int = 0
    dropped: int = 0
    restored: int = 0
    opened: int = 0
    state_bytes: dict[int, int] = attrs.field(factory=dict)
    stream_time: int = -1
    batches: int = 0
    running: RunningBatch | None = None
    next_read_to: Offsets = attrs.field(factory=dict)
    read_to: Offsets = attrs.field(factory=dict)
    recent: deque[tuple[float, int]] = attrs.field(factory=deque)

    def rate(self, now: float) -> float:
        """Return the records per second in the rate window."""
        while self.recent and now - self.recent[0][0] > _RATE_WINDOW_SECONDS:
            self.recent.popleft()
        return sum(read for _, read in self.recent) / _RATE_WINDOW_SECONDS


class ObservedQuery(Protocol):
    """A query of the application (`SubtopologyQuery`)."""

    @property
    def state(self) -> QueryState: ...

    @property
    def restarts(self) -> int:
        """The number of restarts so far."""
        ...

    @property
    def restart_in(self) -> float:
        """Seconds until a query in state WAITING is restarted."""
        ...


@attrs.define(kw_only=True, eq=False)
class ProgressWatch:
    """One thread calls `observe` about once per second. `queries` is name → running query."""

    queries: Mapping[str, ObservedQuery]
    limit_seconds: float
    """`max.poll.interval.ms` of the application."""
    has_executors: Callable[[], bool] = lambda: True
    """Returns whether Spark has executors for the tasks of a batch."""
    jvm_silence: Callable[[], float] = lambda: 0.0
    """Returns for how many seconds Spark's JVM has not answered."""
    activities: Callable[[], Sequence[TaskActivity]] = tuple
    """Returns what the tasks of this machine do whose batch takes some seconds."""
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
            restored=sum(each.restored for each in self._activities_of(name)),
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
        activities = self._activities_of(name)
        return {
            "lag": clock.last.lag if clock is not None and clock.last is not None else None,
            "waitsFor": self._waits_for(name, progress, now),
            "secondsWithoutProgress": round(clock.seconds, 1) if clock is not None else 0.0,
            "stalled": bool(self._stall_reason(name, progress, now)),
            "batchSeconds": round(now - batch.since, 1) if (batch := progress.running(name)) else 0.0,
            "taskSeconds": max((each.seconds for each in activities), default=0.0),
            "slowTasks": [each.status() for each in activities],
        }

    def reason(self, progress: Progress) -> str:
        """Return one sentence for each query that is stalled; empty if none is."""
        now = time.monotonic()
        found = ((name, self._stall_reason(name, progress, now)) for name in self.queries)
        return " ".join(f"Sub-topology {name} {reason}." for name, reason in found if reason)

    def _activities_of(self, name: str) -> Sequence[TaskActivity]:
        return [each for each in self.activities() if each.subtopology == name]

    def _report_long_batch(self, name: str, progress: Progress, now: float) -> None:
        """Log once that a batch takes long: the host of a task may hang until Spark notices it."""
        batch = progress.running(name)
        if batch is None or not batch.is_long(self.limit_seconds / _LONG_BATCHES_PER_LIMIT, now):
            return
        if self._reported.get(name) != batch.since:
            self._reported[name] = batch.since
            waiting = self._waits_for(name, progress, now)
            _log.warning("batch takes long", subtopology=name, batch=batch.number, waits_for=waiting)

    def _stall_reason(self, name: str, progress: Progress, now: float) -> str:
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
