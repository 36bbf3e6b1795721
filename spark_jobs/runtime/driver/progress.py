"""Counters of what an application's batches have done, for its status and metrics."""

import time
from collections import deque
from collections.abc import Iterable, Mapping
from threading import Lock

import attrs

from spark_jobs.runtime.worker.messages import BatchResult

_RATE_WINDOW_SECONDS = 30.0

NO_PROGRESS: Mapping[str, int | float] = {
    "batch": -1,
    "recordsRead": 0,
    "recordsWritten": 0,
    "recordsSkipped": 0,
    "recordsDropped": 0,
    "recordsRestored": 0,
    "recordsPerSecond": 0.0,
    "stateBytes": 0,
    "streamTimeMs": -1,
}
"""The status of a query before its first batch."""


class Progress:
    """The counters of all queries; their threads write it, any thread reads it."""

    def __init__(self) -> None:
        self._queries: dict[str, _QueryProgress] = {}
        self._lock = Lock()

    def record_batch(self, query: str, number: int, results: Iterable[BatchResult]) -> None:
        with self._lock:
            progress = self._queries.setdefault(query, _QueryProgress())
            progress.batch = number
            read = 0
            for result in results:
                read += result.read
                progress.written += result.written
                progress.skipped += result.skipped
                progress.dropped += result.dropped
                progress.restored += result.restored
                progress.state_bytes[result.partition] = result.state_bytes
                progress.stream_time = max(progress.stream_time, result.stream_time)
            progress.read += read
            progress.recent.append((time.monotonic(), read))

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
    state_bytes: dict[int, int] = attrs.field(factory=dict)
    stream_time: int = -1
    recent: deque[tuple[float, int]] = attrs.field(factory=deque)

    def rate(self, now: float) -> float:
        """Return the records per second in the rate window."""
        while self.recent and now - self.recent[0][0] > _RATE_WINDOW_SECONDS:
            self.recent.popleft()
        return sum(read for _, read in self.recent) / _RATE_WINDOW_SECONDS
