"""The store of a table: reads, writes, and the changes to forward.

Follows `KeyValueStoreWrapper`, `TimestampedTupleForwarder` and `TimestampedCacheFlushListener`.
Without a record cache, each update is forwarded at once. With a cache, each key is forwarded once when the
batch ends: the latest value, and as old value the one before the batch. A key that is created and deleted
within the batch is not forwarded.
"""

from collections.abc import Callable
from typing import Protocol

from headwater_spark.engine.operators.interface import OperatorContext
from headwater_spark.engine.records import Context, Headers, Value
from headwater_spark.engine.stores.cached import Cached
from headwater_spark.engine.stores.interfaces import NOT_PUT
from headwater_spark.engine.stores.key_value import TimestampedKeyValueBytes
from headwater_spark.engine.stores.layers import TIMESTAMP, StoreBytes, read_timestamp, with_timestamp
from headwater_spark.engine.stores.versioned import VersionedBytes

Get = Callable[[Value], tuple[Value, int] | None]
"""Returns the current (value, timestamp) of a key, None = no row. The caller updates the key next."""

Update = Callable[[Value, Value, Value, int, tuple[int, Headers]], None]
"""(key, new, old, time, at): puts `new` (None = delete) with timestamp `time`, and forwards the change.

It is forwarded now or at the batch's end. `old` is forwarded if the node sends old values; `at` = (timestamp,
headers) of the current record.
"""


class TableStore(Protocol):
    """The store of a table, as its operator uses it."""

    @property
    def get(self) -> Get: ...
    @property
    def read(self) -> Callable[[Value], object]:
        """Read a row as `get` does, for a caller that does not need its value."""
        ...

    @property
    def update(self) -> Update: ...


def table_store(name: str, context: OperatorContext, *, sends_old: bool) -> TableStore:
    """Return the store of a table without windows, timestamped or versioned."""
    typed = context.task.stores.typed_store(name)
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
            below.listen(self._forward_flushed, needs_old=sends_old)

    def forward(self, key: Value, new: Value, old: Value, time: int, headers: Headers) -> None:
        """Forward a change, unless the cache forwards it later."""
        if not self.cached:
            self._forward(key, (new, old if self._sends_old else None, True), time, headers)

    def _forward_flushed(self, key: bytes, new: bytes | None, old: bytes | None, context: Context) -> None:
        time, headers, self._current.record = context
        decoded = self._decode_key(key)
        if not self._timestamped:
            time = decoded.end
        elif new is not None:
            time = read_timestamp(new)
        change = (self._read_value(new), self._read_value(old) if self._sends_old else None, True)
        self._forward(decoded, change, time, headers)

    def _read_value(self, stored: bytes | None) -> Value:
        if stored is None:
            return None
        return self._decode(stored[TIMESTAMP:] if self._timestamped else stored)


class _TimestampedTable:
    def __init__(self, typed: TimestampedKeyValueBytes, context: OperatorContext, *, sends_old: bool) -> None:
        key, value = typed.key_serde, typed.value_serde
        forwarding = Forwarding(typed.below, context, key.deserialize, value.deserialize, sends_old=sends_old)
        read, serialize_key = read_before_put(typed.below, context), key.serialize
        self.get: Get = _table_getter(typed, read)
        self.read: Callable[[Value], object] = lambda key: read(serialize_key(key))
        self.update: Update = _table_updater(typed, context, forwarding)


def read_before_put(below: StoreBytes, context: OperatorContext) -> Callable[[bytes], bytes | None]:
    """Return the function that reads a key which the operator puts next.

    If failures are skipped, a record that fails between the two has read the store only.
    """
    fails = context.task.program.settings.on_processing_error == "fail"
    return below.get_before_put if fails else below.get


def _table_getter(typed: TimestampedKeyValueBytes, read: Callable[[bytes], bytes | None]) -> Get:
    serialize_key, deserialize = typed.key_serde.serialize, typed.value_serde.deserialize

    def get(key: Value) -> tuple[Value, int] | None:
        stored = read(serialize_key(key))
        if stored is None:
            return None
        return deserialize(stored[TIMESTAMP:]), read_timestamp(stored)

    return get


def _table_updater(
    typed: TimestampedKeyValueBytes, context: OperatorContext, forwarding: Forwarding
) -> Update:
    serialize_key, serialize = typed.key_serde.serialize, typed.value_serde.serialize
    current, put = context.task.current, forwarding.put
    forward = None if forwarding.cached else forwarding.forward

    def update(key: Value, new: Value, old: Value, time: int, at: tuple[int, Headers]) -> None:
        now, headers = at
        stored = None if new is None else with_timestamp(serialize(new), time)
        put(serialize_key(key), stored, (now, headers, current.record))
        if forward is not None:
            forward(key, new, old, time, headers)

    return update


class _VersionedTable:
    """Never cached. An update older than the history is not forwarded."""

    def __init__(self, typed: VersionedBytes, context: OperatorContext, *, sends_old: bool) -> None:
        self._typed = typed
        self._forward = context.forward
        self._sends_old = sends_old

    def read(self, key: Value) -> None:
        """Do nothing: there is no cache."""

    def get(self, key: Value) -> tuple[Value, int] | None:
        found = self._typed.get(key)
        return None if found is None else found[:2]

    def update(self, key: Value, new: Value, old: Value, time: int, at: tuple[int, Headers]) -> None:
        valid_to = self._typed.put(key, new, time)
        if valid_to != NOT_PUT:
            self._forward(key, (new, old if self._sends_old else None, valid_to is None), time, at[1])
