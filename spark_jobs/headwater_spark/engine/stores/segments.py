"""What window and session stores share: segments of time, and the search for entries (`AbstractSegments`).

An entry's key in the store is `segment(8) ‖ key ‖ suffix`; the suffix starts with the entry's time. Without
the segment, it is the key in the changelog topic. An entry is visible while its time is less than the
retention behind the store's time. Segments decide when expired entries are deleted, and in which order
entries of several keys are read: by segment, then key, then time.
"""

from bisect import bisect_left, bisect_right
from collections.abc import Callable, Iterator
from itertools import islice

from headwater_spark.engine.program_interface import Serde
from headwater_spark.engine.records import UNSET, Clock, Context
from headwater_spark.engine.stores.cached import Cached
from headwater_spark.engine.stores.interfaces import Pair
from headwater_spark.engine.stores.layers import Get, Put, StoreBytes
from headwater_spark.engine.stores.overlay import Overlay
from headwater_spark.engine.stores.uncounted import KeyRange

SEGMENT, TIME = 8, 8
LAST_TIME = 2**63 - 1
_MIN_INTERVAL_MS = 60_000
_TIME_INDEX = b"\xff"


class Segments:
    """Segments of max(retention / 2, one minute). Their ids are the first 8 bytes of entry keys."""

    def __init__(self, retention_ms: int) -> None:
        self.retention = retention_ms
        self.interval = max(retention_ms // 2, _MIN_INTERVAL_MS)
        self._expired = b""

    def id(self, time: int) -> bytes:
        return (time // self.interval).to_bytes(SEGMENT, "big")

    def bounds(self, first: int, last: int) -> tuple[bytes, bytes]:
        """Return the range of entry keys (end exclusive) that has all times from `first` to `last`."""
        return self.id(first), (last // self.interval + 1).to_bytes(SEGMENT, "big")

    def first_live(self, observed: int) -> int:
        """Return the first time of the oldest segment that is kept."""
        return max(0, observed - self.retention) // self.interval * self.interval

    def expire(self, overlay: Overlay, observed: int) -> None:
        """Delete the segments before the first live one."""
        first_live = self.id(self.first_live(observed))
        if first_live > self._expired:
            for entry_key, _ in list(overlay.range(self._expired, first_live)):
                overlay.delete(entry_key)
            self._expired = first_live


class KeyIndex:
    """The entry keys of the keys that a batch searches for.

    Sliding and session windows and joins read several entries of the key of each record. The first search for
    a key in a batch reads the store below and what the batch has written so far; from then on the index is
    kept up to date as the batch writes.

    Args:
        stored: The entries below any cache. All of them that are visible are in a few segments.
        cached: What the batch has put into the cache; None = there is no cache. These entries are visible at
            any age, so they may be in any number of segments.
        suffix: The length of an entry key's suffix.
        times: Returns the first visible and the largest time of stored entries.
    """

    __slots__ = (
        "_all",
        "_cached",
        "_entry_keys",
        "_grouped",
        "_segments",
        "_stored",
        "_suffix",
        "_times",
        "_written",
    )

    def __init__(
        self,
        stored: Overlay,
        cached: dict[bytes, bytes | None] | None,
        segments: Segments,
        suffix: int,
        times: Callable[[], tuple[int, int]],
    ) -> None:
        self._stored = stored
        self._cached = cached
        self._segments = segments
        self._suffix = suffix
        self._times = times
        self._entry_keys: dict[bytes, list[bytes]] = {}
        self._all: dict[bytes, list[bytes]] = {}
        """With a cache: deleted entries are in it, too, as they remain in the cache."""
        self._written: dict[bytes, list[bytes]] = {}
        self._grouped = 0
        """The number of entries in `_cached` that are in `_written`."""

    def add(self, key: bytes, entry_key: bytes) -> None:
        """Register an entry that is written."""
        known = self._entry_keys.get(key)
        if known is not None and _insert_in_order(known, entry_key) and self._cached is not None:
            _insert_in_order(self._all[key], entry_key)

    def remove(self, key: bytes, entry_key: bytes) -> None:
        """Register a deletion: no later search reads the entry again."""
        known = self._entry_keys.get(key)
        if known is None:
            return
        at = bisect_left(known, entry_key)
        if at < len(known) and known[at] == entry_key:
            del known[at]
        if self._cached is not None:
            _insert_in_order(self._all[key], entry_key)

    def find(self, key: bytes, low: bytes, high: bytes | None) -> list[bytes]:
        """Return the entry keys of `key` with suffixes from `low` to `high`, both inclusive, in order.

        `high` None = all from `low` on.
        """
        known = self._entry_keys.get(key)
        if known is None:
            known = self._read(key)
        if not known:
            return known
        first = bisect_left(known, self._bound(key, low))
        return known[first : self._end(known, key, high, first)]

    def cached_between(self, key: bytes, low: bytes, high: bytes | None) -> KeyRange | None:
        """Return where the entries of a cache are, deleted ones included, for a `key` that was searched for.

        `low` and `high` are as in `find`; None = there is no such entry.
        """
        known = self._all[key]
        first = bisect_left(known, self._bound(key, low))
        end = self._end(known, key, high, first)
        return KeyRange(known, known[first], known[end - 1]) if first < end else None

    def _end(self, known: list[bytes], key: bytes, high: bytes | None, first: int) -> int:
        return len(known) if high is None else bisect_right(known, self._bound(key, high), first)

    def _bound(self, key: bytes, suffix: bytes) -> bytes:
        """Return an entry key of a suffix, which may be only a time; all suffixes of a key are in order."""
        return self._segments.id(int.from_bytes(suffix[:TIME], "big")) + key + suffix

    def clear(self) -> None:
        self._entry_keys.clear()
        self._all.clear()
        self._written.clear()
        self._grouped = 0

    def _read(self, key: bytes) -> list[bytes]:
        found = [entry_key for entry_key, _ in self.stored_entries(key)]
        if self._cached is not None:
            self._group_written(self._cached)
            written = self._written.pop(key, None)
            every = self._all[key] = found if written is None else sorted({*found, *written})
            cached = self._cached
            found = [entry_key for entry_key in every if cached.get(entry_key, b"") is not None]
        self._entry_keys[key] = found
        return found

    def stored_entries(self, key: bytes) -> list[Pair]:
        """Return the entries of `key` below any cache that may be visible, in order."""
        interval = self._segments.interval
        first, last = self._times()
        return self.stored_between(key, first // interval * interval, (last // interval + 1) * interval - 1)

    def stored_between(self, key: bytes, first: int, last: int) -> list[Pair]:
        """Return the entries of `key` below any cache with times from `first` to `last`, both inclusive."""
        # The few live segments are read one by one; the ranges may contain longer keys.
        found: list[Pair] = []
        length = SEGMENT + len(key) + self._suffix
        interval = self._segments.interval
        for number in range(first // interval, last // interval + 1):
            prefix = number.to_bytes(SEGMENT, "big") + key
            low, high = max(first, number * interval), min(last + 1, (number + 1) * interval)
            bounds = (prefix + time.to_bytes(TIME, "big") for time in (low, high))
            found += (entry for entry in self._stored.range(*bounds) if len(entry[0]) == length)
        return found

    def _group_written(self, cached: dict[bytes, bytes | None]) -> None:
        """Group what was written since the last call by key. Keys are never removed from `cached`."""
        new = len(cached) - self._grouped
        if not new:
            return
        self._grouped += new
        end = -self._suffix
        for entry_key in islice(reversed(cached), new):
            key = entry_key[SEGMENT:end]
            if key not in self._entry_keys:
                self._written.setdefault(key, []).append(entry_key)


def _insert_in_order(known: list[bytes], entry_key: bytes) -> bool:
    """Insert an entry key in order; return False if it is there already."""
    if not known or entry_key > known[-1]:
        known.append(entry_key)
        return True
    at = bisect_left(known, entry_key)
    if known[at] == entry_key:
        return False
    known.insert(at, entry_key)
    return True


class TimeIndex:
    """The entries of a store by time, for emission on close.

    Kafka Streams uses other stores for it (`RocksDBTimeOrderedWindowStore`, `…SessionStore`). Here each entry
    has a second, empty entry `255 ‖ suffix ‖ key` in the same store; no segment id starts with 255. Entries
    themselves are read with `read`: they may be in a cache.
    """

    __slots__ = ("_overlay", "_read", "_segments", "_suffix")

    def __init__(self, overlay: Overlay, read: Get, segments: Segments, suffix: int) -> None:
        self._overlay = overlay
        self._read = read
        self._segments = segments
        self._suffix = suffix

    def put(self, entry_key: bytes, *, exists: bool) -> None:
        """Register a write; `exists` False = a deletion."""
        indexed = _TIME_INDEX + entry_key[-self._suffix :] + entry_key[SEGMENT : -self._suffix]
        self._overlay.written[indexed] = b"" if exists else None

    def entries_between(self, first: int, last: int) -> Iterator[tuple[bytes, bytes]]:
        """Yield entry keys and values from time `first` to `last`, both inclusive, by suffix, then key."""
        get, suffix = self._read, self._suffix
        for indexed, _ in self._overlay.range(_indexed_time(first), _indexed_time(last + 1)):
            found = indexed[1 : 1 + suffix]
            segment = self._segments.id(int.from_bytes(found[:TIME], "big"))
            entry_key = segment + indexed[1 + suffix :] + found
            value = get(entry_key)
            if value is not None:
                yield entry_key, value

    def expire(self, first_live: int) -> None:
        """Delete the index of entries before `first_live`."""
        for indexed, _ in list(self._overlay.range(_TIME_INDEX, _indexed_time(first_live))):
            self._overlay.delete(indexed)


def _indexed_time(time: int) -> bytes:
    return _TIME_INDEX + time.to_bytes(TIME, "big")


class SegmentedStore:
    """The base of window and session stores.

    With a record cache, `observed` advances when updates are written to the store below. Entries of the cache
    are visible at any time (`CachingWindowStore`, `CachingSessionStore`).

    Args:
        suffix: The length of an entry key's suffix.
        observed: The largest time ever written.
        visible_ms: How far behind `observed` an entry is still visible.
        emits_on_close: Entries are needed in the order of time, too.
    """

    def __init__(
        self,
        below: StoreBytes,
        key: Serde,
        value: Serde,
        context: Callable[[], Context],
        *,
        suffix: int,
        retention_ms: int,
        visible_ms: int,
        observed: Clock,
        emits_on_close: bool,
    ) -> None:
        self.below = below
        self.key_serde = key
        self.value_serde = value
        self.segments = Segments(retention_ms)
        self.observed = observed
        self._context = context
        self._suffix = suffix
        self.visible_ms = visible_ms
        cached = below.overlay.written if isinstance(below, Cached) else None
        self._index = KeyIndex(below.lowest, cached, self.segments, suffix, self._stored_times)
        self._by_time: TimeIndex | None = None
        if emits_on_close:
            self._by_time = TimeIndex(below.lowest, below.overlay.get, self.segments, suffix)
        self._cached = below if isinstance(below, Cached) else None
        self._first_put, self._last_put = LAST_TIME, UNSET
        """The smallest and largest time that was put into the cache in this batch."""
        if self._cached is not None:
            logged = self._cached.below
            self._cached.write_with(self._observing(logged.put), self._reading_old(logged.overlay.get))

    def restore(self, key: bytes, value: bytes | None) -> None:
        """Apply a record of the changelog topic; the value as the store has it."""
        time = int.from_bytes(key[-self._suffix :][:TIME], "big")
        self.observed.now = max(self.observed.now, time)
        entry_key = self.segments.id(time) + key
        if self._by_time is not None:
            self._by_time.put(entry_key, exists=value is not None)
        self.below.lowest.written[entry_key] = value

    def put_entry(
        self, key: bytes, entry_key: bytes, value: bytes | None, time: int, context: Context
    ) -> None:
        """Put the value of an entry of `key` at `time`; `entry_key` contains both. None = delete it."""
        if self._cached is None:
            self.observed.now = max(self.observed.now, time)
        elif time > self._last_put > UNSET:
            self._last_put = time
        elif time < self._first_put:
            self._observe_cached(time)
        if value is not None:
            self._index.add(key, entry_key)
        else:
            self._index.remove(key, entry_key)
        if self._by_time is not None:
            self._by_time.put(entry_key, exists=value is not None)
        self.below.put(entry_key, value, context)

    def stored_entries(self, key: bytes) -> list[Pair]:
        """Return the entries of `key` below any cache that may be visible, in order."""
        return self._index.stored_entries(key)

    def stored_between(self, key: bytes, first: int, last: int) -> list[Pair]:
        """Return the entries of `key` below any cache with times from `first` to `last`, both inclusive."""
        return self._index.stored_between(key, first, last)

    def expire(self) -> None:
        """Delete segments of which no entry is visible, at the end of a batch."""
        self._index.clear()
        self._first_put, self._last_put = LAST_TIME, UNSET
        self.segments.expire(self.below.lowest, self.observed.now)
        if self._by_time is not None:
            self._by_time.expire(self.segments.first_live(self.observed.now))

    def _observe_cached(self, time: int) -> None:
        """Register a time that is put into the cache."""
        self._first_put = min(self._first_put, time)
        self._last_put = max(self._last_put, time)

    def _observing(self, put_below: Put) -> Put:
        """Return a function that writes an update of the cache, and registers its time."""
        observed, first, last = self.observed, -self._suffix, TIME - self._suffix
        latest = b""

        def put(entry_key: bytes, value: bytes | None, context: Context) -> None:
            nonlocal latest
            time = entry_key[first:last]
            if time > latest:
                latest = time
                observed.now = max(observed.now, int.from_bytes(time, "big"))
            put_below(entry_key, value, context)

        return put

    def _reading_old(self, read_below: Get) -> Get:
        """Return a function that reads a value below the cache, if it is visible."""

        def read_old(entry_key: bytes) -> bytes | None:
            value = read_below(entry_key)
            if value is None or self._time_of(entry_key) < self._first_visible(0):
                return None
            return value

        return read_old

    def _time_of(self, entry_key: bytes) -> int:
        return int.from_bytes(entry_key[-self._suffix : TIME - self._suffix], "big")

    def _is_cached(self, entry_key: bytes) -> bool:
        """Return whether an entry is in the cache: then it is visible, however old it is."""
        return self._cached is not None and self._cached.holds(entry_key)

    def _entry_keys(self, key: bytes, first: int, high: bytes | None) -> list[bytes]:
        """Return the visible entry keys of `key` from time `first` to suffix `high`, None = the last one."""
        oldest = max(self.observed.now - self.visible_ms, 0)
        low = max(first, oldest if self._cached is None else 0).to_bytes(TIME, "big")
        found = self._index.find(key, low, high)
        if self._cached is None or first >= oldest or not found or self._time_of(found[0]) >= oldest:
            return found
        holds, time_of = self._cached.holds, self._time_of
        return [entry_key for entry_key in found if time_of(entry_key) >= oldest or holds(entry_key)]

    def _touch(self, key: bytes, first: int, high: bytes | None, *, forward: bool = True) -> None:
        """Make the entries of a cache the latest ones, as an iterator of Kafka Streams that reads them does.

        It reads deleted ones, too. Call it after `_entry_keys` with the same key.
        """
        if self._cached is not None:
            low = first.to_bytes(TIME, "big")
            found = self._index.cached_between(key, low, high)
            if found is not None:
                self._cached.touch_range(found if forward else found.reversed())

    def _stored_times(self) -> tuple[int, int]:
        """Return the first visible and the largest time of the entries below any cache."""
        return max(self.observed.now - self.visible_ms, 0), self.observed.now

    def _first_visible(self, first: int) -> int:
        return max(first, self.observed.now - self.visible_ms, 0)
