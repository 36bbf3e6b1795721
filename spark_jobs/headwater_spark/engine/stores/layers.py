"""The layer between a typed store and the overlay of the batch: the changelog. `cached` has the record cache.

Below typed stores a value is bytes; in a `timestamped` store the first 8 bytes are its timestamp. Changelog
records are as in Kafka Streams: the key without the store's own prefix, the value without its timestamp. The
record timestamp is the timestamp of the value, or of the current record for values without timestamp and for
deletions.
"""

from collections.abc import Callable, Iterator
from typing import Protocol

from headwater_spark.engine.records import Context, OutputRecord
from headwater_spark.engine.stores.interfaces import Pair
from headwater_spark.engine.stores.overlay import Overlay

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
    def get_before_put(self) -> Get:
        """Return what `get` returns; the caller puts the key next, or ends the batch."""
        ...

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
        logs_headers: Changelog records have the headers of the record that caused them.
    """

    __slots__ = (
        "get",
        "get_before_put",
        "lowest",
        "overlay",
        "put",
        "range",
        "reverse_range",
        "touch",
        "without_timestamps",
    )

    def __init__(
        self,
        overlay: Overlay,
        changelog: tuple[str, int, Append] | None,
        *,
        prefix: int = 0,
        timestamped: bool = False,
        without_timestamps: bool = False,
        logs_headers: bool = False,
    ) -> None:
        self.overlay = self.lowest = overlay
        self.get: Get = overlay.get
        self.get_before_put: Get = overlay.get
        self.touch: Touch | None = None
        self.range: Range = overlay.range
        self.reverse_range: Range = overlay.reverse_range
        self.without_timestamps = without_timestamps
        put = (
            _put_unlogged(overlay)
            if changelog is None
            else _put_logged(overlay, changelog, prefix, timestamped)
        )
        if changelog is not None and logs_headers:
            put = _logged_with_headers(overlay, changelog, prefix, timestamped)
        self.put: Put = _without_timestamps(put, overlay) if without_timestamps else put


def _put_unlogged(overlay: Overlay) -> Put:
    written = overlay.written

    def put(key: bytes, value: bytes | None, context: Context) -> None:
        del context
        written[key] = value

    return put


def _put_logged(overlay: Overlay, changelog: tuple[str, int, Append], prefix: int, timestamped: bool) -> Put:  # noqa: FBT001
    written = overlay.written
    topic, partition, append = changelog

    def put(key: bytes, value: bytes | None, context: Context) -> None:
        written[key] = value
        if value is not None and timestamped:
            append((topic, partition, key[prefix:], value[TIMESTAMP:], read_timestamp(value), ()))
        else:
            append((topic, partition, key[prefix:], value, context[0], ()))

    return put


def _logged_with_headers(
    overlay: Overlay,
    changelog: tuple[str, int, Append],
    prefix: int,
    timestamped: bool,  # noqa: FBT001
) -> Put:
    written = overlay.written
    topic, partition, append = changelog

    def put(key: bytes, value: bytes | None, context: Context) -> None:
        written[key] = value
        if value is not None and timestamped:
            time = read_timestamp(value)
            append((topic, partition, key[prefix:], value[TIMESTAMP:], time, context[1]))
        else:
            append((topic, partition, key[prefix:], value, context[0], context[1]))

    return put


def _without_timestamps(put_below: Put, overlay: Overlay) -> Put:
    written = overlay.written

    def put(key: bytes, value: bytes | None, context: Context) -> None:
        put_below(key, value, context)
        if value is not None:
            written[key] = with_timestamp(value[TIMESTAMP:], NO_TIMESTAMP)

    return put


def read_timestamp(value: bytes) -> int:
    return int.from_bytes(value[:TIMESTAMP], "big", signed=True)


def with_timestamp(value: bytes, timestamp: int) -> bytes:
    return timestamp.to_bytes(TIMESTAMP, "big", signed=True) + value


def next_prefix(prefix: bytes) -> bytes | None:
    """Return the first key after all keys that start with `prefix`; None = no such key."""
    trimmed = prefix.rstrip(b"\xff")
    return trimmed[:-1] + bytes((trimmed[-1] + 1,)) if trimmed else None
