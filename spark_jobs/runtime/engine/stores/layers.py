"""The layers between a typed store and the overlay of the batch: the changelog, and optionally a cache.

Below typed stores a value is bytes; in a `timestamped` store the first 8 bytes are its timestamp. Changelog
records are as in Kafka Streams: the key without the store's own prefix, the value without its timestamp. The
record timestamp is that of the value; for values without timestamp and for deletions, that of the current
record.
"""

from collections.abc import Callable
from typing import Protocol

from spark_jobs.runtime.engine.records import Context, CurrentRecord, OutputRecord
from spark_jobs.runtime.engine.stores.overlay import Overlay

Append = Callable[[OutputRecord], None]
TIMESTAMP = 8
NO_TIMESTAMP = -1
"""`RecordQueue.UNKNOWN`"""


Put = Callable[[bytes, bytes | None, Context], None]


class StoreBytes(Protocol):
    """The bytes below a typed store."""

    @property
    def overlay(self) -> Overlay:
        """For reads, ranges included; never written to directly."""
        ...

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

    __slots__ = ("lowest", "overlay", "put", "without_timestamps")

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


class Cached:
    """A record cache: the latest update of each key is written when the batch ends (`CachingKeyValueStore`).

    Keys are written in the order of their latest updates, except those that have no value, neither here nor
    below. `on_flush` is called after each write. Meanwhile the update's input record is the current one.
    """

    __slots__ = ("_below", "_contexts", "_current", "_flush_first", "_on_flush", "lowest", "overlay")

    def __init__(self, below: Logged, current: CurrentRecord) -> None:
        self._below = below
        self._current = current
        self.overlay = Overlay(below.overlay)
        self.lowest = below.overlay
        self._contexts: dict[bytes, Context] = {}
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

    def put(self, key: bytes, value: bytes | None, context: Context) -> None:
        self.overlay.written[key] = value
        self._contexts.pop(key, None)
        self._contexts[key] = context

    def flush(self) -> None:
        """Write the updates. Readers see the cache until all are written, as listeners may read."""
        if self._flush_first is not None:
            self._flush_first()
        written, lower = self.overlay.written, self._below.overlay
        while self._contexts:  # a listener may cause new updates of this store
            batch, self._contexts = self._contexts, {}
            for key, context in batch.items():
                value, old = written[key], lower.get(key)
                if value is None and old is None and self._on_flush is not None:
                    continue
                self._current.record = context[2]
                self._below.put(key, value, context)
                if self._on_flush is not None:
                    self._on_flush(key, value, old, context)
        self.overlay.clear()


def read_timestamp(value: bytes) -> int:
    return int.from_bytes(value[:TIMESTAMP], "big", signed=True)


def with_timestamp(value: bytes, timestamp: int) -> bytes:
    return timestamp.to_bytes(TIMESTAMP, "big", signed=True) + value


def next_prefix(prefix: bytes) -> bytes | None:
    """Return the first key after all keys that start with `prefix`; None = no such key."""
    trimmed = prefix.rstrip(b"\xff")
    return trimmed[:-1] + bytes((trimmed[-1] + 1,)) if trimmed else None
