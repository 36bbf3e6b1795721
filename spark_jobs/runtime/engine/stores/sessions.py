"""Session stores (`RocksDBSessionStore`).

A key in the store is `segment(8) ‖ key ‖ end(8) ‖ start(8)`, segments cut by the end; without the segment it
is the changelog's.
"""

from collections.abc import Callable, Iterator

from spark_jobs.runtime.engine.clocks import Clock
from spark_jobs.runtime.engine.program_interface import Serde
from spark_jobs.runtime.engine.records import Context, Value, Windowed
from spark_jobs.runtime.engine.stores.key_index import KeyIndex
from spark_jobs.runtime.engine.stores.layers import StoreBytes
from spark_jobs.runtime.engine.stores.segments import SEGMENT, Segments
from spark_jobs.runtime.engine.stores.time_index import TimeIndex

_TIME = 8
_TAIL = 2 * _TIME
_LAST_TIME = 2**63 - 1


class SessionBytes:
    """`SessionStore`. `observed` is the largest end ever put or removed."""

    def __init__(
        self,
        below: StoreBytes,
        key: Serde,
        value: Serde,
        context: Callable[[], Context],
        *,
        retention_ms: int,
        observed: Clock,
        emits_on_close: bool = False,
        shows_all_closed: bool = False,
    ) -> None:
        self.below = below
        self.key_serde = key
        self.value_serde = value
        self.segments = Segments(retention_ms)
        self.observed = observed
        self._retention = retention_ms
        self._context = context
        self._index = KeyIndex(below.overlay, self.segments, _TAIL)
        self._by_time = TimeIndex(below.lowest, self.segments, _TAIL) if emits_on_close else None
        self._shows_all_closed = shows_all_closed

    def find_sessions(
        self, key: Value, earliest_end: int, latest_start: int
    ) -> Iterator[tuple[Windowed, Value]]:
        """By end, then start: those that end at or after the one and start at or before the other."""
        first = self._visible(earliest_end)
        deserialize, get = self.value_serde.deserialize, self.below.overlay.get
        times = self._visible(0), self.observed.now
        low, high = first.to_bytes(_TIME, "big"), b"\xff" * _TAIL
        found = self._index.places(self.key_serde.serialize(key), low, high, times)
        for place in found:
            start = int.from_bytes(place[-_TIME:], "big")
            value = get(place) if start <= latest_start else None
            if value is not None:
                end = int.from_bytes(place[-_TAIL:-_TIME], "big")
                yield Windowed(key, start, end), deserialize(value)

    def fetch_session(self, key: Value, start: int, end: int) -> Value:
        if end <= self.observed.now - self._retention:
            return None
        stored = self.below.overlay.get(self.place(self.key_serde.serialize(key), start, end))
        return None if stored is None else self.value_serde.deserialize(stored)

    def fetch(self, key: Value) -> Iterator[tuple[Windowed, Value]]:
        return self.find_sessions(key, 0, _LAST_TIME)

    def sessions_ended(self, earliest_end: int, latest_end: int) -> Iterator[tuple[Windowed, Value]]:
        """By end, start, key. Here whole segments expire: sessions show that `fetch` no longer does."""
        first = earliest_end
        if not self._shows_all_closed:
            first = max(first, self.segments.first_live(self.observed.now))
        for place, value in self._ended(first, latest_end):
            start, end = (int.from_bytes(part, "big") for part in (place[-_TIME:], place[-_TAIL:-_TIME]))
            key = self.key_serde.deserialize(place[SEGMENT:-_TAIL])
            yield Windowed(key, start, end), self.value_serde.deserialize(value)

    def _ended(self, first: int, last: int) -> list[tuple[bytes, bytes]]:
        if self._by_time is not None:
            return list(self._by_time.between(first, last))
        last = min(last, _LAST_TIME)
        low, high = (time.to_bytes(_TIME, "big") for time in (first, last))
        places = self.below.overlay.range(*self.segments.bounds(first, last))
        found = [entry for entry in places if low <= entry[0][-_TAIL:-_TIME] <= high]
        return sorted(found, key=lambda entry: (entry[0][-_TAIL:], entry[0][SEGMENT:-_TAIL]))

    def put(self, session: Windowed, value: Value, context: Context | None = None) -> None:
        key, start, end = session
        self.observed.now = max(self.observed.now, end)
        stored = None if value is None else self.value_serde.serialize(value)
        plain = self.key_serde.serialize(key)
        place = self.place(plain, start, end)
        self._index.add(plain, place)
        if self._by_time is not None:
            self._by_time.put(place, is_there=stored is not None)
        self.below.put(place, stored, context or self._context())

    def remove(self, session: Windowed, context: Context | None = None) -> None:
        self.put(session, None, context)

    def restore(self, key: bytes, value: bytes | None) -> None:
        """Takes one record of the changelog in."""
        end = int.from_bytes(key[-_TAIL:-_TIME], "big")
        self.observed.now = max(self.observed.now, end)
        place = self.segments.id(end) + key
        if self._by_time is not None:
            self._by_time.put(place, is_there=value is not None)
        self.below.lowest.written[place] = value

    def expire(self) -> None:
        """Takes the segments out that nothing can be seen of; at the end of a batch."""
        self._index.clear()
        self.segments.expire(self.below.lowest, self.observed.now)
        if self._by_time is not None:
            self._by_time.expire(self.segments.first_live(self.observed.now))

    def place(self, key: bytes, start: int, end: int) -> bytes:
        """Where a session lies in the store."""
        return b"".join(
            (self.segments.id(end), key, end.to_bytes(_TIME, "big"), start.to_bytes(_TIME, "big"))
        )

    def _visible(self, first: int) -> int:
        return max(first, self.observed.now - self._retention + 1, 0)
