"""Stores: ordered bytes below, typed views above (named after the interfaces of Kafka Streams they follow).

A store's values are never changed in place by the engine. Iterators see the store as it was when they were
made only as far as nothing is written meanwhile: consume them before writing.
"""

from collections.abc import Iterable, Iterator
from typing import Protocol

from spark_jobs.runtime.engine.records import Headers, Value, Windowed

Pair = tuple[bytes, bytes]


class SortedReads(Protocol):
    """Bytes by bytes, ordered as unsigned bytes."""

    def get(self, key: bytes) -> bytes | None: ...
    def range(self, start: bytes = b"", end: bytes | None = None) -> Iterator[Pair]:
        """`start` inclusive, `end` exclusive; None = to the end."""
        ...

    def reverse_range(self, start: bytes = b"", end: bytes | None = None) -> Iterator[Pair]:
        """The same from the end."""
        ...


class OrderedBytes(SortedReads, Protocol):
    """The same to write to."""

    def put(self, key: bytes, value: bytes) -> None: ...
    def delete(self, key: bytes) -> None: ...


class KeyValueStore(Protocol):
    """`KeyValueStore<K, V>`. Null values delete; nothing is stored under a null key."""

    def get(self, key: Value) -> Value: ...
    def put(self, key: Value, value: Value) -> None: ...
    def put_if_absent(self, key: Value, value: Value) -> Value: ...
    def put_all(self, entries: Iterable[tuple[Value, Value]]) -> None: ...
    def delete(self, key: Value) -> Value: ...
    def range(self, first: Value = None, last: Value = None) -> Iterator[tuple[Value, Value]]:
        """By the keys' bytes, both ends inclusive, None = open."""
        ...

    def reverse_range(self, first: Value = None, last: Value = None) -> Iterator[tuple[Value, Value]]: ...
    def all(self) -> Iterator[tuple[Value, Value]]: ...
    def reverse_all(self) -> Iterator[tuple[Value, Value]]: ...
    def prefix_scan(self, prefix: bytes) -> Iterator[tuple[Value, Value]]:
        """Keys whose bytes start with `prefix`."""
        ...


class TimestampedKeyValueStore(Protocol):
    """`TimestampedKeyValueStore<K, V>`: as above with `ValueAndTimestamp` (value, timestamp) as values.

    `put` takes any pair (value, timestamp), or None to delete. `ForeignKeyReceive`'s store (kind
    `subscription`) is one over bytes: key = `fk length ‖ fk ‖ pk`, value = the subscription's bytes.
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
"""(value, valid from, valid to); valid to None = still the latest."""


class VersionedKeyValueStore(Protocol):
    """`VersionedKeyValueStore<K, V>` (KIP-889)."""

    def put(self, key: Value, value: Value, timestamp: int) -> int | None:
        """Gives valid-to of the version put: None = it is the latest, `NOT_PUT` = older than the history."""
        ...

    def delete(self, key: Value, timestamp: int) -> VersionedRecord | None: ...
    def get(self, key: Value, as_of: int | None = None) -> VersionedRecord | None: ...


NOT_PUT = -(2**63)
"""`VersionedKeyValueStore.PUT_RETURN_CODE_NOT_PUT`."""


class WindowStore(Protocol):
    """`WindowStore<K, V>`; kind `timestampedWindow` has (value, timestamp) as values.

    Times are windows' starts, both ends inclusive. What lies `retention` or more behind the largest start
    ever put is not seen. With `retain_duplicates` each put adds an entry and None does nothing.
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
        """Sessions of all keys by end, both inclusive (`findSessions(earliestEnd, latestEnd)`)."""
        ...

    def put(self, session: Windowed, value: Value) -> None: ...
    def remove(self, session: Windowed) -> None: ...


class ListStore(Protocol):
    """Unmatched records of a stream-stream join (`KeyValueStore<TimestampedKeyAndJoinSide, LeftOrRight>`).

    Ordered by (timestamp, side, key); several values may lie under one of them. The left side is the one
    whose first byte is 1.
    """

    def add(self, timestamp: int, is_left: bool, key: Value, value: Value) -> None: ...  # noqa: FBT001
    def clear(self, timestamp: int, is_left: bool, key: Value) -> None:  # noqa: FBT001
        """Forgets all values there."""
        ...

    def all(self) -> Iterator[tuple[int, bool, Value, Value]]:
        """(timestamp, is left, key, value) in order."""
        ...


BufferedContext = tuple[int, int, str, int, Headers]
"""(timestamp, offset, topic, partition, headers) of the record that caused an entry."""


class SuppressBuffer(Protocol):
    """`TimeOrderedKeyValueChangeBuffer`: one change a key, in order of buffer time."""

    @property
    def records(self) -> int: ...
    @property
    def size(self) -> int:
        """Bytes, as Kafka Streams estimates them for the limit."""
        ...

    @property
    def min_time(self) -> int: ...
    def put(self, time: int, key: Value, change: tuple[Value, Value], context: BufferedContext) -> None: ...
    def prior(self, key: Value) -> tuple[Value, int] | bool | None:
        """The (value, timestamp) that downstream knows; False = the key is not buffered."""
        ...

    def oldest(self) -> tuple[Value, tuple[Value, Value], BufferedContext]:
        """(key, (new, old), context)."""
        ...

    def drop_oldest(self) -> None: ...


class JoinBuffer(Protocol):
    """`RocksDBTimeOrderedKeyValueBuffer`: stream records that wait for the table (stream-table grace)."""

    @property
    def min_time(self) -> int | None: ...
    def put(self, key: Value, value: Value, context: BufferedContext) -> bool:
        """False = later than the grace allows; it was not buffered."""
        ...

    def pop_until(self, time: int) -> Iterator[tuple[Value, Value, BufferedContext]]:
        """Takes out, oldest first, what lies at or before `time`."""
        ...
