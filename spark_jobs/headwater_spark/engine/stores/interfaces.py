"""Interfaces of stores: ordered bytes below, typed stores above, named as in Kafka Streams.

The engine never changes values in place. Consume an iterator before you write to its store: it does not
isolate itself from writes.
"""

from collections.abc import Iterable, Iterator
from typing import Protocol

from headwater_spark.engine.records import Headers, Value, Windowed

Pair = tuple[bytes, bytes]


class SortedReads(Protocol):
    """Reads of a map from bytes to bytes, ordered as unsigned bytes."""

    def get(self, key: bytes) -> bytes | None: ...
    def range(self, start: bytes = b"", end: bytes | None = None) -> Iterator[Pair]:
        """Return entries from `start` (inclusive) to `end` (exclusive; None = unbounded)."""
        ...

    def reverse_range(self, start: bytes = b"", end: bytes | None = None) -> Iterator[Pair]:
        """Return the same entries in reverse order."""
        ...


class KeyValueStore(Protocol):
    """`KeyValueStore<K, V>`. Null values delete; null keys are not allowed."""

    def get(self, key: Value) -> Value: ...
    def put(self, key: Value, value: Value) -> None: ...
    def put_if_absent(self, key: Value, value: Value) -> Value: ...
    def put_all(self, entries: Iterable[tuple[Value, Value]]) -> None: ...
    def delete(self, key: Value) -> Value: ...
    def range(self, first: Value = None, last: Value = None) -> Iterator[tuple[Value, Value]]:
        """Return entries ordered by key bytes, both ends inclusive; None = unbounded."""
        ...

    def reverse_range(self, first: Value = None, last: Value = None) -> Iterator[tuple[Value, Value]]: ...
    def all(self) -> Iterator[tuple[Value, Value]]: ...
    def reverse_all(self) -> Iterator[tuple[Value, Value]]: ...
    def prefix_scan(self, prefix: bytes) -> Iterator[tuple[Value, Value]]:
        """Return entries whose key bytes start with `prefix`."""
        ...


class TimestampedKeyValueStore(Protocol):
    """`TimestampedKeyValueStore<K, V>`: values are pairs (`ValueAndTimestamp`).

    `put` takes any pair (value, timestamp), or None to delete. The store of `ForeignKeyReceive` (kind
    `subscription`) has bytes: key = `fk length ‖ fk ‖ pk`, value = the serialized subscription.
    """

    def get(self, key: Value) -> tuple[Value, int] | None: ...
    def put(self, key: Value, value: tuple[Value, int] | None) -> None: ...
    def put_if_absent(self, key: Value, value: tuple[Value, int]) -> tuple[Value, int] | None: ...
    def put_all(self, entries: Iterable[tuple[Value, tuple[Value, int] | None]]) -> None: ...
    def delete(self, key: Value) -> tuple[Value, int] | None: ...
    def range(self, first: Value = None, last: Value = None) -> Iterator[tuple[Value, tuple[Value, int]]]: ...
    def reverse_range(
        self, first: Value = None, last: Value = None
    ) -> Iterator[tuple[Value, tuple[Value, int]]]: ...
    def all(self) -> Iterator[tuple[Value, tuple[Value, int]]]: ...
    def reverse_all(self) -> Iterator[tuple[Value, tuple[Value, int]]]: ...
    def prefix_scan(self, prefix: bytes) -> Iterator[tuple[Value, tuple[Value, int]]]: ...


VersionedRecord = tuple[Value, int, int | None]
"""(value, valid from, valid to); valid to None = the latest version."""


class VersionedKeyValueStore(Protocol):
    """`VersionedKeyValueStore<K, V>` (KIP-889)."""

    def put(self, key: Value, value: Value, timestamp: int) -> int | None:
        """Return valid-to of the new version; None = it is the latest, `NOT_PUT` = older than the history."""
        ...

    def delete(self, key: Value, timestamp: int) -> VersionedRecord | None:
        """Return the version that was deleted; None if `timestamp` is older than the history."""
        ...

    def get(self, key: Value, as_of: int | None = None) -> VersionedRecord | None: ...


NOT_PUT = -(2**63)
"""`VersionedKeyValueStore.PUT_RETURN_CODE_NOT_PUT`."""


class WindowStore(Protocol):
    """`WindowStore<K, V>`; values of the kind `timestampedWindow` are pairs (value, timestamp).

    Times are starts of windows, both ends inclusive. Entries `retention` or more behind the largest start
    ever put are not visible. With `retain_duplicates` each put adds an entry, and None has no effect.
    """

    def put(self, key: Value, value: Value, start: int) -> None: ...
    def fetch(self, key: Value, start: int) -> Value: ...
    def fetch_range(self, key: Value, first: int, last: int) -> Iterator[tuple[int, Value]]: ...
    def backward_fetch_range(self, key: Value, first: int, last: int) -> Iterator[tuple[int, Value]]: ...
    def fetch_keys(
        self,
        first_key: Value,
        last_key: Value,
        first: int,
        last: int,
    ) -> Iterator[tuple[Windowed, Value]]: ...
    def fetch_all(self, first: int, last: int) -> Iterator[tuple[Windowed, Value]]: ...
    def backward_fetch_all(self, first: int, last: int) -> Iterator[tuple[Windowed, Value]]: ...
    def all(self) -> Iterator[tuple[Windowed, Value]]: ...


class SessionStore(Protocol):
    """`SessionStore<K, AGG>`."""

    def find_sessions(
        self, key: Value, earliest_end: int, latest_start: int
    ) -> Iterator[tuple[Windowed, Value]]: ...
    def fetch_session(self, key: Value, start: int, end: int) -> Value: ...
    def fetch(self, key: Value) -> Iterator[tuple[Windowed, Value]]: ...
    def sessions_ended(self, earliest_end: int, latest_end: int) -> Iterator[tuple[Windowed, Value]]:
        """Return sessions of all keys by end, both inclusive (`findSessions(earliestEnd, latestEnd)`)."""
        ...

    def put(self, session: Windowed, value: Value) -> None: ...
    def remove(self, session: Windowed) -> None: ...


class ListStore(Protocol):
    """Unmatched records of a stream-stream join (`KeyValueStore<TimestampedKeyAndJoinSide, LeftOrRight>`).

    Ordered by (timestamp, side, key); an entry has one or more values. The side byte is 1 for the left side.
    """

    def add(self, timestamp: int, is_left: bool, key: Value, value: Value) -> None: ...  # noqa: FBT001
    def clear(self, timestamp: int, is_left: bool, key: Value) -> None:  # noqa: FBT001
        """Delete the entry with all its values."""
        ...

    def delete(self, entry_key: bytes) -> None:
        """Delete the entry that `all` returned with this key, with all its values."""
        ...

    def all(self) -> Iterator[tuple[bytes, int, bool, Value, Value]]:
        """Return (entry key, timestamp, is left, key, value) in order."""
        ...


BufferedContext = tuple[int, int, str, int, Headers]
"""(timestamp, offset, topic, partition, headers) of the record that caused an entry."""


class SuppressBuffer(Protocol):
    """`TimeOrderedKeyValueChangeBuffer`: one change per key, in the order of buffer time."""

    @property
    def records(self) -> int: ...
    @property
    def size(self) -> int:
        """The size in bytes, as Kafka Streams estimates it."""
        ...

    def is_due(self, time: int) -> bool:
        """Return whether there is an entry of this time, or an earlier one."""
        ...

    def put(self, time: int, key: Value, change: tuple[Value, Value], context: BufferedContext) -> None: ...
    def prior(self, key: Value) -> tuple[Value, int] | bool | None:
        """Return the (value, timestamp) last emitted; False = the key is not buffered."""
        ...

    def oldest(self) -> tuple[Value, tuple[Value, Value], BufferedContext]:
        """Return (key, (new, old), context) of the oldest entry."""
        ...

    def drop_oldest(self) -> None: ...


class JoinBuffer(Protocol):
    """`RocksDBTimeOrderedKeyValueBuffer`: stream records within the grace period of a stream-table join."""

    def put(self, key: Value, value: Value, context: BufferedContext) -> bool:
        """Buffer a record; return False, and do not buffer it, if it is later than the grace period."""
        ...

    def pop_until(self, time: int) -> Iterator[tuple[Value, Value, BufferedContext]]:
        """Remove and yield records up to and including `time`, oldest first."""
        ...
