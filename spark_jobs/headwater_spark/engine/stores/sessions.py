"""Session stores (`RocksDBSessionStore`). The suffix of an entry key is `end(8) ‖ start(8)`."""

from collections.abc import Callable, Iterator

from headwater_spark.engine.clocks import UNSET, Clock
from headwater_spark.engine.program_interface import Serde
from headwater_spark.engine.records import Context, Value, Windowed
from headwater_spark.engine.stores.layers import StoreBytes
from headwater_spark.engine.stores.segments import LAST_TIME, SEGMENT, TIME, SegmentedStore

_SUFFIX = 2 * TIME
_LAST_SUFFIX = b"\xff" * _SUFFIX


class SessionBytes(SegmentedStore):
    """`SessionStore`.

    Args:
        observed: The largest end of a session ever put or removed.
    """

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
    ) -> None:
        super().__init__(
            below,
            key,
            value,
            context,
            suffix=_SUFFIX,
            retention_ms=retention_ms,
            visible_ms=retention_ms - 1,
            observed=observed,
            emits_on_close=emits_on_close,
        )

    def find_sessions(
        self, key: Value, earliest_end: int, latest_start: int
    ) -> Iterator[tuple[Windowed, Value]]:
        """Yield sessions of a key that end at or after the one time and start at or before the other.

        They are ordered by end, then start.
        """
        deserialize, get = self.value_serde.deserialize, self.below.get
        for entry_key in self._entry_keys(key, earliest_end, _LAST_SUFFIX):
            start = int.from_bytes(entry_key[-TIME:], "big")
            if start > latest_start:
                continue
            value = get(entry_key)
            if value is not None:
                end = int.from_bytes(entry_key[-_SUFFIX:-TIME], "big")
                yield Windowed(key, start, end), deserialize(value)
        self._touch(key, max(earliest_end, 0), _LAST_SUFFIX)

    def fetch_session(self, key: Value, start: int, end: int) -> Value:
        entry_key = self.entry_key(self.key_serde.serialize(key), start, end)
        if end < self.observed.now - self._visible_ms and not self._is_cached(entry_key):
            return None
        stored = self.below.get(entry_key)
        return None if stored is None else self.value_serde.deserialize(stored)

    def fetch(self, key: Value) -> Iterator[tuple[Windowed, Value]]:
        return self.find_sessions(key, 0, LAST_TIME)

    def sessions_ended(self, earliest_end: int, latest_end: int) -> Iterator[tuple[Windowed, Value]]:
        """Yield sessions by end, start, key. Sessions of live segments are found even if not visible."""
        first = max(earliest_end, self.segments.first_live(self.observed.now))
        for entry_key, value in self._ended(first, latest_end):
            start, end = (
                int.from_bytes(part, "big") for part in (entry_key[-TIME:], entry_key[-_SUFFIX:-TIME])
            )
            key = self.key_serde.deserialize(entry_key[SEGMENT:-_SUFFIX])
            yield Windowed(key, start, end), self.value_serde.deserialize(value)

    def _ended(self, first: int, last: int) -> list[tuple[bytes, bytes]]:
        if self._by_time is not None:
            return list(self._by_time.between(first, last))
        last = min(last, LAST_TIME)
        low, high = (time.to_bytes(TIME, "big") for time in (first, last))
        entries = self.below.range(*self.segments.bounds(first, last))
        found = [entry for entry in entries if low <= entry[0][-_SUFFIX:-TIME] <= high]
        return sorted(found, key=lambda entry: (entry[0][-_SUFFIX:], entry[0][SEGMENT:-_SUFFIX]))

    def put(self, session: Windowed, value: Value, context: Context | None = None) -> None:
        """Put (None = remove) a session. Operators pass `context`; for users it is the current record's."""
        key, start, end = session
        if self._cached is None:
            self.observed.now = max(self.observed.now, end)
        elif end > self._last_put > UNSET:
            self._last_put = end
        elif end < self._first_put:
            self._observe_cached(end)
        stored = None if value is None else self.value_serde.serialize(value)
        key_bytes = self.key_serde.serialize(key)
        entry_key = self.entry_key(key_bytes, start, end)
        (self._index.add if stored is not None else self._index.remove)(key_bytes, entry_key)
        if self._by_time is not None:
            self._by_time.put(entry_key, exists=stored is not None)
        self.below.put(entry_key, stored, context or self._context())

    def remove(self, session: Windowed, context: Context | None = None) -> None:
        self.put(session, None, context)

    def entry_key(self, key: bytes, start: int, end: int) -> bytes:
        return b"".join((self.segments.id(end), key, end.to_bytes(TIME, "big"), start.to_bytes(TIME, "big")))
