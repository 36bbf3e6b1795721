"""Sliding windows with a cache of their own, over the entries of a batch (`batch_entries`)."""

from bisect import bisect_left, bisect_right
from collections.abc import Iterable, Iterator

from headwater_spark.engine.operators.batch_entries import BatchEntries, Entry
from headwater_spark.engine.operators.interface import OperatorContext
from headwater_spark.engine.records import Headers, Value
from headwater_spark.engine.stores.cached import Cached
from headwater_spark.engine.stores.layers import TIMESTAMP, read_timestamp, with_timestamp
from headwater_spark.engine.stores.segments import LAST_TIME
from headwater_spark.engine.stores.windows import TimestampedWindowBytes


class CachedWindows:
    """Reads and updates windows as the store does, for an operator that alone uses it (`SlidingWindows`)."""

    def __init__(self, store: TimestampedWindowBytes, context: OperatorContext) -> None:
        cached = store.below
        if not isinstance(cached, Cached):
            raise TypeError(f"{context.node.name} has no cache")
        self.cache = cached.cache
        self._entries = BatchEntries(store, cached)
        self._sizes = cached.entries.sizes
        self._stored_until = store.observed
        self._visible_ms = store.visible_ms
        self._interval = store.segments.interval
        self._serialize, self._deserialize = store.value_serde.serialize, store.value_serde.deserialize
        self._current = context.task.current
        self._latest: Entry | None = None
        """The window that was read last. The next update has its key: it follows reads of that key."""

    @property
    def is_usable(self) -> bool:
        """Return whether no other store shares the record cache; known when all nodes are built."""
        return len(self.cache.stores) == 1

    def backward(self, key: Value, key_bytes: bytes, first: int, last: int) -> Iterator[tuple[int, Value]]:
        """Yield (start, (value, timestamp)) of windows that start from `first` to `last`, latest first."""
        del key
        yield from self._read(reversed(self._visible(key_bytes, first, last)))
        begin = first // self._interval * self._interval
        self._touch(reversed(self._between(key_bytes, begin, last)))

    def forward(self, key: Value, key_bytes: bytes, first: int, last: int) -> Iterator[tuple[int, Value]]:
        """Yield what `backward` yields in the order of time."""
        del key
        yield from self._read(self._visible(key_bytes, first, last))
        end = min((last // self._interval + 1) * self._interval - 1, LAST_TIME)
        self._touch(self._between(key_bytes, first, end))

    def update(  # noqa: PLR0917 - called for each record and window
        self,
        key: Value,
        key_bytes: bytes,
        start: int,
        change: tuple[Value, Value],
        time: int,
        at: tuple[int, Headers],
    ) -> None:
        """Put a total. `change` is (new, old)."""
        del key
        new = change[0]
        stored = None if new is None else with_timestamp(self._serialize(new), time)
        entry = self._latest
        if entry is None or entry.time != start:
            entry = self._entries.find_or_add(key_bytes, start, start)
        self._entries.put(entry, stored, (*at, self._current.record))

    def _read(self, entries: Iterable[Entry]) -> Iterator[tuple[int, Value]]:
        sizes, touch, deserialize = self._sizes, self._sizes.move_to_end, self._deserialize
        self._latest = None
        for entry in entries:
            if entry.entry_key in sizes:
                touch(entry.entry_key)
            stored = entry.value
            if stored is not None:
                self._latest = entry
                yield entry.time, (deserialize(stored[TIMESTAMP:]), read_timestamp(stored))

    def _visible(self, key: bytes, first: int, last: int) -> list[Entry]:
        oldest, sizes = self._stored_until.now - self._visible_ms, self._sizes
        return [
            entry
            for entry in self._between(key, first, last)
            if entry.value is not None and (entry.time >= oldest or entry.entry_key in sizes)
        ]

    def _between(self, key: bytes, first: int, last: int) -> list[Entry]:
        times, found = self._entries.of_key(key)
        begin = bisect_left(times, first)
        return found[begin : bisect_right(times, last, begin)]

    def _touch(self, entries: Iterable[Entry]) -> None:
        sizes, touch = self._sizes, self._sizes.move_to_end
        for entry in entries:
            if entry.entry_key in sizes:
                touch(entry.entry_key)
