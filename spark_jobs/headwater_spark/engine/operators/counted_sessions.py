"""Counts of sessions over columns, with a record cache of their own (`engine.session_columns`).

If no other store shares the record cache, and each row writes the entries that it reads, or they were written
since the last flush, entries that were written since then leave the cache last. When they alone need
more bytes than the cache has, the least recently used one leaves, and all of them are flushed. So only the
bytes of these entries are counted, and nothing is kept for each of them: a session that a later row replaces
before the flush is never written.
"""

from collections.abc import Callable, Mapping
from typing import Final

import attrs
import numpy as np

from headwater.model.behaviors import StreamAggregate
from headwater.model.windows import SessionWindow
from headwater_spark.engine.key_counts import LATEST_TIME, NO_KEY, NULL_KEY, KeyedColumns
from headwater_spark.engine.operators.aggregation import counts_longs
from headwater_spark.engine.operators.cached_windows import Keys
from headwater_spark.engine.operators.interface import OperatorContext
from headwater_spark.engine.session_columns import (
    NONE,
    LatestSessions,
    SessionRows,
    SessionTimes,
    SessionUpdates,
    follow_sessions,
    session_updates,
)
from headwater_spark.engine.stores.cached import Cached
from headwater_spark.engine.stores.record_cache import ENTRY_BYTES
from headwater_spark.engine.stores.segments import TIME
from headwater_spark.engine.stores.windows import SessionBytes
from headwater_spark.engine.window_columns import Numbers

_COUNT: Final = 8
_RECORD_TIMESTAMP: Final = 3
_ROWS_AT_ONCE: Final = 65_536
_FEWEST_ROWS: Final = 256


def counts_sessions_alone(behavior: StreamAggregate, window: SessionWindow, context: OperatorContext) -> bool:
    """Return whether `behavior` counts in a store of longs, and times can be computed with."""
    store = context.store(behavior.store, SessionBytes)
    return counts_longs(behavior, store.value_serde) and store.visible_ms + window.gap_ms < LATEST_TIME


@attrs.frozen(eq=False)
class _Batch:
    """The rows with a key, and what is needed to write their sessions. `at` are their rows in `columns`."""

    columns: KeyedColumns
    keys: Keys
    at: Numbers
    rows: SessionRows
    live: Numbers
    """The bytes of the entry of each row."""


class SessionCounts:
    """Counts the sessions of a batch in columns; `_unflushed` is the first row after the last flush."""

    def __init__(self, behavior: StreamAggregate, window: SessionWindow, context: OperatorContext) -> None:
        store = context.store(behavior.store, SessionBytes)
        if not isinstance(store.below, Cached):
            raise TypeError(f"{behavior.store} has no cache")
        self._store = store
        self._cached = store.below
        self._window = window
        self._current = context.task.current
        self._stream_time = context.task.stream_time
        self._observed = context.clock()
        self._batch: _Batch | None = None
        self._unflushed = 0
        self._cached.flush_with(self._flush)

    @property
    def is_usable(self) -> bool:
        return self._cached.is_alone

    def count(
        self, columns: KeyedColumns, deserialize_key: Callable[[bytes], object]
    ) -> Mapping[str, int] | None:
        """Count all records; return the number of records without a key.

        None = nothing was counted: the records have to be counted one by one.
        """
        keys = Keys(columns, deserialize_key, self._store.key_serde.serialize)
        at = np.flatnonzero(keys.codes != NULL_KEY)
        dropped = {NO_KEY: len(keys.codes) - len(at)}
        if not len(at):
            return dropped
        codes, times = keys.codes[at], columns.times[at]
        clock = SessionTimes(
            gap=self._window.gap_ms,
            grace=self._window.grace_ms,
            visible=self._store.visible_ms,
            observed=self._observed.now,
            stored=self._store.observed.now,
        )
        stored = self._latest_sessions(codes, keys)
        rows = None if stored is None else follow_sessions(codes, times, stored, clock)
        if rows is None:
            return None
        fixed = ENTRY_BYTES + len(columns.topic) + 3 * TIME + _COUNT
        lengths = np.array([fixed + len(key) for key in keys.serialized])
        self._batch = _Batch(columns, keys, at, rows, lengths[codes])
        self._unflushed = 0
        self._count(self._batch)
        self._observed.now = max(self._observed.now, int(times.max()))
        return dropped

    def _latest_sessions(self, codes: Numbers, keys: Keys) -> LatestSessions | None:
        """Return the latest session of each key.

        None = a record may connect it with the one before it: then the gap or the grace period was shorter
        when these were written.
        """
        starts, ends, counts = (np.full(len(keys.serialized), NONE) for _ in range(3))
        for code in np.unique(codes).tolist():
            stored = self._store.stored_entries(keys.serialized[code])
            if stored:
                entry_key, value = stored[-1]
                starts[code], ends[code] = _times_of(entry_key)
                counts[code] = int.from_bytes(value, "big", signed=True)
            if len(stored) > 1 and _times_of(stored[-2][0])[1] >= starts[code] - self._window.gap_ms:
                return None
        return LatestSessions(starts=starts, ends=ends, counts=counts)

    def _count(self, batch: _Batch) -> None:
        """Flush the entries each time that they need more bytes than the cache has."""
        rows, bound = batch.rows, self._cached.cache.bound
        more = np.where(rows.begins, batch.live, np.where(rows.ends > rows.before, batch.live - _COUNT, 0))
        first = size = 0
        at_once = _ROWS_AT_ONCE
        while first < len(rows.codes):
            until = min(first + at_once, len(rows.codes))
            is_new = ~rows.begins[first:until] & (rows.previous[first:until] < self._unflushed)
            added = more[first:until] + np.where(is_new, batch.live[first:until], 0)
            sizes = size + np.cumsum(added)
            full = first + int(np.searchsorted(sizes, bound, side="right"))
            if full == until:
                first, size = until, int(sizes[-1])
                continue
            before = int(sizes[full - first] - added[full - first])
            at_once = min(_ROWS_AT_ONCE, max(_FEWEST_ROWS, 2 * (full - self._unflushed)))
            first = self._evict(batch, full, before, deletes_first=bool(is_new[full - first]))
            if first == full:
                more[full] = batch.live[full]
            size = 0

    def _evict(self, batch: _Batch, row: int, size: int, *, deletes_first: bool) -> int:
        """Flush the entries, as `row` fills the cache; return the first row that is not flushed.

        `size` is the number of their bytes before the row. A row deletes the session that it replaces before
        it puts its own: if this fills the cache, its own session is put after the flush.
        """
        rows = batch.rows
        is_alone = rows.starts[row] == rows.ends[row] == rows.times[row]
        between = (
            deletes_first and not is_alone and size + batch.live[row] - _COUNT > self._cached.cache.bound
        )
        updates = session_updates(rows, self._unflushed, row + 1, self._window.gap_ms, evicts=True)
        if between:
            updates = updates.before_put_of(row, rows)
        at = int(batch.at[row])
        self._stream_time.now = max(self._stream_time.now, int(batch.columns.times[: at + 1].max()))
        (self._current.record,) = batch.columns.records(np.array([at]))
        self._write(batch, updates)
        self._unflushed = row + 1
        if between:
            self._unflushed = row
            rows.begins[row] = True
        return self._unflushed

    def _flush(self) -> bool:
        """Write and forward what is left at the end of a batch; return whether there was anything."""
        batch, self._batch = self._batch, None
        if batch is None or self._unflushed == len(batch.rows.codes):
            return False
        end, gap = len(batch.rows.codes), self._window.gap_ms
        self._write(batch, session_updates(batch.rows, self._unflushed, end, gap, evicts=False))
        return True

    def _write(self, batch: _Batch, updates: SessionUpdates) -> None:
        needed, which = np.unique(batch.at[updates.rows], return_inverse=True)
        records = batch.columns.records(needed)
        entry_key_of, serialized = self._store.entry_key, batch.keys.serialized
        codes, counts = batch.rows.codes[updates.rows], batch.rows.counts[updates.rows]
        keys: list[bytes] = []
        values: list[bytes | None] = []
        contexts = []
        for code, start, end, number, is_deleted, record in zip(
            codes.tolist(),
            updates.starts.tolist(),
            updates.ends.tolist(),
            counts.tolist(),
            updates.is_deleted.tolist(),
            which.tolist(),
            strict=True,
        ):
            keys.append(entry_key_of(serialized[code], start, end))
            values.append(None if is_deleted else number.to_bytes(_COUNT, "big", signed=True))
            contexts.append((records[record][_RECORD_TIMESTAMP], (), records[record]))
        self._cached.write_values(keys, values, contexts)


def _times_of(entry_key: bytes) -> tuple[int, int]:
    """Return the start and the end of a session."""
    return int.from_bytes(entry_key[-TIME:], "big"), int.from_bytes(entry_key[-2 * TIME : -TIME], "big")
