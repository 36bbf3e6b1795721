"""Sliding counts over columns, with a record cache of their own: windows are numbers until they are flushed.

Follows `KStreamSlidingWindowAggregate`. Each row reads and updates the windows of its key, and the entries of
the cache leave it as in `stores.record_cache`: the least recently used one first. But an update is only noted
with its row. Bytes, contexts and input records are created once for each window that is flushed.
"""

from bisect import bisect_left, bisect_right
from collections import OrderedDict
from collections.abc import Callable, Mapping, Sequence
from typing import Final

import numpy as np

from headwater.model.behaviors import StreamAggregate
from headwater.model.windows import SlidingWindow
from headwater_spark.engine.key_counts import CLOSED, LATEST_TIME, NO_KEY_OR_VALUE, NULL_KEY, KeyedColumns
from headwater_spark.engine.operators.cached_windows import Keys
from headwater_spark.engine.operators.interface import OperatorContext
from headwater_spark.engine.operators.sliding_windows import (
    CountedWindow,
    KeyWindows,
    WindowWriter,
    known_windows,
)
from headwater_spark.engine.records import Value
from headwater_spark.engine.stores.cached import Cached
from headwater_spark.engine.stores.windows import TimestampedWindowBytes
from headwater_spark.engine.window_columns import Numbers

_NONE: Final = -1
_MOST_TOUCHED_PER_ROW: Final = 16
"""A row that is far from the others of its key uses all entries of the key. If rows use more on average, they
are counted one by one: then such entries are noted together."""


_Total = tuple[int, int]
"""(count, timestamp of the count)"""
_Add = Callable[[KeyWindows, int, int, int], int]
"""(windows of a key, timestamp, close time, row): adds a record; returns the number of closed windows."""


class SlidingCounts:
    """Counts the sliding windows of a batch in columns.

    `_entries` are the entries of the cache, the least recently used one in front, and `_updates` the windows
    that were not flushed yet, with the rows of their latest updates, in the order of these.
    """

    def __init__(self, behavior: StreamAggregate, window: SlidingWindow, context: OperatorContext) -> None:
        store = context.store(behavior.store, TimestampedWindowBytes)
        if not isinstance(store.below, Cached):
            raise TypeError(f"{behavior.store} has no cache")
        self._store = store
        self._cached = store.below
        self._difference, self._grace = window.difference_ms, window.grace_ms
        self._current = context.task.current
        self._stream_time = context.task.stream_time
        self._observed = context.clock()
        self._columns: KeyedColumns | None = None
        self._keys: Sequence[KeyWindows] = ()
        self._entries: OrderedDict[CountedWindow, int] = OrderedDict()
        self._updates: dict[CountedWindow, int] = {}
        self._bytes = 0
        self._writer = WindowWriter(behavior, window, context, store, store.below)
        self._cached.flush_with(self._flush)

    @property
    def is_usable(self) -> bool:
        return self._cached.is_alone and self._difference < LATEST_TIME

    def count(
        self, columns: KeyedColumns, deserialize_key: Callable[[bytes], Value]
    ) -> Mapping[str, int] | None:
        """Count all records; return the numbers of dropped records by reason.

        None = nothing was counted: open windows begin before the time 0, or rows use many entries.
        """
        keys = Keys(columns, deserialize_key, self._store.key_serde.serialize)
        codes = (
            keys.codes
            if columns.without_value is None
            else np.where(columns.without_value, NULL_KEY, keys.codes)
        )
        rows = np.flatnonzero(codes != NULL_KEY)
        dropped = {NO_KEY_OR_VALUE: len(columns.times) - len(rows)}
        if not len(rows):
            return dropped
        now = np.maximum.accumulate(np.maximum(columns.times[rows], self._observed.now))
        close_times = now - self._grace
        is_open = columns.times[rows] + self._difference >= close_times
        closed = len(rows) - int(is_open.sum())
        rows, close_times = rows[is_open], close_times[is_open]
        codes, times = codes[rows], columns.times[rows]
        if len(rows) and not self._can_count(codes, times):
            return None
        self._observed.now = int(now[-1])
        if not len(rows):
            return dropped | {CLOSED: closed}
        self._columns = columns
        first = np.full(len(keys.serialized), LATEST_TIME)
        np.minimum.at(first, codes, times)
        self._keys = known_windows(self._store, columns.topic, keys, first - 2 * self._difference)
        each = (column.tolist() for column in (codes, times, close_times, rows))
        known, add = self._keys, self._make_adder()
        for code, time, close_time, row in zip(*each, strict=True):
            closed += add(known[code], time, close_time, row)
        return dropped | {CLOSED: closed}

    def _can_count(self, codes: Numbers, times: Numbers) -> bool:
        """Return whether no row has a window before the time 0, and rows use few entries.

        A row that finds no window before it uses all entries of its key in a segment. It finds one if another
        row of the batch is at most the difference before it.
        """
        if times.min() < self._difference:
            return False
        order = np.argsort(codes, kind="stable")
        code, time = codes[order], times[order]
        is_first = np.ones(len(code), bool)
        np.not_equal(code[1:], code[:-1], out=is_first[1:])
        heads = np.maximum.accumulate(np.where(is_first, np.arange(len(code)), 0))
        rows_before = np.arange(len(code)) - heads
        if (np.diff(time)[~is_first[1:]] < 0).any():
            by_time = np.lexsort((time, code))
            time, rows_before = time[by_time], rows_before[by_time]
        reads_segment = is_first | (np.diff(time, prepend=time[:1]) > self._difference)
        touched = 2 * int(rows_before[reads_segment].sum())
        return touched <= _MOST_TOUCHED_PER_ROW * len(code)

    def _make_adder(self) -> _Add:
        difference, entries, updates = self._difference, self._entries, self._updates
        find, put, create = self._find, self._put, self._create
        touch, forget = entries.move_to_end, updates.pop

        def add(known: KeyWindows, time: int, close_time: int, row: int) -> int:
            """Add a row to the windows of its key, from the newest to the oldest."""
            found = find(known, time)
            left: CountedWindow | None = None
            right: tuple[int, int] | None = None
            previous, closed = _NONE, 0
            left_exists = right_exists = False
            for each in found:
                is_cached = each in entries
                if is_cached:
                    touch(each)
                if each.start > time:
                    right_exists = True
                    continue
                end, latest = each.start + difference, each.time
                if end < time:
                    left, previous = each, latest
                    break
                if end == time:
                    left_exists = True
                elif right is None:
                    right = each.count, latest
                if end < close_time:
                    closed += 1
                else:
                    each.count += 1
                    each.time = max(latest, time)
                    if is_cached:
                        forget(each, None)
                        updates[each] = row
                    else:
                        put(each, row)
                if end == time:
                    if latest >= time:
                        return closed  # an earlier record with this timestamp created all windows
                    previous = latest
            else:
                self._touch_segment(known, max(0, time - 2 * difference), time + 1)
            if (
                previous != _NONE
                and previous + 1 + difference >= time
                and not _contains_window(found, previous + 1)
            ):
                closed += create(known, previous + 1, (1, time), close_time, row)
            if not left_exists:
                follows = left is not None and time - difference <= previous
                count = left.count + 1 if left is not None and follows else 1
                closed += create(known, time - difference, (count, time), close_time, row)
            if not right_exists and right is not None and right[1] > time:
                self._put_at(known, time + 1, right, row)
            return closed

        return add

    def _find(self, known: KeyWindows, time: int) -> list[CountedWindow]:
        """Return the visible windows that a record at `time` reads, the newest first."""
        starts, windows = known.starts, known.windows
        end = bisect_right(starts, time + 1)
        found = windows[bisect_left(starts, time - 2 * self._difference, 0, end) : end]
        found.reverse()
        oldest = self._store.observed.now - self._store.visible_ms
        if found and found[-1].start < oldest:
            found = [each for each in found if each.start >= oldest or each in self._entries]
        return found

    def _create(self, known: KeyWindows, start: int, total: _Total, close_time: int, row: int) -> int:
        """Put the total of a window, unless it is closed; return the number of closed windows."""
        if start + self._difference < close_time:
            return 1
        self._put_at(known, start, total, row)
        return 0

    def _put_at(self, known: KeyWindows, start: int, total: _Total, row: int) -> None:
        """Put the total of a window; it may be a new window."""
        starts, windows = known.starts, known.windows
        at = bisect_left(starts, start)
        if at < len(starts) and starts[at] == start:
            window = windows[at]
            window.count, window.time = total
        else:
            window = CountedWindow(known, start, *total)
            starts.insert(at, start)
            windows.insert(at, window)
        self._put(window, row)

    def _put(self, window: CountedWindow, row: int) -> None:
        """Note an update of `row`, and make room for it."""
        entries, updates = self._entries, self._updates
        updates.pop(window, None)
        updates[window] = row
        if window in entries:
            entries.move_to_end(window)
            return
        entries[window] = size = window.key.size
        self._bytes += size
        bound = self._cached.cache.bound
        while self._bytes > bound and entries:
            oldest, size = entries.popitem(last=False)
            if oldest in updates:
                self._flush_early(oldest, row)
            self._bytes -= size

    def _touch_segment(self, known: KeyWindows, first: int, last: int) -> None:
        """Touch the entries that an iterator reads to its end, backward (`CacheIteratorWrapper`)."""
        interval = self._store.segments.interval
        begin = bisect_left(known.starts, first // interval * interval)
        entries = self._entries
        for window in reversed(known.windows[begin : bisect_right(known.starts, last, begin)]):
            if window in entries:
                entries.move_to_end(window)

    def _flush(self) -> bool:
        """Write and forward the updates at the end of a batch; return whether there were any."""
        columns, updates = self._columns, list(self._updates.items())
        for known in self._keys:
            known.windows.clear()  # windows refer to their key
        self._columns, self._keys, self._bytes = None, (), 0
        self._updates.clear()
        self._entries.clear()
        if columns is None or not updates:
            return False
        self._writer.write(columns, updates)
        return True

    def _flush_early(self, evicted: CountedWindow, row: int) -> None:
        """Write and forward all updates, first the entry that has left the cache: `row` has filled it."""
        columns, updates, current = self._columns, self._updates, self._current
        assert columns is not None  # noqa: S101 - its rows are counted
        self._stream_time.now = max(self._stream_time.now, int(columns.times[: row + 1].max()))
        (current.record,) = columns.records(np.array([row]))
        first = (evicted, updates.pop(evicted))
        others = list(updates.items())
        updates.clear()
        before = current.record, current.context
        try:
            current.context = None
            self._writer.write(columns, [first, *others])
        except Exception as error:  # noqa: BLE001 - expressions and users' classes raise anything
            self._cached.fail(error)
        current.record, current.context = before


def _contains_window(windows: Sequence[CountedWindow], start: int) -> bool:
    """Return whether one of the windows, the latest first, starts at `start`."""
    for window in windows:
        if window.start <= start:
            return window.start == start
    return False
