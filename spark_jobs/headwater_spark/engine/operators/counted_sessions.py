"""Counts of sessions over columns, with a record cache of their own (`engine.session_columns`).

If no other store shares the record cache, and each row writes the entries that it reads, or they were written
since the last flush, entries that were written since then leave the cache last. When they alone need
more bytes than the cache has, the least recently used one leaves, and all of them are flushed. So only the
bytes of these entries are counted, and nothing is kept for each of them: a session that a later row replaces
before the flush is never written. The keys with a record that belongs before their latest session are
processed record by record (`late_sessions`).
"""

from collections import Counter
from collections.abc import Callable, Mapping
from functools import partial
from typing import Final

import attrs
import numpy as np
from numpy.typing import NDArray

from headwater.model.behaviors import StreamAggregate
from headwater.model.windows import SessionWindow
from headwater_spark.engine.key_counts import LATEST_TIME, NO_KEY, NULL_KEY, KeyedColumns
from headwater_spark.engine.operators.aggregation import counts_longs
from headwater_spark.engine.operators.cached_sessions import session_process
from headwater_spark.engine.operators.cached_windows import Keys
from headwater_spark.engine.operators.interface import OperatorContext, Process
from headwater_spark.engine.operators.late_sessions import LateSessions
from headwater_spark.engine.records import Clock
from headwater_spark.engine.session_columns import (
    NONE,
    LatestSessions,
    SessionRows,
    SessionTimes,
    SessionUpdates,
    UnflushedRows,
    follow_sessions,
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
_NEVER: Final = 2**62


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
    late: "_LateRows | None"


@attrs.define(eq=False)
class _LateRows:
    """The rows of keys with late rows; `process` processes one, at the time `now` of its row.

    `until` has the row that replaces the session of each other row.
    """

    sessions: LateSessions
    process: Process
    rows: list[int]
    now: Numbers
    until: Numbers
    processed: int = 0


class SessionCounts:
    """Counts the sessions of a batch in columns; `_unflushed` is the first row after the last flush."""

    def __init__(
        self, behavior: StreamAggregate, window: SessionWindow, context: OperatorContext, general: Process
    ) -> None:
        store = context.store(behavior.store, SessionBytes)
        if not isinstance(store.below, Cached):
            raise TypeError(f"{behavior.store} has no cache")
        self._store = store
        self._cached = store.below
        self._window = window
        self._process_of = partial(session_process, behavior, window, context, general)
        self._current = context.task.current
        self._stream_time = context.task.stream_time
        self._observed = context.clock()
        self._batch: _Batch | None = None
        self._unflushed = 0
        self._cached.flush_with(self._flush)

    @property
    def is_usable(self) -> bool:
        return self._cached.is_alone

    def count(self, columns: KeyedColumns, deserialize_key: Callable[[bytes], object]) -> Mapping[str, int]:
        """Count all records; return the numbers of records without a key, and of closed sessions."""
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
        rows = follow_sessions(codes, times, self._latest_sessions(codes, keys), clock)
        fixed = ENTRY_BYTES + len(columns.topic) + 3 * TIME + _COUNT
        lengths = np.array([fixed + len(key) for key in keys.serialized])
        closed: Counter[str] = Counter()
        late = None if rows.is_late is None else self._late_rows(rows, rows.is_late, columns.topic, closed)
        self._batch = _Batch(columns, keys, at, rows, lengths[codes], late)
        self._unflushed = 0
        self._count(self._batch)
        self._observed.now = max(self._observed.now, int(times.max()))
        return {**dropped, **closed}

    def _late_rows(
        self, rows: SessionRows, is_late: NDArray[np.bool_], topic: str, dropped: Counter[str]
    ) -> _LateRows:
        def drop(_node: str, reason: str) -> None:
            dropped[reason] += 1

        sessions = LateSessions(
            self._store, self._cached, Clock(), drop, topic=topic, make_room=self._make_room_for_late
        )
        is_replacing = ~(rows.begins | is_late)
        until = np.full(len(rows.codes), _NEVER)
        until[rows.previous[is_replacing]] = np.flatnonzero(is_replacing)  # NONE: no row reads the last one
        return _LateRows(
            sessions,
            self._process_of(sessions),
            np.flatnonzero(is_late).tolist(),
            np.maximum.accumulate(np.maximum(rows.times, self._observed.now)),
            until,
        )

    def _latest_sessions(self, codes: Numbers, keys: Keys) -> LatestSessions:
        """Return the latest session of each key."""
        starts, ends, counts = (np.full(len(keys.serialized), NONE) for _ in range(3))
        are_close = np.zeros(len(keys.serialized), bool)
        oldest = self._store.observed.now - self._store.visible_ms
        for code in np.unique(codes).tolist():
            stored = self._store.stored_entries(keys.serialized[code])
            if stored:
                entry_key, value = stored[-1]
                starts[code], ends[code] = _times_of(entry_key)
                counts[code] = int.from_bytes(value, "big", signed=True)
            if len(stored) > 1:
                end_before = _times_of(stored[-2][0])[1]
                are_close[code] = end_before >= max(oldest, starts[code] - self._window.gap_ms)
        return LatestSessions(starts=starts, ends=ends, counts=counts, are_close=are_close)

    def _count(self, batch: _Batch) -> None:
        """Flush the entries each time that they need more bytes than the cache has."""
        rows, bound, late = batch.rows, self._cached.cache.bound, batch.late
        more = np.where(rows.begins, batch.live, np.where(rows.ends > rows.before, batch.live - _COUNT, 0))
        first = size = 0
        at_once = _ROWS_AT_ONCE
        while first < len(rows.codes):
            until = min(first + at_once, len(rows.codes))
            is_new = ~rows.begins[first:until] & (rows.previous[first:until] < self._unflushed)
            added = more[first:until] + np.where(is_new, batch.live[first:until], 0)
            if rows.is_late is not None:
                added[rows.is_late[first:until]] = 0
            sizes = size + np.cumsum(added)
            if late is not None:
                until = self._count_late(batch, late, first, sizes)
                if self._unflushed == until:
                    first, size = until, 0
                    continue
                bound = self._cached.cache.bound - late.sessions.bytes
            full = first + int(np.searchsorted(sizes[: until - first], bound, side="right"))
            if full == until:
                first, size = until, int(sizes[until - first - 1])
                continue
            before = int(sizes[full - first] - added[full - first])
            is_alone = rows.starts[full] == rows.ends[full] == rows.times[full]
            is_between = (
                bool(is_new[full - first])
                and not is_alone
                and before + int(batch.live[full]) - _COUNT > bound
            )
            unflushed = self._unflushed
            if not self._make_room(batch, full, before_put=is_between):
                continue
            at_once = min(_ROWS_AT_ONCE, max(_FEWEST_ROWS, 2 * (full - unflushed)))
            if is_between:
                self._unflushed = full
                rows.begins[full] = True
                more[full] = batch.live[full]
            first, size = self._unflushed, 0

    def _count_late(self, batch: _Batch, late: _LateRows, first: int, sizes: Numbers) -> int:
        """Count rows of keys with late rows, from `first` on; return the first row that is left.

        `sizes` are the bytes of the updates of all other keys after each row. It ends before the row at which
        the cache is full, and after a row that has filled it.
        """
        sessions, keys = late.sessions, batch.keys
        end = first + len(sizes)
        while late.processed < len(late.rows) and (row := late.rows[late.processed]) < end:
            others = int(sizes[row - first])
            if others + sessions.bytes > self._cached.cache.bound:
                return row
            late.processed += 1
            sessions.row, sessions.others, sessions.observed.now = row, others, int(late.now[row])
            key = keys.values[batch.rows.codes[row]]
            late.process(key, None, int(batch.rows.times[row]), ())
            if self._unflushed > row:
                return row + 1
        return end

    def _make_room_for_late(self, row: int) -> None:
        assert self._batch is not None  # noqa: S101 - its rows are counted
        self._make_room(self._batch, row, before_put=False)

    def _make_room(self, batch: _Batch, row: int, *, before_put: bool) -> bool:
        """Let the least recently used entry leave, as `row` fills the cache; return whether all are flushed.

        A row deletes the session that it replaces before it puts its own. `before_put`: this has filled the
        cache, so its own session is put after the flush.
        """
        rows, late = batch.rows, batch.late
        unflushed = UnflushedRows.between(rows, self._unflushed, row + 1)
        evicted = unflushed.least_recently_used(self._window.gap_ms)
        oldest = None if late is None else late.sessions.oldest()
        if late is not None and oldest is not None and (evicted is None or oldest[0] < evicted.last_use):
            if not late.sessions.evict(oldest[1]):
                return False
            evicted = None
        updates = unflushed.updates(evicted)
        if before_put:
            updates = updates.before_put_of(row, rows)
        at = int(batch.at[row])
        self._stream_time.now = max(self._stream_time.now, int(batch.columns.times[: at + 1].max()))
        (self._current.record,) = batch.columns.records(np.array([at]))
        self._write(batch, updates)
        if late is not None:
            are_kept = ~updates.is_deleted
            are_kept[: updates.evicted] = False
            puts = updates.rows[are_kept]
            late.sessions.note_flush(puts, batch.live[puts], late.until[puts])
        self._unflushed = row + 1
        return True

    def _flush(self) -> bool:
        """Write and forward what is left at the end of a batch; return whether there was anything."""
        batch, self._batch = self._batch, None
        if batch is None or (self._unflushed == len(batch.rows.codes) and batch.late is None):
            return False
        unflushed = UnflushedRows.between(batch.rows, self._unflushed, len(batch.rows.codes))
        return self._write(batch, unflushed.updates(None))

    def _write(self, batch: _Batch, updates: SessionUpdates) -> bool:
        """Write and forward `updates`, and updates of keys with late rows; return whether there are any."""
        entry_key_of, serialized = self._store.entry_key, batch.keys.serialized
        rows, counts = updates.rows, batch.rows.counts[updates.rows]
        keys: list[bytes] = []
        values: list[bytes | None] = []
        for code, start, end, number, is_deleted in zip(
            batch.rows.codes[rows].tolist(),
            updates.starts.tolist(),
            updates.ends.tolist(),
            counts.tolist(),
            updates.is_deleted.tolist(),
            strict=True,
        ):
            keys.append(entry_key_of(serialized[code], start, end))
            values.append(None if is_deleted else number.to_bytes(_COUNT, "big", signed=True))
        if batch.late is not None:
            rows, keys, values = batch.late.sessions.merge_updates(updates, keys, values)
        needed, which = np.unique(batch.at[rows], return_inverse=True)
        records = batch.columns.records(needed)
        contexts = [(records[at][_RECORD_TIMESTAMP], (), records[at]) for at in which.tolist()]
        self._cached.write_values(keys, values, contexts)
        return bool(keys)


def _times_of(entry_key: bytes) -> tuple[int, int]:
    """Return the start and the end of a session."""
    return int.from_bytes(entry_key[-TIME:], "big"), int.from_bytes(entry_key[-2 * TIME : -TIME], "big")
