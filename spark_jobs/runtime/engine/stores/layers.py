"""The layers between a typed store and the overlay of the batch: the changelog, and optionally a cache.

Below typed stores a value is bytes; in a `timestamped` store the first 8 bytes are its timestamp. Changelog
records are as in Kafka Streams: the key without the store's own prefix, the value without its timestamp. The
record timestamp is that of the value; for values without timestamp and for deletions, that of the current
record.
"""

from collections.abc import Callable, Iterator, Sequence
from typing import NoReturn, Protocol

from spark_jobs.runtime.engine.records import Context, CurrentRecord, OutputRecord
from spark_jobs.runtime.engine.stores.interfaces import Pair
from spark_jobs.runtime.engine.stores.overlay import Overlay
from spark_jobs.runtime.engine.stores.record_cache import ENTRY_BYTES, RecordCache, Update, header_bytes

Append = Callable[[OutputRecord], None]
TIMESTAMP = 8
NO_TIMESTAMP = -1
"""`RecordQueue.UNKNOWN`"""


Put = Callable[[bytes, bytes | None, Context], None]
Get = Callable[[bytes], bytes | None]
Touch = Callable[[bytes], object]
Range = Callable[[bytes, bytes | None], Iterator[Pair]]
"""(first key, end or None) → entries in order"""


class StoreBytes(Protocol):
    """The bytes below a typed store."""

    @property
    def overlay(self) -> Overlay:
        """The content, for reads that a record cache does not notice; never written to directly."""
        ...

    @property
    def get(self) -> Get: ...
    @property
    def touch(self) -> Touch | None:
        """Tell the record cache that a key was read, without reading it; None = there is no cache."""
        ...

    @property
    def range(self) -> Range: ...
    @property
    def reverse_range(self) -> Range: ...

    @property
    def lowest(self) -> Overlay:
        """The overlay below any cache: restored and expired entries are written here, and not logged."""
        ...

    @property
    def put(self) -> Put: ...


class Logged:
    """Writes to the overlay and to the changelog.

    Args:
        overlay: The writes of the batch.
        changelog: (topic, partition, function that appends a record); None = not logged.
        prefix: The number of bytes at the start of a key that are not logged.
        timestamped: Values start with their timestamp.
        without_timestamps: Values are logged with their timestamp, but stored with -1.
    """

    __slots__ = ("get", "lowest", "overlay", "put", "range", "reverse_range", "touch", "without_timestamps")

    def __init__(
        self,
        overlay: Overlay,
        changelog: tuple[str, int, Append] | None,
        *,
        prefix: int = 0,
        timestamped: bool = False,
        without_timestamps: bool = False,
    ) -> None:
        self.overlay = self.lowest = overlay
        self.get: Get = overlay.get
        self.touch: Touch | None = None
        self.range: Range = overlay.range
        self.reverse_range: Range = overlay.reverse_range
        self.without_timestamps = without_timestamps
        put = _unlogged(overlay) if changelog is None else _logged(overlay, changelog, prefix, timestamped)
        self.put: Put = _without_timestamps(put, overlay) if without_timestamps else put


def _unlogged(overlay: Overlay) -> Put:
    written = overlay.written

    def put(key: bytes, value: bytes | None, context: Context) -> None:
        del context
        written[key] = value

    return put


def _logged(overlay: Overlay, changelog: tuple[str, int, Append], prefix: int, timestamped: bool) -> Put:  # noqa: FBT001
    written = overlay.written
    topic, partition, append = changelog

    def put(key: bytes, value: bytes | None, context: Context) -> None:
        written[key] = value
        if value is not None and timestamped:
            append((topic, partition, key[prefix:], value[TIMESTAMP:], read_timestamp(value), ()))
        else:
            append((topic, partition, key[prefix:], value, context[0], ()))

    return put


def _without_timestamps(put_below: Put, overlay: Overlay) -> Put:
    written = overlay.written

    def put(key: bytes, value: bytes | None, context: Context) -> None:
        put_below(key, value, context)
        if value is not None:
            written[key] = with_timestamp(value[TIMESTAMP:], NO_TIMESTAMP)

    return put


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
        "_below",
        "_current",
        "_fail",
        "_flush_first",
        "_on_flush",
        "cache",
        "entries",
        "get",
        "lowest",
        "overlay",
        "put",
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
        self._below = below
        self._current = current
        self._fail = fail
        self.overlay = Overlay(below.overlay)
        self.lowest = below.overlay
        self.cache = cache
        self.entries = cache.store(self._write)
        self.touch: Touch | None = self.entries.touch
        self.put: Put = self._putter()
        self.get: Get = self._getter() if keeps_reads else self._get_without_keeping
        self._on_flush: OnFlush | None = None
        self._flush_first: Callable[[], None] | None = None

    @property
    def below(self) -> Logged:
        """The layer below, for an operator with its own cache (`flush_with`)."""
        return self._below

    def flush_with(self, flush: Callable[[], None]) -> None:
        """Call `flush` when this cache is flushed, before its own updates are written."""
        self._flush_first = flush

    def listen(self, on_flush: OnFlush) -> None:
        self._on_flush = on_flush

    def range(self, start: bytes, end: bytes | None) -> Iterator[Pair]:
        return self._touched(self.overlay.range(start, end))

    def reverse_range(self, start: bytes, end: bytes | None) -> Iterator[Pair]:
        return self._touched(self.overlay.reverse_range(start, end))

    def flush(self) -> None:
        """Write the updates. Readers see the cache until all are written, as listeners may read."""
        if self._flush_first is not None:
            self._flush_first()
        self.entries.flush()

    def clear(self) -> None:
        """Forget the content; all updates have been written."""
        self.overlay.clear()

    def load(self, key: bytes, value: bytes | None, size: int, context: Context) -> None:
        """Put an update of `size` bytes and make no room: it was in the cache before."""
        self.overlay.written[key] = value
        self.entries.load(key, size, context)

    def _putter(self) -> Put:
        written, cache, entries = self.overlay.written, self.cache, self.entries
        sizes, updates = entries.sizes, entries.updates

        def put(key: bytes, value: bytes | None, context: Context) -> None:
            written[key] = value
            updates.pop(key, None)
            updates[key] = context
            _, headers, record = context
            size = ENTRY_BYTES + len(key) + len(record[0])
            if value is not None:
                size += len(value)
            if headers:
                size += header_bytes(headers)
            cache.size += size - sizes.pop(key, 0)
            sizes[key] = size
            if cache.size > cache.bound:
                cache.make_room(entries)

        return put

    def _getter(self) -> Get:
        read, sizes, enter = self.overlay.get, self.entries.sizes, self.entries.enter

        def get(key: bytes) -> bytes | None:
            value = read(key)
            size = sizes.pop(key, None)
            if size is not None:
                sizes[key] = size
            elif value is not None:
                enter(key, ENTRY_BYTES + len(key) + len(value))
            return value

        return get

    def _get_without_keeping(self, key: bytes) -> bytes | None:
        self.entries.touch(key)
        return self.overlay.get(key)

    def _touched(self, pairs: Iterator[Pair]) -> Iterator[Pair]:
        touch = self.entries.touch
        for pair in pairs:
            touch(pair[0])
            yield pair

    def _write(self, updates: Sequence[Update]) -> list[bytes]:
        """Write updates and forward them; return the keys that have no value any more."""
        current, written = self._current, self.overlay.written
        before = current.record, current.context
        values = [(key, written[key], context) for key, context in updates]
        try:
            current.context = None
            for key, value, context in values:
                self._write_one(key, value, context)
        except Exception as error:  # noqa: BLE001 - expressions and users' classes raise anything
            self._fail(error)
        current.record, current.context = before
        return [key for key, value, _ in values if value is None]

    def _write_one(self, key: bytes, value: bytes | None, context: Context) -> None:
        on_flush = self._on_flush
        old = None if on_flush is None else self._below.overlay.get(key)
        if value is None and old is None and on_flush is not None:
            return
        self._current.record = context[2]
        self._below.put(key, value, context)
        if on_flush is not None:
            on_flush(key, value, old, context)


def cached_size(key: bytes, value: bytes | None, context: Context) -> int:
    """Return the bytes of an update in a record cache."""
    _, headers, record = context
    return ENTRY_BYTES + len(key) + len(value or b"") + len(record[0]) + header_bytes(headers)


def read_timestamp(value: bytes) -> int:
    return int.from_bytes(value[:TIMESTAMP], "big", signed=True)


def with_timestamp(value: bytes, timestamp: int) -> bytes:
    return timestamp.to_bytes(TIMESTAMP, "big", signed=True) + value


def next_prefix(prefix: bytes) -> bytes | None:
    """Return the first key after all keys that start with `prefix`; None = no such key."""
    trimmed = prefix.rstrip(b"\xff")
    return trimmed[:-1] + bytes((trimmed[-1] + 1,)) if trimmed else None
