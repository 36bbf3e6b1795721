"""Sliding windows of a batch as numbers: read from the store, and written to it when they leave the cache."""

from collections.abc import Sequence
from typing import Final

import attrs
import numpy as np

from headwater.model.behaviors import StreamAggregate
from headwater.model.windows import SlidingWindow
from headwater_spark.engine.key_counts import DirectSink, KeyedColumns
from headwater_spark.engine.operators.aggregation import STORED_COUNT
from headwater_spark.engine.operators.cached_windows import Keys
from headwater_spark.engine.operators.interface import OperatorContext
from headwater_spark.engine.records import Value, Windowed
from headwater_spark.engine.stores.cached import Cached
from headwater_spark.engine.stores.layers import TIMESTAMP
from headwater_spark.engine.stores.record_cache import ENTRY_BYTES
from headwater_spark.engine.stores.segments import SEGMENT, TIME
from headwater_spark.engine.stores.windows import TIME_AND_SEQUENCE, TimestampedWindowBytes
from headwater_spark.engine.window_columns import Numbers

_START_AT: Final = -TIME_AND_SEQUENCE
_SEQUENCE_AT: Final = TIME - TIME_AND_SEQUENCE
_FIRST_SEQUENCE: Final = bytes(-_SEQUENCE_AT)
_NO_SEGMENT: Final = -1
_UNKNOWN: Final = -1
_RECORD_TIMESTAMP: Final = 3


class CountedWindow:
    """A window; `time` is the timestamp of its count. Compared by identity, as it is in dicts."""

    __slots__ = ("count", "key", "start", "time")

    def __init__(self, key: "KeyWindows", start: int, count: int, time: int) -> None:
        self.key, self.start, self.count, self.time = key, start, count, time


@attrs.define(eq=False)
class KeyWindows:
    """The windows of a key by start; `size` is the number of bytes of an entry, `partition` of the sink."""

    value: Value
    serialized: bytes
    size: int
    partition: int | None = _UNKNOWN
    starts: list[int] = attrs.field(factory=list)
    windows: list[CountedWindow] = attrs.field(factory=list)


def known_windows(
    store: TimestampedWindowBytes, topic: str, keys: Keys, first: Numbers
) -> Sequence[KeyWindows]:
    """Return the visible windows of each key, by code, that start from `first` of the key on, in the store.

    Keys without rows have a `first` after all windows. A `first` may be far in the past, with many segments
    after it.
    """
    oldest = max(0, store.observed.now - store.visible_ms)
    fixed = ENTRY_BYTES + len(topic) + SEGMENT + TIME_AND_SEQUENCE + STORED_COUNT.size
    found: list[KeyWindows] = []
    for value, key, start in zip(keys.values, keys.serialized, first.tolist(), strict=True):
        known = KeyWindows(value, key, fixed + len(key))
        found.append(known)
        for entry_key, stored in store.stored_between(key, max(oldest, start), store.observed.now):
            time, count = STORED_COUNT.unpack(stored)
            known.starts.append(int.from_bytes(entry_key[_START_AT:_SEQUENCE_AT], "big"))
            known.windows.append(CountedWindow(known, known.starts[-1], count, time))
    return found


class WindowWriter:
    """Writes and forwards updates of windows, with the rows of the records that caused them."""

    def __init__(
        self,
        behavior: StreamAggregate,
        window: SlidingWindow,
        context: OperatorContext,
        store: TimestampedWindowBytes,
        cached: Cached,
    ) -> None:
        self._store = store
        self._cached = cached
        self._difference = window.difference_ms
        self._sends_old = behavior.sends_old
        self._forward = context.forward
        self._current = context.task.current
        self._task = context.task

    def write(self, columns: KeyedColumns, updates: Sequence[tuple[CountedWindow, int]]) -> None:
        """Write and forward updates in their order; `columns` have their rows."""
        if self._task.direct_sink is not None:
            self._append_records(self._task.direct_sink, updates)
            return
        rows, which = np.unique(np.array([row for _, row in updates]), return_inverse=True)
        records = columns.records(rows)
        put, read, current = self._cached.put_below, self._cached.read_old, self._current
        forward, sends_old, difference = self._forward, self._sends_old, self._difference
        entry_key_of, pack = self._store.entry_key, STORED_COUNT.pack
        for (window, _), at in zip(updates, which.tolist(), strict=True):
            known, start, count, time = window.key, window.start, window.count, window.time
            entry_key, record = entry_key_of(known.serialized, start), records[at]
            stored = read(entry_key) if sends_old else None
            current.record = record
            put(entry_key, pack(time, count), (record[_RECORD_TIMESTAMP], (), record))
            old = None if stored is None else STORED_COUNT.unpack(stored)[1]
            forward(Windowed(known.value, start, start + difference), (count, old, True), time, ())

    def _append_records(self, to: DirectSink, updates: Sequence[tuple[CountedWindow, int]]) -> None:
        """Put the updates into the store, and append their records, without a call for each node."""
        written, pack, interval = (
            self._cached.lowest.written,
            STORED_COUNT.pack,
            self._store.segments.interval,
        )
        append, changelog, partition, sink = to.append, to.changelog, to.partition, to.sink
        segment, prefix = _NO_SEGMENT, b""
        for window, _ in updates:
            known, start, time = window.key, window.start, window.time
            if start // interval != segment:
                segment, prefix = start // interval, self._store.segments.id(start)
            windowed = known.serialized + start.to_bytes(TIME, "big")
            logged = windowed + _FIRST_SEQUENCE
            stored = pack(time, window.count)
            written[prefix + logged] = stored
            count = stored[TIMESTAMP:]
            if changelog is not None:
                append((changelog, partition, logged, count, time, ()))
            if known.partition == _UNKNOWN:
                known.partition = to.partition_of(known.serialized)
            append((sink, known.partition, windowed, count, time, ()))
        latest = max(window.start for window, _ in updates)
        self._store.observed.now = max(self._store.observed.now, latest)
