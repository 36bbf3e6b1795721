"""The record cache of one store: a layer over its changelog and the overlay of the batch."""

from collections.abc import Callable, Iterator, Sequence
from typing import NoReturn

from headwater_spark.engine.records import Context, CurrentRecord
from headwater_spark.engine.stores.interfaces import Pair
from headwater_spark.engine.stores.layers import Get, Logged, Put, Touch
from headwater_spark.engine.stores.overlay import Overlay
from headwater_spark.engine.stores.record_cache import (
    ENTRY_BYTES,
    RecordCache,
    Update,
    cached_size,
    header_bytes,
)
from headwater_spark.engine.stores.uncounted import UNWRITTEN, KeyRange, UncountedEntries

OnFlush = Callable[[bytes, bytes | None, bytes | None, Context], None]
"""(key, new, old, context of the latest update)"""

Fail = Callable[[Exception], NoReturn]
"""Raises the error that ends the batch; the current record is the update's."""


class Cached:
    """A record cache: the latest update of each key is written when the batch ends, or the cache is full.

    Keys are written in the order of their latest updates, except those that have no value, neither here nor
    below. `on_flush` is called after each write. Meanwhile the update's input record is the current one.
    The content of the cache remains readable until the batch ends (`clear`).

    Args:
        cache: The bound that all stores of the task share.
        fail: Called if a write or `on_flush` raises an exception.
        keeps_reads: A key that is read from below becomes an entry (`CachingKeyValueStore`).
    """

    __slots__ = (
        "_current",
        "_flush_first",
        "_keeps_reads",
        "_needs_old",
        "_on_flush",
        "_uncounted",
        "below",
        "cache",
        "entries",
        "fail",
        "get",
        "get_before_put",
        "lowest",
        "overlay",
        "put",
        "put_below",
        "read_old",
        "touch",
    )

    def __init__(
        self,
        below: Logged,
        current: CurrentRecord,
        cache: RecordCache,
        fail: Fail,
        *,
        keeps_reads: bool = True,
    ) -> None:
        self.below = below
        self.put_below = below.put
        self.read_old: Get = below.overlay.get
        self._current = current
        self.fail = fail
        self.overlay = Overlay(below.overlay)
        self.lowest = below.overlay
        self.cache = cache
        self.entries = cache.store(self._write_updates)
        self._uncounted = UncountedEntries(self.overlay.written)
        cache.uncounted.append(self)
        self._keeps_reads = keeps_reads
        self.touch: Touch | None = self._make_toucher()
        self.put: Put = self._make_putter()
        self.get: Get = self._make_getter()
        self.get_before_put: Get = self._getter_before_put()
        self._on_flush: OnFlush | None = None
        self._needs_old = True
        self._flush_first: list[Callable[[], bool]] = []
        """What is called when this cache is flushed, before its own updates are written (`flush_with`)."""

    def write_with(self, put: Put, read_old: Get) -> None:
        """Write updates with `put`, and read the values that they replace with `read_old`."""
        self.put_below, self.read_old = put, read_old

    def holds(self, key: bytes) -> bool:
        """Return whether a key that was written in this batch is still an entry."""
        return key in self.overlay.written and (self.cache.limit >= 0 or key in self.entries.sizes)

    @property
    def is_alone(self) -> bool:
        """Return whether no other store shares the record cache; known when all nodes are built."""
        return len(self.cache.stores) == 1

    def flush_with(self, flush: Callable[[], bool]) -> None:
        """Call `flush` when this cache is flushed, before its own updates are written.

        `flush` returns whether it has written updates. Several are called in the order in which they were
        given.
        """
        self._flush_first.append(flush)

    def listen(self, on_flush: OnFlush, *, needs_old: bool) -> None:
        """Call `on_flush` for each update that is flushed; without `needs_old`, with no old value."""
        self._on_flush = on_flush
        self._needs_old = needs_old

    def touch_range(self, keys: KeyRange) -> None:
        """Touch many keys; as long as entries are not counted, this takes no time per key."""
        if self.cache.limit >= 0:
            self._uncounted.positions.append(len(self._uncounted.writes))
            self._uncounted.reads.append(keys)
            return
        for key in keys.read():
            self.entries.touch(key)

    def range(self, start: bytes, end: bytes | None) -> Iterator[Pair]:
        return self._touch_pairs(self.overlay.range(start, end))

    def reverse_range(self, start: bytes, end: bytes | None) -> Iterator[Pair]:
        return self._touch_pairs(self.overlay.reverse_range(start, end))

    def flush(self) -> bool:
        """Write the updates; return whether there were any.

        Readers see the cache until all are written, as listeners may read. New updates that listeners cause
        remain for the next flush.
        """
        wrote_first = False
        for flush in self._flush_first:
            wrote_first = flush() or wrote_first
        if not self._uncounted.contexts:
            return self.entries.flush() or wrote_first
        deleted = self._write(*self._uncounted.take_updates())
        if any(key in self._uncounted.contexts for key in deleted):
            self.cache.settle(self.cache.bound + 1)  # a new update is removed with its key: count
        if self.cache.limit < 0:
            self.entries.remove(deleted)
        else:
            self._uncounted.remove(deleted)
        return True

    def drop_repeats(self) -> None:
        """Drop the updates that leave the store below as it is."""
        written, read = self.overlay.written, self.below.overlay.get
        for updates in (self._uncounted.contexts, self.entries.updates):
            for key in [key for key in updates if written[key] == read(key)]:
                del updates[key]

    def clear(self) -> None:
        """Forget the content; all updates have been written."""
        self.overlay.clear()
        self._uncounted.clear()

    def load(self, key: bytes, value: bytes | None, context: Context) -> None:
        """Put an update and make no room: it was in the cache before."""
        self.overlay.written[key] = value
        if self.cache.limit < 0:
            self.entries.load(key, cached_size(key, value, context), context)
        else:
            self._uncounted.contexts[key] = context
            self._uncounted.writes.append(key)

    def put_all(
        self,
        keys: Sequence[bytes],
        values: Sequence[bytes | None],
        contexts: Sequence[Context],
        size: int,
    ) -> None:
        """Put the updates of different keys, which need at most `size` bytes."""
        if self.cache.limit < 0:
            for update in zip(keys, values, contexts, strict=True):
                self.put(*update)
            return
        self.overlay.written.update(zip(keys, values, strict=True))
        self._uncounted.contexts.update(zip(keys, contexts, strict=True))
        self._uncounted.writes.extend(keys)
        self.cache.estimate += size
        if self.cache.estimate > self.cache.limit:
            self._settle()

    def bytes_at_most(self) -> int:
        return self._uncounted.bytes_of_entries()

    def count(self) -> None:
        self.cache.size += self._uncounted.move_to(self.entries)

    def _make_putter(self) -> Put:
        written, cache, put_counted = self.overlay.written, self.cache, self.entries.put
        settle = self._settle
        contexts, wrote = self._uncounted.contexts, self._uncounted.writes.append

        def put(key: bytes, value: bytes | None, context: Context) -> None:
            written[key] = value
            if cache.limit < 0:
                put_counted(key, cached_size(key, value, context), context)
                return
            contexts[key] = context
            wrote(key)
            size = cache.estimate + cache.context_bytes + len(key)
            if value is not None:
                size += len(value)
            if context[1]:
                size += header_bytes(context[1])
            cache.estimate = size
            if size > cache.limit:
                settle()

        return put

    def _settle(self) -> None:
        """Estimate the entries again; if they are counted now, make room for them."""
        self.cache.settle()
        if self.cache.limit < 0 and self.cache.size > self.cache.bound:
            self.cache.make_room(self.entries)

    def _make_toucher(self) -> Touch:
        cache, touch_counted, writes = self.cache, self.entries.touch, self._uncounted.writes
        read, at = self._uncounted.reads.append, self._uncounted.positions.append

        def touch(key: bytes) -> None:
            if cache.limit < 0:
                touch_counted(key)
            else:
                at(len(writes))
                read(key)

        return touch

    def _make_getter(self) -> Get:
        written, cache, writes = self.overlay.written.get, self.cache, self._uncounted.writes
        read, at = self._uncounted.reads.append, self._uncounted.positions.append
        get_counted, read_below = self._get_counted, self._read_below

        def get(key: bytes) -> bytes | None:
            if cache.limit < 0:
                return get_counted(key)
            value = written(key, UNWRITTEN)
            if value is UNWRITTEN:
                return read_below(key)
            at(len(writes))
            read(key)
            return value

        return get

    def _getter_before_put(self) -> Get:
        written, cache, keeps_reads = self.overlay.written.get, self.cache, self._keeps_reads
        get_counted, read_below, read = self._get_counted, self._read_below, self.below.overlay.get

        def get(key: bytes) -> bytes | None:
            if cache.limit < 0:
                return get_counted(key)
            value = written(key, UNWRITTEN)
            if value is not UNWRITTEN:
                return value
            value = read(key)
            if keeps_reads and value is not None:
                size = cache.estimate + ENTRY_BYTES + len(key) + len(value)
                if size > cache.limit:
                    return read_below(key)
                cache.estimate = size
            return value

        return get

    def _get_counted(self, key: bytes) -> bytes | None:
        value = self.overlay.written.get(key, UNWRITTEN)
        if value is UNWRITTEN:
            value = self.below.overlay.get(key)
        entries = self.entries
        if key in entries.sizes:
            entries.sizes.move_to_end(key)
        elif self._keeps_reads and value is not None:
            entries.add_entry(key, ENTRY_BYTES + len(key) + len(value))
        return value

    def _read_below(self, key: bytes) -> bytes | None:
        """Return the value of a key that was not written in this batch, and keep it as an entry."""
        value = self.below.overlay.get(key)
        if value is None or not self._keeps_reads:
            return value
        cache, uncounted = self.cache, self._uncounted
        uncounted.positions.append(len(uncounted.writes))
        uncounted.reads.append(key)
        if key not in uncounted.kept:
            uncounted.kept[key] = value
            cache.estimate += ENTRY_BYTES + len(key) + len(value)
            if cache.estimate > cache.limit:
                self._settle()
        return value

    def _touch_pairs(self, pairs: Iterator[Pair]) -> Iterator[Pair]:
        touch = self.touch
        assert touch is not None  # noqa: S101 - it is set
        for pair in pairs:
            touch(pair[0])
            yield pair

    def _write_updates(self, updates: Sequence[Update]) -> list[bytes]:
        return self._write([key for key, _ in updates], [context for _, context in updates])

    def _write(self, keys: Sequence[bytes], contexts: Sequence[Context]) -> list[bytes]:
        """Write updates and forward them; return the keys that have no value any more."""
        values = list(map(self.overlay.written.__getitem__, keys))
        self.write_values(keys, values, contexts)
        return (
            [key for key, value in zip(keys, values, strict=True) if value is None] if None in values else []
        )

    def write_values(
        self, keys: Sequence[bytes], values: Sequence[bytes | None], contexts: Sequence[Context]
    ) -> None:
        """Write updates and forward them; they need not be in the cache (`flush_with`)."""
        current = self._current
        before = current.record, current.context
        try:
            current.context = None
            self._write_values(keys, values, contexts)
        except Exception as error:  # noqa: BLE001 - expressions and users' classes raise anything
            self.fail(error)
        current.record, current.context = before

    def _write_values(
        self, keys: Sequence[bytes], values: Sequence[bytes | None], contexts: Sequence[Context]
    ) -> None:
        on_flush, needs_old, current = self._on_flush, self._needs_old, self._current
        put, read = self.put_below, self.read_old
        for key, value, context in zip(keys, values, contexts, strict=True):
            current.record = context[2]
            if on_flush is None:
                put(key, value, context)
                continue
            old = read(key) if needs_old or value is None else None
            if value is not None or old is not None:
                put(key, value, context)
                on_flush(key, value, old, context)
