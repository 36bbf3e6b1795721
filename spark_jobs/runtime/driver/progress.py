"""What the batches of an application have done so far, for whoever watches."""

import time
from collections import deque
from collections.abc import Iterable, Mapping
from threading import Lock

import attrs

from spark_jobs.runtime.worker.messages import BatchResult

_WINDOW_SECONDS = 30.0


@attrs.define
class QueryProgress:
    """Totals since the start; `rate` is records a second over the last half minute."""

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
        while self.recent and now - self.recent[0][0] > _WINDOW_SECONDS:
            self.recent.popleft()
        return sum(read for _, read in self.recent) / _WINDOW_SECONDS


NOTHING: Mapping[str, int | float] = {
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


class Progress:
    """Written by the queries' threads, read by any."""

    def __init__(self) -> None:
        self._queries: dict[str, QueryProgress] = {}
        self._lock = Lock()

    def batch(self, query: str, number: int, outcomes: Iterable[BatchResult]) -> None:
        with self._lock:
            of = self._queries.setdefault(query, QueryProgress())
            of.batch = number
            read = 0
            for outcome in outcomes:
                read += outcome.read
                of.written += outcome.written
                of.skipped += outcome.skipped
                of.dropped += outcome.dropped
                of.restored += outcome.restored
                of.state_bytes[outcome.partition] = outcome.state_bytes
                of.stream_time = max(of.stream_time, outcome.stream_time)
            of.read += read
            of.recent.append((time.monotonic(), read))

    def told(self) -> Mapping[str, Mapping[str, int | float]]:
        """Return query → what to show of it."""
        now = time.monotonic()
        with self._lock:
            return {
                name: {
                    "batch": of.batch,
                    "recordsRead": of.read,
                    "recordsWritten": of.written,
                    "recordsSkipped": of.skipped,
                    "recordsDropped": of.dropped,
                    "recordsRestored": of.restored,
                    "recordsPerSecond": round(of.rate(now), 1),
                    "stateBytes": sum(of.state_bytes.values()),
                    "streamTimeMs": of.stream_time,
                }
                for name, of in sorted(self._queries.items())
            }
