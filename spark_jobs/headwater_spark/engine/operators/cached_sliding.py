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
        self._stored_until = store.observed
        self._visible_ms = store.visible_ms
        self._interval = store.segments.interval
        self._serialize, self._deserialize = store.value_serde.serialize, store.value_serde.deserialize
        self._current = context.task.current

    @property
    def is_usable(self) -> bool:
        """Return whether no other store shares the record cache; known when all nodes are built."""
        return len(self.cache.stores) == 1

    def backward(self, key: Value, key_bytes: bytes, first: int, last: int) -> Iterator[tuple[int, Value]]:
        """Yield (start, (value, timestamp)) of windows that start from `first` to `last`, latest first."""
        del key
        yield from self._read(reversed(self._visible(key_bytes, first, last)))
        begin = first // self._interval * self._interval
        self._entries.touch_range(self._entries.of_key(key_bytes), begin, last, forward=False)

    def forward(self, key: Value, key_bytes: bytes, first: int, last: int) -> Iterator[tuple[int, Value]]:
        """Yield what `backward` yields in the order of time."""
        del key
        yield from self._read(self._visible(key_bytes, first, last))
        end = min((last // self._interval + 1) * self._interval - 1, LAST_TIME)
        self._entries.touch_range(self._entries.of_key(key_bytes), first, end)

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
        entries = self._entries.of_key(key_bytes)
        self._entries.update(entries, key_bytes, start, start, stored, (*at, self._current.record))

    def _read(self, entries: Iterable[Entry]) -> Iterator[tuple[int, Value]]:
        touch, cached_keys, deserialize = self._entries.touch, self._entries.cached_keys, self._deserialize
        for entry in entries:
            if entry.entry_key in cached_keys():
                touch(entry.entry_key)
            yield entry.time, (deserialize(entry.value[TIMESTAMP:]), read_timestamp(entry.value))

    def _visible(self, key: bytes, first: int, last: int) -> list[Entry]:
        entries = self._entries.of_key(key)
        begin = bisect_left(entries.times, first)
        found = entries.each[begin : bisect_right(entries.times, last, begin)]
        oldest, cached_keys = self._stored_until.now - self._visible_ms, self._entries.cached_keys
        if not found or found[0].time >= oldest:
            return found
        return [entry for entry in found if entry.time >= oldest or entry.entry_key in cached_keys()]
