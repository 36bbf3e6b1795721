"""Entries of a window or session store with a cache of its own, in lists per key during a batch.

A key is searched for in the store once per batch. Reads and updates touch the record cache as they do in the
store (`stores.cached`), so the same updates leave it at the same moments. Entries are counted from the first
record on.
"""

from bisect import bisect_left
from collections.abc import Callable

import attrs

from headwater_spark.engine.records import Context
from headwater_spark.engine.stores.cached import Cached
from headwater_spark.engine.stores.record_cache import ENTRY_BYTES, header_bytes
from headwater_spark.engine.stores.segments import TIME
from headwater_spark.engine.stores.windows import SessionBytes, TimestampedWindowBytes

_SEQUENCE = 4
PutEntry = Callable[["Entry", bytes | None, Context], None]


@attrs.define(eq=False)
class Entry:
    """An entry of the store, or of the cache; `value` None = deleted, but perhaps still in the cache.

    `time` is the start of a window or the end of a session; `start` is the start of both.
    """

    entry_key: bytes
    time: int
    start: int
    value: bytes | None


Entries = tuple[list[int], list[Entry]]
"""The times of the entries of a key, and the entries, by time, then start."""


class BatchEntries:
    """The entries of the keys that a batch has searched for.

    Updates of entries that were never written below the cache are not compared with what is there.
    """

    def __init__(self, store: SessionBytes | TimestampedWindowBytes, cached: Cached) -> None:
        self._store = store
        self._entry_key = _entry_key_of(store)
        self._overlay = store.below.lowest
        self._batch = self._overlay.batch
        self._of_keys: dict[bytes, Entries] = {}
        self._unwritten: set[bytes] = set()
        self._time_at = -2 * TIME if isinstance(store, SessionBytes) else -TIME - _SEQUENCE
        self._start_at = -TIME if isinstance(store, SessionBytes) else self._time_at
        self.put: PutEntry = _putter(cached)
        put_below, read_old, unwritten = cached.put_below, cached.read_old, self._unwritten

        def write(entry_key: bytes, value: bytes | None, context: Context) -> None:
            unwritten.discard(entry_key)
            put_below(entry_key, value, context)

        def read(entry_key: bytes) -> bytes | None:
            return None if entry_key in unwritten else read_old(entry_key)

        cached.write_with(write, read)

    def of_key(self, key: bytes) -> Entries:
        """Return the entries of a key: all that may be visible, and deleted ones of the batch."""
        if self._overlay.batch != self._batch:
            self._batch = self._overlay.batch
            self._of_keys.clear()
            self._unwritten.clear()
        known = self._of_keys.get(key)
        if known is None:
            found = [self._stored(*pair) for pair in self._store.stored_entries(key)]
            known = self._of_keys[key] = ([entry.time for entry in found], found)
        return known

    def find_or_add(self, key: bytes, time: int, start: int) -> Entry:
        """Return the entry of a time and a start; add one without a value if there is none."""
        times, found = self.of_key(key)
        at = len(times)
        if times and time <= times[-1]:
            at = bisect_left(times, time)
            while at < len(times) and times[at] == time and found[at].start < start:
                at += 1
            if at < len(times) and times[at] == time and found[at].start == start:
                return found[at]
        entry = Entry(self._entry_key(key, time, start), time, start, None)
        times.insert(at, time)
        found.insert(at, entry)
        self._unwritten.add(entry.entry_key)
        return entry

    def _stored(self, entry_key: bytes, value: bytes) -> Entry:
        time, start = (
            int.from_bytes(entry_key[at : (at + TIME) or None], "big")
            for at in (self._time_at, self._start_at)
        )
        return Entry(entry_key, time, start, value)


def _entry_key_of(store: SessionBytes | TimestampedWindowBytes) -> Callable[[bytes, int, int], bytes]:
    """Return a function of key, time and start."""
    if isinstance(store, SessionBytes):
        return lambda key, time, start: store.entry_key(key, start, time)
    return lambda key, time, _start: store.entry_key(key, time)


def _putter(cached: Cached) -> PutEntry:
    """Return a function that puts a value into a cache whose entries are counted (`StoreEntries.put`)."""
    cache, entries, written = cached.cache, cached.entries, cached.overlay.written
    sizes, updates = entries.sizes, entries.updates
    take, touch = updates.pop, sizes.move_to_end

    def put(entry: Entry, value: bytes | None, context: Context) -> None:
        entry_key = entry.entry_key
        entry.value = written[entry_key] = value
        size = ENTRY_BYTES + len(entry_key) + len(context[2][0])
        if value is not None:
            size += len(value)
        if context[1]:
            size += header_bytes(context[1])
        if entry_key in sizes:
            take(entry_key, None)
            cache.size -= sizes[entry_key]
            touch(entry_key)
        updates[entry_key] = context
        sizes[entry_key] = size
        cache.size += size
        if cache.size > cache.bound:
            cache.make_room(entries)

    return put
