"""Windowed counts with a cache of their own: counts stay values until they leave the cache.

If no other store shares the record cache, updates leave it at known moments. Entries that were written since
the last flush are used later than all others, so they leave last. When they alone need more bytes than the
cache has, the oldest of them leaves, and all of them are flushed. So only their bytes are counted.

The input may be in columns (`KeyedColumns`). Rows are counted together as long as no update leaves the
cache; the row at which it does is processed alone.
"""

from collections.abc import Callable, Mapping, Sequence
from typing import Final

import numpy as np

from headwater.model.behaviors import StreamAggregate
from headwater_spark.engine.key_counts import CLOSED, LATEST_TIME, NO_KEY, NULL_KEY, KeyedColumns, TimeWindows
from headwater_spark.engine.operators.aggregation import AddToWindow, counts_longs
from headwater_spark.engine.operators.interface import OperatorContext
from headwater_spark.engine.records import Headers, InputRecord, Value, Windowed
from headwater_spark.engine.stores.cached import Cached
from headwater_spark.engine.stores.layers import TIMESTAMP, read_timestamp, with_timestamp
from headwater_spark.engine.stores.record_cache import ENTRY_BYTES, header_bytes
from headwater_spark.engine.stores.windows import TimestampedWindowBytes, window_end
from headwater_spark.engine.window_columns import OpenWindows, TouchedWindows, open_windows, touch_windows

_COUNT: Final = 8
_TOPIC: Final = 0
_RECORD_TIMESTAMP: Final = 3
_ROWS_AT_ONCE: Final = 65_536
_FEWEST_ROWS: Final = 256
_WINDOWS_AT_ONCE: Final = 1_000_000
"""Rows are processed together as long as they cannot touch more windows."""

Pending = tuple[Windowed, int, int, int, Headers, InputRecord]
"""(window, count, timestamp of the count, timestamp of the latest record, headers, input record)"""


def counts_alone(behavior: StreamAggregate, window: TimeWindows, context: OperatorContext) -> bool:
    """Return whether `behavior` counts in a store of longs that keeps all windows that are not closed.

    The store has a cache, and no other node uses it.
    """
    store = context.store(behavior.store, TimestampedWindowBytes)
    return (
        counts_longs(behavior, store.value_serde)
        and window.size + window.grace < LATEST_TIME
        and store.segments.retention >= window.size + window.grace
    )


class CachedCounts:
    """The counts of a batch that did not leave the cache yet; `general` counts if other stores share it."""

    def __init__(
        self,
        behavior: StreamAggregate,
        window: TimeWindows,
        context: OperatorContext,
        general: AddToWindow,
    ) -> None:
        store = context.store(behavior.store, TimestampedWindowBytes)
        if not isinstance(store.below, Cached):
            raise TypeError(f"{behavior.store} has no cache")
        self._cached = store.below
        self._store = store
        self._window = window
        self._general = general
        self._sends_old = behavior.sends_old
        self._forward = context.forward
        self._current = context.task.current
        self._stream_time = context.task.stream_time
        self._observed = context.clock()
        self._pending: dict[bytes, Pending] = {}
        self._bytes = 0
        self.add_to_window: AddToWindow = self._make_adder()
        self._cached.flush_with(self._flush)

    @property
    def is_usable(self) -> bool:
        return self._cached.is_alone

    def _make_adder(self) -> AddToWindow:
        """Return a function that counts a record in a window."""
        entry_key_of, size, current = self._store.entry_key, self._window.size, self._current
        pending, take, stored_of, general = self._pending, self._pending.pop, self._read_stored, self._general
        stores, cache = self._cached.cache.stores, self._cached.cache

        def add_to_window(  # noqa: PLR0917 - called for each record and window
            key: Value, key_bytes: bytes, value: Value, start: int, timestamp: int, headers: Headers
        ) -> None:
            if len(stores) != 1:
                if pending:  # a processor has opened another store in this batch
                    self._flush_early()
                general(key, key_bytes, value, start, timestamp, headers)
                return
            entry_key = entry_key_of(key_bytes, start)
            known = take(entry_key, None)
            record = current.record
            if known is None:
                window, (count, time) = Windowed(key, start, window_end(start, size)), stored_of(entry_key)
                self._bytes += _entry_bytes(entry_key, record, headers)
            else:
                window, count, time, _, old_headers, old = known
                if headers or old_headers or record[_TOPIC] is not old[_TOPIC]:
                    self._bytes += _entry_bytes(entry_key, record, headers)
                    self._bytes -= _entry_bytes(entry_key, old, old_headers)
            pending[entry_key] = (window, count + 1, max(time, timestamp), timestamp, headers, record)
            if self._bytes > cache.bound:
                self._flush_early()

        return add_to_window

    def count(self, columns: KeyedColumns, deserialize_key: Callable[[bytes], Value]) -> Mapping[str, int]:
        """Count all records; return the numbers of records without a key, and of closed windows."""
        keys = Keys(columns, deserialize_key, self._store.key_serde.serialize)
        has_key = keys.codes != NULL_KEY
        windows = open_windows(columns.times, has_key, self._observed.now, self._window)
        begin, end = 0, len(columns.times)
        windows_per_row = -(-self._window.size // self._window.advance)
        rows = most = max(1, min(_ROWS_AT_ONCE, _WINDOWS_AT_ONCE // windows_per_row))
        while begin < end:
            until = min(begin + rows, end)
            first = self._count_rows(columns, keys, windows, begin, until)
            # If the cache was full, the next rows may fill it as early: then the others were divided in vain.
            rows = most if first == until else min(most, max(_FEWEST_ROWS, 2 * (first - begin)))
            begin = first
        if end:
            self._observed.now = int(windows.observed[-1])
        return {NO_KEY: end - int(has_key.sum()), CLOSED: windows.closed}

    def _count_rows(
        self, columns: KeyedColumns, keys: "Keys", windows: OpenWindows, begin: int, end: int
    ) -> int:
        """Count rows until an update leaves the cache, or all of them; return the first row that is left."""
        touched = touch_windows(keys.codes, windows, columns.times, begin, end)
        starts = (touched.windows * self._window.advance).tolist()
        codes = touched.codes.tolist()
        entry_key_of, pending = self._store.entry_key, self._pending
        serialized = keys.serialized
        entry_keys = [
            entry_key_of(serialized[code], start) for code, start in zip(codes, starts, strict=True)
        ]
        fixed = ENTRY_BYTES + TIMESTAMP + _COUNT + len(columns.topic)
        added = [0 if entry_key in pending else fixed + len(entry_key) for entry_key in entry_keys]
        more = sum(added)
        if self._bytes + more > self._cached.cache.bound:
            full = self._first_full_row(touched, added)
            if full > begin:
                self._count_rows(columns, keys, windows, begin, full)
            self._count_row(columns, keys, windows, full)
            return full + 1
        records = _records_of(columns, touched)
        self._bytes += more
        values, size = keys.values, self._window.size
        take, stored_of = pending.pop, self._read_stored
        for entry_key, code, start, number, latest, record in zip(
            entry_keys, codes, starts, touched.counts.tolist(), touched.latest.tolist(), records, strict=True
        ):
            known = take(entry_key, None)
            if known is None:
                window, (count, time) = Windowed(values[code], start, start + size), stored_of(entry_key)
            else:
                window, count, time = known[:3]
            time = max(time, latest)
            pending[entry_key] = (window, count + number, time, record[_RECORD_TIMESTAMP], (), record)
        return end

    def _first_full_row(self, touched: TouchedWindows, added: Sequence[int]) -> int:
        """Return the first row at which the entries need more bytes than the cache has."""
        order = np.lexsort((touched.windows, touched.first_rows))
        needed = self._bytes + np.cumsum(np.array(added)[order])
        full = np.searchsorted(needed, self._cached.cache.bound, side="right")
        return int(touched.first_rows[order[full]])

    def _count_row(self, columns: KeyedColumns, keys: "Keys", windows: OpenWindows, row: int) -> None:
        (record,) = columns.records(np.array([row]))
        self._current.record = record
        self._stream_time.now = max(self._stream_time.now, int(windows.stream_times[row]))
        code, timestamp = int(keys.codes[row]), record[_RECORD_TIMESTAMP]
        for window in range(int(windows.first[row]), int(windows.last[row]) + 1):
            start = window * self._window.advance
            self.add_to_window(keys.values[code], keys.serialized[code], None, start, timestamp, ())

    def _read_stored(self, entry_key: bytes) -> tuple[int, int]:
        """Return the stored count and its timestamp."""
        stored = self._cached.read_old(entry_key)
        if stored is None:
            return 0, -1
        return int.from_bytes(stored[TIMESTAMP:], "big", signed=True), read_timestamp(stored)

    def _flush(self) -> bool:
        """Write and forward the counts at the end of a batch; return whether there were any."""
        if not self._pending:
            return False
        self._write()
        return True

    def _flush_early(self) -> None:
        current = self._current
        before = current.record, current.context
        try:
            current.context = None
            self._write()
        except Exception as error:  # noqa: BLE001 - expressions and users' classes raise anything
            self._cached.fail(error)
        current.record, current.context = before

    def _write(self) -> None:
        put, read, current = self._cached.put_below, self._cached.read_old, self._current
        forward, sends_old = self._forward, self._sends_old
        counts = list(self._pending.items())
        self._pending.clear()
        self._bytes = 0
        for entry_key, (window, count, time, timestamp, headers, record) in counts:
            stored = read(entry_key) if sends_old else None
            current.record = record
            put(entry_key, with_timestamp(count.to_bytes(_COUNT, "big"), time), (timestamp, headers, record))
            old = None if stored is None else int.from_bytes(stored[TIMESTAMP:], "big", signed=True)
            forward(window, (count, old, True), time, headers)


class Keys:
    """The keys of columns: `values` and `serialized` by code. Keys that are equal when read have one code."""

    def __init__(
        self,
        columns: KeyedColumns,
        deserialize: Callable[[bytes], Value],
        serialize: Callable[[Value], bytes],
    ) -> None:
        self.values = list(map(deserialize, columns.keys))
        self.serialized = list(map(serialize, self.values))
        self.codes = columns.codes
        known: dict[bytes, int] = {}
        first = [known.setdefault(key, code) for code, key in enumerate(self.serialized)]
        if len(known) < len(first):
            self.codes = np.array([*first, NULL_KEY])[columns.codes]


def _records_of(columns: KeyedColumns, touched: TouchedWindows) -> Sequence[InputRecord]:
    """Return the last record of each touched window."""
    rows, which = np.unique(touched.last_rows, return_inverse=True)
    records = columns.records(rows)
    return [records[at] for at in which.tolist()]


def _entry_bytes(entry_key: bytes, record: InputRecord, headers: Headers) -> int:
    size = ENTRY_BYTES + TIMESTAMP + _COUNT + len(entry_key) + len(record[_TOPIC])
    return size + header_bytes(headers) if headers else size
