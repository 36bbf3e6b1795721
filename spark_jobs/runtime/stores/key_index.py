"""Where the entries of a key lie in a window or session store, for the keys that a batch looks through.

Each record of sliding and session windows, and of joins, reads several entries of its key. The first read of
a key in a batch finds them below; from then on they are known, and kept up to date as the batch writes.
"""

from bisect import bisect_left, bisect_right

from spark_jobs.runtime.stores.overlay import Overlay
from spark_jobs.runtime.stores.segments import SEGMENT, Segments

_TIME = 8
_AFTER_SEGMENTS = b"\xff"  # where an index by time may follow


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

    def places(self, key: bytes, low: bytes, high: bytes, oldest: int) -> list[bytes]:
        """The places of the key with tails from `low` to `high`, in order.

        `oldest` is the first time that can be seen at all.
        """
        known = self._places.get(key)
        if known is None:
            known = self._places[key] = self._found(key, oldest)
        if not known:
            return known
        start = SEGMENT + len(key)
        first = bisect_left(known, low, key=lambda place: place[start:])
        return known[first : bisect_right(known, high, first, key=lambda place: place[start:])]

    def clear(self) -> None:
        self._places.clear()

    def _found(self, key: bytes, oldest: int) -> list[bytes]:
        """Segment by segment: keys of other lengths lie between those of one key."""
        found: list[bytes] = []
        length = SEGMENT + len(key) + self._tail
        interval = self._segments.interval
        after = self._segments.id(oldest)
        while True:
            head = next(self._overlay.range(after, _AFTER_SEGMENTS), None)
            if head is None:
                return found
            segment = head[0][:SEGMENT]
            number = int.from_bytes(segment, "big")
            low, high = ((number + step) * interval for step in (0, 1))
            bounds = (segment + key + time.to_bytes(_TIME, "big") for time in (low, high))
            found += (place for place, _ in self._overlay.range(*bounds) if len(place) == length)
            after = (number + 1).to_bytes(SEGMENT, "big")
