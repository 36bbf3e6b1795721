"""What lies between a typed store and its batch's overlay: the changelog, and where wanted a record cache.

Below typed stores a value is bytes; in a `timestamped` one it is led by 8 bytes of its timestamp. What the
changelog gets is Kafka Streams' own layout: the key without the store's own prefix, the plain value, and as
record timestamp that of the value, or for plain values and deletions that of the record being worked on.
"""

from collections.abc import Callable
from typing import Protocol

from spark_jobs.runtime.records import Context, OutputRecord
from spark_jobs.runtime.stores.overlay import Overlay

Append = Callable[[OutputRecord], None]
TIMESTAMP = 8


class StoreBytes(Protocol):
    """The bytes a typed store works on."""

    @property
    def overlay(self) -> Overlay:
        """For reading, ranges included; never written to directly."""
        ...

    def put(self, key: bytes, value: bytes | None, context: Context) -> None: ...


class Logged:
    """Writes through to the overlay and to the changelog.

    Args:
        overlay: The batch's writes.
        changelog: (topic, partition, where to append), None = not logged.
        prefix: How many bytes of a key are the store's own and not logged.
        timestamped: Values are led by their timestamp.
    """

    __slots__ = ("_changelog", "_prefix", "_timestamped", "overlay")

    def __init__(
        self,
        overlay: Overlay,
        changelog: tuple[str, int, Append] | None,
        *,
        prefix: int = 0,
        timestamped: bool = False,
    ) -> None:
        self.overlay = overlay
        self._changelog = changelog
        self._prefix = prefix
        self._timestamped = timestamped

    def put(self, key: bytes, value: bytes | None, context: Context) -> None:
        self.overlay.written[key] = value
        if self._changelog is None:
            return
        topic, partition, append = self._changelog
        if self._prefix:
            key = key[self._prefix :]
        if value is not None and self._timestamped:
            append((topic, partition, key, value[TIMESTAMP:], read_timestamp(value), ()))
        else:
            append((topic, partition, key, value, context[0], ()))


OnFlush = Callable[[bytes, bytes | None, bytes | None, Context], None]
"""(key, new, old, context of the latest update)"""


class Cached:
    """A record cache: the latest update of each key goes on when the batch ends (`CachingKeyValueStore`).

    Keys go on in the order of their latest updates. A key that is neither below nor left with a value goes
    nowhere. `on_flush` hears of each after it went down.
    """

    __slots__ = ("_below", "_contexts", "_on_flush", "overlay")

    def __init__(self, below: Logged) -> None:
        self._below = below
        self.overlay = Overlay(below.overlay)
        self._contexts: dict[bytes, Context] = {}
        self._on_flush: OnFlush | None = None

    def listen(self, on_flush: OnFlush) -> None:
        self._on_flush = on_flush

    def put(self, key: bytes, value: bytes | None, context: Context) -> None:
        self.overlay.written[key] = value
        self._contexts.pop(key, None)
        self._contexts[key] = context

    def flush(self) -> None:
        written = self.overlay.written
        lower = self._below.overlay
        while self._contexts:  # a listener may cause new updates of this very store
            batch, self._contexts = self._contexts, {}
            values = [(key, written[key], context) for key, context in batch.items()]
            self.overlay.clear()
            for key, value, context in values:
                old = lower.get(key)
                if value is None and old is None and self._on_flush is not None:
                    continue
                self._below.put(key, value, context)
                if self._on_flush is not None:
                    self._on_flush(key, value, old, context)


def read_timestamp(value: bytes) -> int:
    return int.from_bytes(value[:TIMESTAMP], "big", signed=True)


def with_timestamp(value: bytes, timestamp: int) -> bytes:
    return timestamp.to_bytes(TIMESTAMP, "big", signed=True) + value


def next_prefix(prefix: bytes) -> bytes | None:
    """The first key after all that start with `prefix`; None = there is none."""
    trimmed = prefix.rstrip(b"\xff")
    return trimmed[:-1] + bytes((trimmed[-1] + 1,)) if trimmed else None
