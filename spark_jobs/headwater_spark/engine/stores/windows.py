"""Window stores (`RocksDBWindowStore`), with or without duplicates, and `RocksDBSessionStore`.

The suffix of an entry key is `start(8) ‖ sequence(4)` for windows, `end(8) ‖ start(8)` for sessions.
"""

from collections.abc import Callable, Iterable, Iterator, Sequence

from headwater_spark.engine.program_interface import Serde
from headwater_spark.engine.records import (
    NO_RECORD,
    Clock,
    Context,
    Headers,
    Value,
    ValueAndTimestamp,
    Windowed,
)
from headwater_spark.engine.stores.layers import TIMESTAMP, Get, StoreBytes, read_timestamp, with_timestamp
from headwater_spark.engine.stores.overlay import BatchValues
from headwater_spark.engine.stores.segments import LAST_TIME, SEGMENT, TIME, SegmentedStore

_SEQUENCE = 4
TIME_AND_SEQUENCE = TIME + _SEQUENCE
_FIRST_SEQUENCE = b"\0" * _SEQUENCE
_LAST_SEQUENCE = b"\xff" * _SEQUENCE
_SEQUENCES = 0x7FFFFFFF
_MAX_CACHED_STARTS = 4096
_SESSION_SUFFIX = 2 * TIME


def window_end(start: int, size: int) -> int:
    """Return the end of a window (`WindowKeySchema#timeWindowForSize`): at most the last time."""
    return min(start + size, LAST_TIME)


class WindowBytes(SegmentedStore):
    """`WindowStore`.

    Args:
        size_ms: The size of the windows, which keys of iterators carry.
        observed: The largest start ever put.
        sequence: Counts the entries of a store with duplicates; None = no duplicates.
        nulls_move_time: With duplicates, whether a null moves `observed` (in-memory stores).
        emits_on_close: Kafka Streams then uses another store, in which entries are visible 1 ms longer.
        ordered_by_key: The supplier is a user's, so Kafka Streams does not use that store.
    """

    def __init__(
        self,
        below: StoreBytes,
        key: Serde,
        value: Serde,
        context: Callable[[], Context],
        *,
        retention_ms: int,
        size_ms: int,
        observed: Clock,
        sequence: Clock | None = None,
        nulls_move_time: bool = False,
        emits_on_close: bool = False,
        ordered_by_key: bool = False,
    ) -> None:
        super().__init__(
            below,
            key,
            value,
            context,
            suffix=TIME_AND_SEQUENCE,
            retention_ms=retention_ms,
            visible_ms=retention_ms if emits_on_close and not ordered_by_key else retention_ms - 1,
            observed=observed,
            emits_on_close=emits_on_close,
        )
        self._sequence = sequence
        self._ordered_by_key = ordered_by_key
        self._size = size_ms
        self.nulls_move_time = nulls_move_time
        self._parts_by_start: dict[int, tuple[bytes, bytes]] = {}
        self._values = BatchValues(self.stored_entries) if sequence is not None else None

    def put(self, key: Value, value: Value, start: int, context: Context | None = None) -> None:
        """Put (None = delete) a value. Operators pass `context`; for users it is the current record's."""
        stored = None if value is None else self._encode(value)
        self.put_bytes(self.key_serde.serialize(key), stored, start, context or self._context())

    def put_bytes(self, key: bytes, value: bytes | None, start: int, context: Context) -> None:
        sequence = 0
        if self._sequence is not None:
            sequence = self._sequence.now = (max(self._sequence.now, 0) + 1) & _SEQUENCES
            if value is None:
                self._log_null(key, start, sequence, context)
                return
            if self._values is not None:
                self._values.add(key, start, sequence, value)
        self.put_entry(key, self.entry_key(key, start, sequence), value, start, context)

    @property
    def has_only_duplicates(self) -> bool:
        """Whether all entries have a sequence number, and no cache holds any back."""
        return self._values is not None and self._cached is None

    def next_sequences(self, number: int) -> list[int]:
        """Return the sequence numbers that the next entries get, in a store with duplicates."""
        if self._sequence is None:
            raise TypeError("the store has no duplicates")
        first = max(self._sequence.now, 0) + 1
        return [sequence & _SEQUENCES for sequence in range(first, first + number)]

    def put_duplicates(
        self,
        keys: Sequence[bytes],
        values: Sequence[bytes | None],
        starts: Sequence[int],
        headers: Sequence[Headers],
    ) -> None:
        """Put many records, as `put_bytes` does, into a store that `has_only_duplicates`.

        Its entries must not be searched for until the batch ends.
        """
        if self._sequence is None or not keys:
            return
        put, segment_id, interval = self.below.put, self.segments.id, self.segments.interval
        sequences = self.next_sequences(len(keys))
        segment, prefix = -1, b""
        latest = self.observed.now
        for key, value, start, of_record, sequence in zip(
            keys, values, starts, headers, sequences, strict=True
        ):
            if start // interval != segment:
                segment, prefix = start // interval, segment_id(start)
            suffix = start.to_bytes(TIME, "big") + sequence.to_bytes(_SEQUENCE, "big")
            put(prefix + key + suffix, value, (start, of_record, NO_RECORD))
            if start > latest and (value is not None or self.nulls_move_time):
                latest = start
        self._sequence.now, self.observed.now = sequences[-1], latest

    def _log_null(self, key: bytes, start: int, sequence: int, context: Context) -> None:
        """Log a null: in a store with duplicates it deletes no entry."""
        if self.nulls_move_time:
            self.observed.now = max(self.observed.now, start)
        self.below.put(self.entry_key(key, start, sequence), None, context)

    def fetch(self, key: Value, start: int) -> Value:
        entry_key = self.entry_key(self.key_serde.serialize(key), start)
        stored = self.fetch_entry(entry_key, start, self.below.get)
        return None if stored is None else self._decode(stored)

    def fetch_entry(self, entry_key: bytes, start: int, get: Get) -> bytes | None:
        """Return the value of an entry, read with `get`, a function of `below`."""
        if start < self.observed.now - self.visible_ms and not self._is_cached(entry_key):
            return None
        return get(entry_key)

    def fetch_range(self, key: Value, first: int, last: int) -> Iterator[tuple[int, Value]]:
        decode = self._decode
        key_bytes = self.key_serde.serialize(key)
        return ((start, decode(value)) for start, value in self._of_key(key_bytes, first, last))

    def fetch_values(self, key: bytes, first: int, last: int) -> Iterable[tuple[int, bytes]]:
        """Return (start, value in bytes) of a serialized key, as of now.

        In a store with duplicates and without a cache, a key is read once in a batch (`BatchValues`).
        """
        if self._values is None or self._cached is not None:
            return list(self._of_key(key, max(first, 0), last))
        return self._values.find(key, self._first_visible(first), min(last, LAST_TIME))

    def expire(self) -> None:
        super().expire()
        if self._values is not None:
            self._values.clear()

    def backward_fetch_range(self, key: Value, first: int, last: int) -> Iterator[tuple[int, Value]]:
        decode = self._decode
        key_bytes = self.key_serde.serialize(key)
        found = self._of_key(key_bytes, first, last, forward=False)
        return ((start, decode(value)) for start, value in found)

    def fetch_keys(
        self,
        first_key: Value,
        last_key: Value,
        first: int,
        last: int,
    ) -> Iterator[tuple[Windowed, Value]]:
        low = b"" if first_key is None else self.key_serde.serialize(first_key)
        high = None if last_key is None else self.key_serde.serialize(last_key)
        return (
            entry
            for key, entry in self._of_times(first, last)
            if key >= low and (high is None or key <= high)
        )

    def fetch_all(self, first: int, last: int) -> Iterator[tuple[Windowed, Value]]:
        return (entry for _, entry in self._of_times(first, last))

    def backward_fetch_all(self, first: int, last: int) -> Iterator[tuple[Windowed, Value]]:
        return (entry for _, entry in self._of_times(first, last, forward=False))

    def closed_windows(self, first: int, last: int) -> Iterator[tuple[Windowed, Value]]:
        """Yield windows for emission on close: by start and key bytes, or by entry key (`ordered_by_key`)."""
        if self._by_time is None:
            raise TypeError("the store has no index by time")
        oldest = self._first_visible(first)
        found = list(self._by_time.entries_between(oldest if self._cached is None else first, last))
        for entry_key, value in sorted(found) if self._ordered_by_key else found:
            start = int.from_bytes(entry_key[-TIME_AND_SEQUENCE:-_SEQUENCE], "big")
            if start < oldest and not self._is_cached(entry_key):
                continue
            key = self.key_serde.deserialize(entry_key[SEGMENT:-TIME_AND_SEQUENCE])
            yield Windowed(key, start, window_end(start, self._size)), self._decode(value)

    def all(self) -> Iterator[tuple[Windowed, Value]]:
        return self.fetch_all(0, LAST_TIME)

    def entry_key(self, key: bytes, start: int, sequence: int = 0) -> bytes:
        if sequence:
            suffix = start.to_bytes(TIME, "big") + sequence.to_bytes(_SEQUENCE, "big")
            return self.segments.id(start) + key + suffix
        parts = self._parts_by_start.get(start)
        if parts is None:
            if len(self._parts_by_start) >= _MAX_CACHED_STARTS:
                self._parts_by_start.clear()
            suffix = start.to_bytes(TIME, "big") + _FIRST_SEQUENCE
            parts = self._parts_by_start[start] = self.segments.id(start), suffix
        return parts[0] + key + parts[1]

    def _of_key(
        self, key: bytes, first: int, last: int, *, forward: bool = True
    ) -> Iterator[tuple[int, bytes]]:
        get = self.below.get
        high = min(last, LAST_TIME).to_bytes(TIME, "big") + _LAST_SEQUENCE
        entry_keys = self._entry_keys(key, first, high)
        for entry_key in entry_keys if forward else reversed(entry_keys):
            value = get(entry_key)
            if value is not None:
                yield int.from_bytes(entry_key[-TIME_AND_SEQUENCE:-_SEQUENCE], "big"), value
        if self._cached is not None:
            self._touch_segment(key, first, last, forward=forward)

    def _touch_segment(self, key: bytes, first: int, last: int, *, forward: bool) -> None:
        """Touch the entries that an iterator reads to its end: the segment's (`CacheIteratorWrapper`)."""
        interval = self.segments.interval
        if forward:
            end = min((last // interval + 1) * interval - 1, LAST_TIME)
            self._touch(key, max(first, 0), end.to_bytes(TIME, "big") + _LAST_SEQUENCE)
        else:
            begin = max(first, 0) // interval * interval
            self._touch(
                key, begin, min(last, LAST_TIME).to_bytes(TIME, "big") + _LAST_SEQUENCE, forward=False
            )

    def _of_times(
        self, first: int, last: int, *, forward: bool = True
    ) -> Iterator[tuple[bytes, tuple[Windowed, Value]]]:
        """Return (key bytes, entry) of the visible windows that start from `first` to `last`."""
        oldest = self._first_visible(first)
        read_from = oldest if self._cached is None else min(oldest, max(first, self._first_put))
        return self._visible(read_from, oldest, min(last, LAST_TIME), forward=forward)

    def _visible(
        self, first: int, oldest: int, last: int, *, forward: bool
    ) -> Iterator[tuple[bytes, tuple[Windowed, Value]]]:
        """Yield windows that start from `first` to `last`; before `oldest` only those in the cache."""
        read = self.below.range if forward else self.below.reverse_range
        deserialize = self.key_serde.deserialize
        for entry_key, value in read(*self.segments.bounds(first, last)):
            start = int.from_bytes(entry_key[-TIME_AND_SEQUENCE:-_SEQUENCE], "big")
            if first <= start <= last and (start >= oldest or self._is_cached(entry_key)):
                key = entry_key[SEGMENT:-TIME_AND_SEQUENCE]
                yield (
                    key,
                    (Windowed(deserialize(key), start, window_end(start, self._size)), self._decode(value)),
                )

    def _encode(self, value: Value) -> bytes:
        return self.value_serde.serialize(value)

    def _decode(self, stored: bytes) -> Value:
        return self.value_serde.deserialize(stored)


class TimestampedWindowBytes(WindowBytes):
    """`TimestampedWindowStore`: values are (value, timestamp); a pair of (None, t) deletes."""

    def put(
        self, key: Value, value: tuple[Value, int] | None, start: int, context: Context | None = None
    ) -> None:
        super().put(key, None if value is None or value[0] is None else value, start, context)

    def _encode(self, value: tuple[Value, int]) -> bytes:
        return with_timestamp(self.value_serde.serialize(value[0]), value[1])

    def _decode(self, stored: bytes) -> ValueAndTimestamp:
        return ValueAndTimestamp(self.value_serde.deserialize(stored[TIMESTAMP:]), read_timestamp(stored))


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
            suffix=_SESSION_SUFFIX,
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
        deserialize = self.value_serde.deserialize
        key_bytes = self.key_serde.serialize(key)
        for _, start, end, value in self.find_entries(key_bytes, earliest_end, latest_start):
            yield Windowed(key, start, end), deserialize(value)

    def find_entries(
        self, key: bytes, earliest_end: int, latest_start: int
    ) -> Iterator[tuple[bytes, int, int, bytes]]:
        """Yield (entry key, start, end, value) of the sessions that `find_sessions` yields."""
        get = self.below.get
        for entry_key in self._entry_keys(key, earliest_end, None):
            start = int.from_bytes(entry_key[-TIME:], "big")
            if start > latest_start:
                continue
            value = get(entry_key)
            if value is not None:
                yield entry_key, start, int.from_bytes(entry_key[-_SESSION_SUFFIX:-TIME], "big"), value
        self._touch(key, max(earliest_end, 0), None)

    def fetch_session(self, key: Value, start: int, end: int) -> Value:
        entry_key = self.entry_key(self.key_serde.serialize(key), start, end)
        if end < self.observed.now - self.visible_ms and not self._is_cached(entry_key):
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
                int.from_bytes(part, "big") for part in (entry_key[-TIME:], entry_key[-_SESSION_SUFFIX:-TIME])
            )
            key = self.key_serde.deserialize(entry_key[SEGMENT:-_SESSION_SUFFIX])
            yield Windowed(key, start, end), self.value_serde.deserialize(value)

    def _ended(self, first: int, last: int) -> list[tuple[bytes, bytes]]:
        if self._by_time is not None:
            return list(self._by_time.entries_between(first, last))
        last = min(last, LAST_TIME)
        low, high = (time.to_bytes(TIME, "big") for time in (first, last))
        entries = self.below.range(*self.segments.bounds(first, last))
        found = [entry for entry in entries if low <= entry[0][-_SESSION_SUFFIX:-TIME] <= high]
        return sorted(
            found, key=lambda entry: (entry[0][-_SESSION_SUFFIX:], entry[0][SEGMENT:-_SESSION_SUFFIX])
        )

    def put(self, session: Windowed, value: Value, context: Context | None = None) -> None:
        """Put (None = remove) a session. Operators pass `context`; for users it is the current record's."""
        key, start, end = session
        stored = None if value is None else self.value_serde.serialize(value)
        key_bytes = self.key_serde.serialize(key)
        entry_key = self.entry_key(key_bytes, start, end)
        self.put_entry(key_bytes, entry_key, stored, end, context or self._context())

    def remove(self, session: Windowed, context: Context | None = None) -> None:
        self.put(session, None, context)

    def entry_key(self, key: bytes, start: int, end: int) -> bytes:
        return self.segments.id(end) + key + end.to_bytes(TIME, "big") + start.to_bytes(TIME, "big")
