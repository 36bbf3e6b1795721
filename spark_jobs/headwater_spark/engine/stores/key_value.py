"""Key-value stores, plain and timestamped."""

from collections.abc import Callable, Iterable, Iterator

from headwater_spark.engine.program_interface import Serde
from headwater_spark.engine.records import Context, Value, ValueAndTimestamp
from headwater_spark.engine.stores.layers import (
    TIMESTAMP,
    StoreBytes,
    next_prefix,
    read_timestamp,
    with_timestamp,
)


class KeyValueBytes:
    """`KeyValueStore`; subclasses override `_encode` and `_decode`."""

    def __init__(self, below: StoreBytes, key: Serde, value: Serde, context: Callable[[], Context]) -> None:
        self.below = below
        self.key_serde = key
        self.value_serde = value
        self._serialize_key = key.serialize
        self._deserialize_key = key.deserialize
        self._serialize = value.serialize
        self._deserialize = value.deserialize
        self._context = context
        self._get = below.get

    def get(self, key: Value) -> Value:
        stored = self._get(self._serialize_key(key))
        return None if stored is None else self._decode(stored)

    def put(self, key: Value, value: Value) -> None:
        stored = None if value is None else self._encode(value)
        self.below.put(self._serialize_key(key), stored, self._context())

    def put_if_absent(self, key: Value, value: Value) -> Value:
        previous = self.get(key)
        if previous is None:
            self.put(key, value)
        return previous

    def put_all(self, entries: Iterable[tuple[Value, Value]]) -> None:
        for key, value in entries:
            self.put(key, value)

    def delete(self, key: Value) -> Value:
        previous = self.get(key)
        self.put(key, None)
        return previous

    def range(self, first: Value = None, last: Value = None) -> Iterator[tuple[Value, Value]]:
        return self._typed(self.below.range(*self._bounds(first, last)))

    def reverse_range(self, first: Value = None, last: Value = None) -> Iterator[tuple[Value, Value]]:
        return self._typed(self.below.reverse_range(*self._bounds(first, last)))

    def all(self) -> Iterator[tuple[Value, Value]]:
        return self.range()

    def reverse_all(self) -> Iterator[tuple[Value, Value]]:
        return self.reverse_range()

    def prefix_scan(self, prefix: bytes) -> Iterator[tuple[Value, Value]]:
        return self._typed(self.below.range(prefix, next_prefix(prefix)))

    def approximate_num_entries(self) -> int:
        return sum(1 for _ in self.below.overlay.range())

    def _bounds(self, first: Value, last: Value) -> tuple[bytes, bytes | None]:
        start = b"" if first is None else self._serialize_key(first)
        return start, None if last is None else self._serialize_key(last) + b"\0"

    def _typed(self, pairs: Iterator[tuple[bytes, bytes]]) -> Iterator[tuple[Value, Value]]:
        deserialize_key, decode = self._deserialize_key, self._decode
        return ((deserialize_key(key), decode(value)) for key, value in pairs)

    def _encode(self, value: Value) -> bytes:
        return self._serialize(value)

    def _decode(self, stored: bytes) -> Value:
        return self._deserialize(stored)


class TimestampedKeyValueBytes(KeyValueBytes):
    """`TimestampedKeyValueStore`: values are (value, timestamp); a pair of (None, t) deletes."""

    def put(self, key: Value, value: tuple[Value, int] | None) -> None:
        super().put(key, None if value is None or value[0] is None else value)

    def _encode(self, value: tuple[Value, int]) -> bytes:
        return with_timestamp(self._serialize(value[0]), value[1])

    def _decode(self, stored: bytes) -> ValueAndTimestamp:
        return ValueAndTimestamp(self._deserialize(stored[TIMESTAMP:]), read_timestamp(stored))
