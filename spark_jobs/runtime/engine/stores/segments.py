"""Segments of time, as window and session stores of Kafka Streams cut them (`AbstractSegments`).

Only what lies less than the retention behind the store's time is ever seen; segments say when the rest is
really taken out, and in which order several keys are read.
"""

from spark_jobs.runtime.engine.stores.overlay import Overlay

SEGMENT = 8
_LEAST_INTERVAL_MS = 60_000


class Segments:
    """Segments of max(retention / 2, one minute); their ids lead the keys as 8 bytes."""

    def __init__(self, retention_ms: int) -> None:
        self.retention = retention_ms
        self.interval = max(retention_ms // 2, _LEAST_INTERVAL_MS)
        self._expired = b""

    def id(self, time: int) -> bytes:
        return (time // self.interval).to_bytes(SEGMENT, "big")

    def bounds(self, first: int, last: int) -> tuple[bytes, bytes]:
        """What holds all entries of times from `first` to `last`."""
        return self.id(first), (last // self.interval + 1).to_bytes(SEGMENT, "big")

    def first_live(self, observed: int) -> int:
        """The first time of the oldest segment that is kept."""
        return max(0, observed - self.retention) // self.interval * self.interval

    def expire(self, overlay: Overlay, observed: int) -> None:
        """Takes out what lies in segments before the first live one."""
        first_live = self.id(self.first_live(observed))
        if first_live > self._expired:
            for place, _ in list(overlay.range(self._expired, first_live)):
                overlay.delete(place)
            self._expired = first_live
