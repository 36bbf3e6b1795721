"""What lies between a typed store and its batch's overlay: the changelog, and where wanted a record cache.

Below typed stores a value is bytes; in a `timestamped` one it is led by 8 bytes of its timestamp. What the
changelog gets is Kafka Streams' own layout: the key without the store's own prefix, the plain value, and as
record timestamp that of the value, or for plain values and deletions that of the record being worked on.
"""

from collections.abc import Callable
from typing import Protocol

from spark_jobs.runtime.engine.records import Context, OutputRecord
from spark_jobs.runtime.engine.stores.overlay import Overlay

Append = Callable[[OutputRecord], None]
TIMESTAMP = 8
NO_TIMESTAMP = -1
"""`RecordQueue.UNKNOWN`"""


Put = Callable[[bytes, bytes | None, Context], None]


class StoreBytes(Protocol):
    """The bytes a typed store works on."""

    @property
    def overlay(self) -> Overlay:
        """For reading, ranges included; never written to directly."""
        ...

    @property
    def lowest(self) -> Overlay:
        """Below any cache: what is restored and what expires is written here, and not logged."""
        ...

    @property
    def put(self) -> Put: ...


class Logged:
    """Writes through to the overlay and to the changelog.

    Args:
        overlay: The batch's writes.
        changelog: (topic, partition, where to append), None = not logged.
        prefix: How many bytes of a key are the store's own and not logged.
        timestamped: Values are led by their timestamp.
        without_timestamps: They are logged with it and kept without (-1).
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
        self.put: Put = _forgetting(put, overlay) if without_timestamps else put


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


def _forgetting(keep: Put, overlay: Overlay) -> Put:
    written = overlay.written

    def put(key: bytes, value: bytes | None, context: Context) -> None:
        keep(key, value, context)
        if value is not None:
            written[key] = with_timestamp(value[TIMESTAMP:], NO_TIMESTAMP)

    return put


OnFlush = Callable[[bytes, bytes | None, bytes | None, Context], None]
"""(key, new, old, context of the latest update)"""


class Cached:
    """A record cache: the latest update of each key goes on when the batch ends (`CachingKeyValueStore`).

    Keys go on in the order of their latest updates. A key that is neither below nor left with a value goes
    nowhere. `on_flush` hears of each after it went down.
    """

    __slots__ = ("_below", "_contexts", "_flush_first", "_on_flush", "lowest", "overlay")

    def __init__(self, below: Logged) -> None:
        self._below = below
        self.overlay = Overlay(below.overlay)
        self.lowest = below.overlay
        self._contexts: dict[bytes, Context] = {}
        self._on_flush: OnFlush | None = None
        self._flush_first: Callable[[], None] | None = None

    @property
    def below(self) -> Logged:
        """For an operator that caches by itself, see `flush_with`."""
        return self._below

    def flush_with(self, flush: Callable[[], None]) -> None:
        """`flush` is called in this cache's turn, before its own updates go on."""
        self._flush_first = flush

    def listen(self, on_flush: OnFlush) -> None:
        self._on_flush = on_flush

    def put(self, key: bytes, value: bytes | None, context: Context) -> None:
        self.overlay.written[key] = value
        self._contexts.pop(key, None)
        self._contexts[key] = context

    def flush(self) -> None:
        """Until all is down readers see what is cached, as a listener's children may look things up."""
        if self._flush_first is not None:
            self._flush_first()
        written, lower = self.overlay.written, self._below.overlay
        while self._contexts:  # a listener may cause new updates of this very store
            batch, self._contexts = self._contexts, {}
            for key, context in batch.items():
                value, old = written[key], lower.get(key)
                if value is None and old is None and self._on_flush is not None:
                    continue
                self._below.put(key, value, context)
                if self._on_flush is not None:
                    self._on_flush(key, value, old, context)
        self.overlay.clear()


def read_timestamp(value: bytes) -> int:
    return int.from_bytes(value[:TIMESTAMP], "big", signed=True)


def with_timestamp(value: bytes, timestamp: int) -> bytes:
    return timestamp.to_bytes(TIMESTAMP, "big", signed=True) + value


def next_prefix(prefix: bytes) -> bytes | None:
    """The first key after all that start with `prefix`; None = there is none."""
    trimmed = prefix.rstrip(b"\xff")
    return trimmed[:-1] + bytes((trimmed[-1] + 1,)) if trimmed else None
