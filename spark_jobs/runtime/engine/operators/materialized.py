"""The store of a table: reads, writes, and the changes to forward.

Follows `KeyValueStoreWrapper`, `TimestampedTupleForwarder` and `TimestampedCacheFlushListener`.
Without a record cache, each update is forwarded at once. With a cache, each key is forwarded once when the
batch ends: the latest value, and as old value the one before the batch. A key that is created and deleted
within the batch is not forwarded.
"""

from collections.abc import Callable
from typing import Protocol

from spark_jobs.runtime.engine.operators.interface import OperatorContext
from spark_jobs.runtime.engine.records import Context, Headers, Value
from spark_jobs.runtime.engine.stores.interfaces import NOT_PUT
from spark_jobs.runtime.engine.stores.key_value import TimestampedKeyValueBytes
from spark_jobs.runtime.engine.stores.layers import (
    TIMESTAMP,
    Cached,
    StoreBytes,
    read_timestamp,
    with_timestamp,
)
from spark_jobs.runtime.engine.stores.versioned import VersionedBytes


class TableStore(Protocol):
    """The store of a table, as its operator uses it."""

    def get(self, key: Value) -> tuple[Value, int] | None:
        """Return the current (value, timestamp); None = no row."""
        ...

    def update(self, key: Value, new: Value, old: Value, time: int, at: tuple[int, Headers]) -> None:
        """Put `new` (None = delete) with timestamp `time`, and forward the change, now or at the batch's end.

        `old` is forwarded if the node sends old values; `at` = (timestamp, headers) of the current record.
        """
        ...


def table_store(name: str, context: OperatorContext, *, sends_old: bool) -> TableStore:
    """Return the store of a table without windows, timestamped or versioned."""
    typed = context.task.typed_store(name)
    if isinstance(typed, VersionedBytes):
        return _VersionedTable(typed, context, sends_old=sends_old)
    return _TimestampedTable(typed, context, sends_old=sends_old)


Decode = Callable[[bytes], Value]


class Forwarding:
    """Puts values into a store and forwards changes: at once, or when the cache is flushed.

    Args:
        below: The bytes of the store.
        decode_key: Key in the store → key to forward.
        decode: Bytes of a value → value.
        timestamped: Values start with their timestamp. Otherwise keys are sessions: a change has the time of
            its session's end (`SessionCacheFlushListener`).
    """

    __slots__ = (
        "_current",
        "_decode",
        "_decode_key",
        "_forward",
        "_sends_old",
        "_timestamped",
        "cached",
        "put",
    )

    def __init__(
        self,
        below: StoreBytes,
        context: OperatorContext,
        decode_key: Decode,
        decode: Decode,
        *,
        sends_old: bool,
        timestamped: bool = True,
    ) -> None:
        self.put = below.put
        self.cached = isinstance(below, Cached)
        self._decode_key = decode_key
        self._decode = decode
        self._forward = context.forward
        self._sends_old = sends_old
        self._timestamped = timestamped
        self._current = context.task.current
        if isinstance(below, Cached):
            below.listen(self._flushed)

    def forward(self, key: Value, new: Value, old: Value, time: int, headers: Headers) -> None:
        """Forward a change, unless the cache forwards it later."""
        if not self.cached:
            self._forward(key, (new, old if self._sends_old else None, True), time, headers)

    def _flushed(self, key: bytes, new: bytes | None, old: bytes | None, context: Context) -> None:
        time, headers, self._current.record = context
        decoded = self._decode_key(key)
        if not self._timestamped:
            time = decoded.end
        elif new is not None:
            time = read_timestamp(new)
        change = (self._value(new), self._value(old) if self._sends_old else None, True)
        self._forward(decoded, change, time, headers)

    def _value(self, stored: bytes | None) -> Value:
        if stored is None:
            return None
        return self._decode(stored[TIMESTAMP:] if self._timestamped else stored)


class _TimestampedTable:
    def __init__(self, typed: TimestampedKeyValueBytes, context: OperatorContext, *, sends_old: bool) -> None:
        key, value = typed.key_serde, typed.value_serde
        self._read = typed.below.get
        self._deserialize = value.deserialize
        self._serialize_key = key.serialize
        self._serialize = value.serialize
        self._current = context.task.current
        self._forwarding = Forwarding(
            typed.below, context, key.deserialize, value.deserialize, sends_old=sends_old
        )

    def get(self, key: Value) -> tuple[Value, int] | None:
        stored = self._read(self._serialize_key(key))
        if stored is None:
            return None
        return self._deserialize(stored[TIMESTAMP:]), read_timestamp(stored)

    def update(self, key: Value, new: Value, old: Value, time: int, at: tuple[int, Headers]) -> None:
        now, headers = at
        stored = None if new is None else with_timestamp(self._serialize(new), time)
        self._forwarding.put(self._serialize_key(key), stored, (now, headers, self._current.record))
        self._forwarding.forward(key, new, old, time, headers)


class _VersionedTable:
    """Never cached. An update older than the history is not forwarded."""

    def __init__(self, typed: VersionedBytes, context: OperatorContext, *, sends_old: bool) -> None:
        self._typed = typed
        self._forward = context.forward
        self._sends_old = sends_old

    def get(self, key: Value) -> tuple[Value, int] | None:
        found = self._typed.get(key)
        return None if found is None else found[:2]

    def update(self, key: Value, new: Value, old: Value, time: int, at: tuple[int, Headers]) -> None:
        valid_to = self._typed.put(key, new, time)
        if valid_to != NOT_PUT:
            self._forward(key, (new, old if self._sends_old else None, valid_to is None), time, at[1])
