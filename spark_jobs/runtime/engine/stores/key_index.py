"""Where the entries of a key lie in a window or session store, for the keys that a batch looks through.

Each record of sliding and session windows, and of joins, reads several entries of its key. The first read of
a key in a batch finds them below; from then on they are known, and kept up to date as the batch writes.
"""

from bisect import bisect_left, bisect_right

from spark_jobs.runtime.engine.stores.overlay import Overlay
from spark_jobs.runtime.engine.stores.segments import SEGMENT, Segments

_TIME = 8


class KeyIndex:
    """Places `segment(8) ‖ key ‖ tail`: `tail` bytes, led by the time that the segments are cut by."""

    __slots__ = ("_overlay", "_places", "_segments", "_tail")

    def __init__(self, overlay: Overlay, segments: Segments, tail: int) -> None:
        self._overlay = overlay
        self._segments = segments
        self._tail = tail
        self._places: dict[bytes, list[bytes]] = {}

    def add(self, key: bytes, place: bytes) -> None:
        """Tells of a write, deletions included: who reads a place looks whether something is there."""
        known = self._places.get(key)
        if known is None:
            return
        if not known or place > known[-1]:
            known.append(place)
        else:
            at = bisect_left(known, place)
            if known[at] != place:
                known.insert(at, place)

    def places(self, key: bytes, low: bytes, high: bytes, times: tuple[int, int]) -> list[bytes]:
        """The places of the key with tails from `low` to `high`, in order.

        `times` are the first time that can be seen at all, and the last one that there is.
        """
        known = self._places.get(key)
        if known is None:
            known = self._places[key] = self._found(key, times)
        if not known:
            return known
        start = SEGMENT + len(key)
        first = bisect_left(known, low, key=lambda place: place[start:])
        return known[first : bisect_right(known, high, first, key=lambda place: place[start:])]

    def clear(self) -> None:
        self._places.clear()

    def _found(self, key: bytes, times: tuple[int, int]) -> list[bytes]:
        """Segment by segment, of which only a few are alive; keys of other lengths may lie in between."""
        found: list[bytes] = []
        length = SEGMENT + len(key) + self._tail
        interval = self._segments.interval
        for number in range(times[0] // interval, times[1] // interval + 1):
            lead = number.to_bytes(SEGMENT, "big") + key
            low, high = ((number + step) * interval for step in (0, 1))
            bounds = (lead + time.to_bytes(_TIME, "big") for time in (low, high))
            found += (place for place, _ in self._overlay.range(*bounds) if len(place) == length)
        return found
