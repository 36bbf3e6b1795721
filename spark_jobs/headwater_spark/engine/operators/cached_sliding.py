"""Sliding counts with a cache of their own, over the windows of a batch in lists per key.

A key is searched for in the store once per batch. Reads and updates touch the record cache as they do in the
store (`stores.cached`), so the same updates leave it at the same moments.
"""

from bisect import bisect_left, bisect_right
from collections.abc import Callable
from typing import Final

import attrs

from headwater.model.behaviors import StreamAggregate
from headwater.model.windows import SlidingWindow
from headwater_spark.engine.key_counts import CLOSED, NO_KEY_OR_VALUE
from headwater_spark.engine.operators.aggregation import STORED_COUNT
from headwater_spark.engine.operators.cached_sessions import make_putter
from headwater_spark.engine.operators.interface import OperatorContext, Process
from headwater_spark.engine.records import Context, Headers, Value
from headwater_spark.engine.stores.cached import Cached
from headwater_spark.engine.stores.uncounted import KeyRange
from headwater_spark.engine.stores.windows import TimestampedWindowBytes

_START_AT: Final = -12
_SEQUENCE_AT: Final = -4

_Total = tuple[int, int]
"""(count, timestamp of the count)"""


@attrs.define(eq=False)
class SlidingCount:
    """A window in the store; `time` is the timestamp of its count."""

    entry_key: bytes
    start: int
    count: int
    time: int


@attrs.frozen(eq=False)
class KeyWindows:
    """The windows of a key by start, with their starts and entry keys."""

    starts: list[int]
    windows: list[SlidingCount]
    entry_keys: list[bytes]


_Add = Callable[[bytes, KeyWindows, int, int, Context], None]
"""(serialized key, its windows, timestamp, close time, context): adds a record."""
_AddTo = Callable[[bytes, KeyWindows, int, _Total, int, Context], None]
"""(serialized key, its windows, start, total, close time, context): adds a record to a window."""


def cached_sliding_counts(
    behavior: StreamAggregate, window: SlidingWindow, context: OperatorContext, general: Process
) -> Process:
    """Return the function of a count of longs; `general` is called if other stores share the cache."""
    difference, grace = window.difference_ms, window.grace_ms
    store = context.store(behavior.store, TimestampedWindowBytes)
    if not isinstance(store.below, Cached):
        raise TypeError(f"{behavior.store} has no cache")
    stores, serialize_key, current = store.below.cache.stores, store.key_serde.serialize, context.task.current
    windows = BatchWindows(store, store.below)
    of_key, observed, name, drop = windows.of_key, context.clock(), context.node.name, context.task.drop
    add_to = _make_window_adder(windows, difference, lambda: drop(name, CLOSED))
    add = _make_adder(windows, difference, lambda: drop(name, CLOSED), add_to)
    add_early = _make_early_adder(windows, add_to)

    def process(key: Value, value: Value, timestamp: int, headers: Headers) -> None:
        if len(stores) != 1:
            general(key, value, timestamp, headers)
            return
        if key is None or value is None:
            drop(name, NO_KEY_OR_VALUE)
            return
        now = observed.now
        if timestamp > now:
            now = observed.now = timestamp
        close_time = now - grace
        if timestamp + difference < close_time:
            drop(name, CLOSED)
            return
        key_bytes = serialize_key(key)
        known = of_key(key_bytes)
        at = (timestamp, headers, current.record)
        if timestamp < difference:
            add_early(key_bytes, known, timestamp, close_time, at)
        else:
            add(key_bytes, known, timestamp, close_time, at)

    return process


class BatchWindows:
    """The windows of the keys that a batch has searched for."""

    def __init__(self, store: TimestampedWindowBytes, cached: Cached) -> None:
        self._store = store
        self._cached = cached
        self._overlay = store.below.lowest
        self._batch = self._overlay.batch
        self._of_keys: dict[bytes, KeyWindows] = {}
        self._put = make_putter(cached)
        assert cached.touch is not None  # noqa: S101 - it is set
        self.touch = cached.touch

    def of_key(self, key: bytes) -> KeyWindows:
        """Return the windows of a key: all that may be visible."""
        if self._overlay.batch != self._batch:
            self._batch = self._overlay.batch
            self._of_keys.clear()
        known = self._of_keys.get(key)
        if known is None:
            found = [_read_count(*pair) for pair in self._store.stored_entries(key)]
            starts, entry_keys = [each.start for each in found], [each.entry_key for each in found]
            known = self._of_keys[key] = KeyWindows(starts, found, entry_keys)
        return known

    def find(self, known: KeyWindows, first: int, last: int) -> list[SlidingCount]:
        """Return the visible windows that start from `first` to `last`, both inclusive."""
        starts = known.starts
        begin = bisect_left(starts, first)
        found = known.windows[begin : bisect_right(starts, last, begin)]
        oldest = self._store.observed.now - self._store.visible_ms
        if not found or found[0].start >= oldest:
            return found
        holds = self._cached.holds
        return [each for each in found if each.start >= oldest or holds(each.entry_key)]

    def put(self, window: SlidingCount, context: Context) -> None:
        self._put(window.entry_key, STORED_COUNT.pack(window.time, window.count), context)

    def put_at(self, key: bytes, known: KeyWindows, start: int, total: _Total, context: Context) -> None:
        """Put the total of a window of `key`, whose windows are `known`; it may be a new window."""
        starts, windows = known.starts, known.windows
        at = bisect_left(starts, start)
        if at < len(starts) and starts[at] == start:
            window = windows[at]
            window.count, window.time = total
        else:
            window = SlidingCount(self._store.entry_key(key, start), start, *total)
            starts.insert(at, start)
            windows.insert(at, window)
            known.entry_keys.insert(at, window.entry_key)
        self.put(window, context)

    def touch_segment(self, known: KeyWindows, first: int, last: int, *, forward: bool) -> None:
        """Touch the entries that an iterator reads to its end: the segment's (`CacheIteratorWrapper`).

        A segment may have many windows, so nothing is noted for each of them.
        """
        interval = self._store.segments.interval
        if forward:
            last = (last // interval + 1) * interval - 1
        else:
            first = first // interval * interval
        begin = bisect_left(known.starts, first)
        end = bisect_right(known.starts, last, begin)
        if begin < end:
            keys = known.entry_keys
            self._cached.touch_range(KeyRange(keys, keys[begin], keys[end - 1], forward))


def _make_window_adder(windows: BatchWindows, difference: int, drop_closed: Callable[[], None]) -> _AddTo:
    def add_to(  # noqa: PLR0917 - called for each record
        key: bytes, known: KeyWindows, start: int, total: _Total, close_time: int, at: Context
    ) -> None:
        """Add the record to a window with a total, unless the window is closed."""
        if start + difference < close_time:
            drop_closed()
        else:
            windows.put_at(key, known, start, (total[0] + 1, max(total[1], at[0])), at)

    return add_to


def _make_adder(
    windows: BatchWindows, difference: int, drop_closed: Callable[[], None], add_to: _AddTo
) -> _Add:
    find, put, touch = windows.find, windows.put, windows.touch

    def add(key: bytes, known: KeyWindows, time: int, close_time: int, at: Context) -> None:
        """Add a record with a timestamp of at least the difference, from the newest window to the oldest."""
        first = max(0, time - 2 * difference)
        read = list[int]()
        left: _Total | None = None
        right: _Total | None = None
        previous: int | None = None
        left_exists = right_exists = False
        for each in reversed(find(known, first, time + 1)):
            start, count, latest = each.start, each.count, each.time
            touch(each.entry_key)
            read.append(start)
            end = start + difference
            if start == time + 1:
                right_exists = True
                continue
            if end < time:
                left, previous = (count, latest), latest
                break
            if end == time:
                left_exists = True
            elif right is None:
                right = count, latest
            if end < close_time:
                drop_closed()
            else:
                each.count, each.time = count + 1, max(latest, time)
                put(each, at)
            if end == time:
                if latest >= time:
                    return  # an earlier record with this timestamp created all windows
                previous = latest
        else:
            windows.touch_segment(known, first, time + 1, forward=False)
        if previous is not None and previous + 1 not in read and previous + 1 + difference >= time:
            add_to(key, known, previous + 1, (0, time), close_time, at)
        if not left_exists:
            follows = left is not None and previous is not None and time - difference <= previous
            total = (left[0], time) if left is not None and follows else (0, time)
            add_to(key, known, time - difference, total, close_time, at)
        if not right_exists and right is not None and right[1] > time:
            windows.put_at(key, known, time + 1, right, at)

    return add


def _make_early_adder(windows: BatchWindows, add_to: _AddTo) -> _Add:
    find, touch = windows.find, windows.touch

    def add_early(key: bytes, known: KeyWindows, time: int, close_time: int, at: Context) -> None:
        """Add a record with a timestamp below the difference: its left window starts at 0."""
        read = list[int]()
        combined: _Total | None = None
        right: _Total | None = None
        previous: int | None = None
        right_exists = False
        for each in find(known, 0, time + 1):
            start, total = each.start, (each.count, each.time)
            touch(each.entry_key)
            read.append(start)
            if start == 0:
                combined = total
                if each.time < time:
                    previous = each.time
            elif start <= time:
                right = total
                add_to(key, known, start, total, close_time, at)
            else:
                right_exists = True
        windows.touch_segment(known, 0, time + 1, forward=True)
        if right is None and combined is not None and combined[1] > time:
            right = combined
        if not right_exists and right is not None and right[1] > time:
            windows.put_at(key, known, time + 1, right, at)
        if previous is not None and previous + 1 not in read:
            add_to(key, known, previous + 1, (0, time), close_time, at)
        add_to(key, known, 0, combined or (0, time), close_time, at)

    return add_early


def _read_count(entry_key: bytes, value: bytes) -> SlidingCount:
    time, count = STORED_COUNT.unpack(value)
    return SlidingCount(entry_key, int.from_bytes(entry_key[_START_AT:_SEQUENCE_AT], "big"), count, time)
