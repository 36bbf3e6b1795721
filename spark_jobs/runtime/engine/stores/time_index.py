"""Entries of a window or session store by time first, for emission on close.

Kafka Streams takes other stores for it (`RocksDBTimeOrderedWindowStore`, `…SessionStore`). Here each entry
has a second, empty one `255 ‖ tail ‖ key`; no segment's id begins with 255.
"""

from collections.abc import Iterator

from spark_jobs.runtime.engine.stores.overlay import Overlay
from spark_jobs.runtime.engine.stores.segments import SEGMENT, Segments

_LEAD = b"\xff"
_TIME = 8


class TimeIndex:
    """Of places `segment(8) ‖ key ‖ tail`, where tails are `tail` bytes, led by the time."""

    __slots__ = ("_overlay", "_segments", "_tail")

    def __init__(self, overlay: Overlay, segments: Segments, tail: int) -> None:
        self._overlay = overlay
        self._segments = segments
        self._tail = tail

    def put(self, place: bytes, *, is_there: bool) -> None:
        """Tells of each write to a place."""
        entry = _LEAD + place[-self._tail :] + place[SEGMENT : -self._tail]
        self._overlay.written[entry] = b"" if is_there else None

    def between(self, first: int, last: int) -> Iterator[tuple[bytes, bytes]]:
        """Places and values from time `first` to `last`, both inclusive, by tail, then key."""
        get, tail = self._overlay.get, self._tail
        for entry, _ in self._overlay.range(_lead(first), _lead(last + 1)):
            found = entry[1 : 1 + tail]
            place = self._segments.id(int.from_bytes(found[:_TIME], "big")) + entry[1 + tail :] + found
            value = get(place)
            if value is not None:
                yield place, value

    def expire(self, first_live: int) -> None:
        """Takes out what is earlier."""
        for entry, _ in list(self._overlay.range(_LEAD, _lead(first_live))):
            self._overlay.delete(entry)


def _lead(time: int) -> bytes:
    return _LEAD + time.to_bytes(_TIME, "big")
