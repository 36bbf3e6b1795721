"""Key-value stores, plain and timestamped, and the store of unmatched records of stream-stream joins.

That store is `ListValueStore` with `TimestampedKeyAndJoinSide`.
An entry key is `timestamp(8) ‖ side(1; 1 = left) ‖ key`. A value of the list is `side(1) ‖ value`
(`LeftOrRightValue`). The list is written as by `ListSerializer`: `1 ‖ count(4) ‖ (length(4) ‖ value)...`.
"""

from collections.abc import Callable, Iterable, Iterator

from headwater_spark.engine.program_interface import Serde
from headwater_spark.engine.records import Context, Value, ValueAndTimestamp
from headwater_spark.engine.stores.layers import (
    TIMESTAMP,
    Logged,
    StoreBytes,
    next_prefix,
    read_timestamp,
    with_timestamp,
)

_TIME = 8
_SIDE = 1
_INT = 4
_LEFT = b"\1"
_RIGHT = b"\0"
_VARIABLE_SIZE = b"\1"


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
        return self._decode_pairs(self.below.range(*self._key_bounds(first, last)))

    def reverse_range(self, first: Value = None, last: Value = None) -> Iterator[tuple[Value, Value]]:
        return self._decode_pairs(self.below.reverse_range(*self._key_bounds(first, last)))

    def all(self) -> Iterator[tuple[Value, Value]]:
        return self.range()

    def reverse_all(self) -> Iterator[tuple[Value, Value]]:
        return self.reverse_range()

    def prefix_scan(self, prefix: bytes) -> Iterator[tuple[Value, Value]]:
        return self._decode_pairs(self.below.range(prefix, next_prefix(prefix)))

    def approximate_num_entries(self) -> int:
        return sum(1 for _ in self.below.overlay.range())

    def _key_bounds(self, first: Value, last: Value) -> tuple[bytes, bytes | None]:
        start = b"" if first is None else self._serialize_key(first)
        return start, None if last is None else self._serialize_key(last) + b"\0"

    def _decode_pairs(self, pairs: Iterator[tuple[bytes, bytes]]) -> Iterator[tuple[Value, Value]]:
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


class ListBytes:
    """Unmatched records of a stream-stream join (`KeyValueStore<TimestampedKeyAndJoinSide, LeftOrRight>`).

    Ordered by (timestamp, side, key); an entry has one or more values. The side byte is 1 for the left side.
    Left and right values have different serdes.
    """

    def __init__(
        self,
        below: Logged,
        key: Serde,
        left: Serde,
        right: Serde,
        context: Callable[[], Context],
    ) -> None:
        self.below = below
        self._key = key
        self._serdes = {True: left, False: right}
        self._context = context
        self._from = b""

    def add(self, timestamp: int, is_left: bool, key: Value, value: Value) -> None:  # noqa: FBT001
        side = _LEFT if is_left else _RIGHT
        entry = side + self._serdes[is_left].serialize(value)
        entry_key = self._entry_key(timestamp, is_left, key)
        stored = self.below.overlay.get(entry_key)
        entries = [*_split_entries(stored), entry] if stored is not None else [entry]
        self.below.put(entry_key, _join_entries(entries), self._context())
        self._from = min(self._from, entry_key)

    def clear(self, timestamp: int, is_left: bool, key: Value) -> None:  # noqa: FBT001
        """Delete the entry with all its values."""
        self.delete(self._entry_key(timestamp, is_left, key))

    def delete(self, entry_key: bytes) -> None:
        """Delete the entry that `all` returned with this key, with all its values."""
        self.below.put(entry_key, None, self._context())

    def all(self) -> Iterator[tuple[bytes, int, bool, Value, Value]]:
        """Return (entry key, timestamp, is left, key, value) in order."""
        for entry_key, stored in self._entries_from_first():
            timestamp = int.from_bytes(entry_key[:_TIME], "big")
            is_left = entry_key[_TIME : _TIME + _SIDE] == _LEFT
            key = self._key.deserialize(entry_key[_TIME + _SIDE :])
            for entry in _split_entries(stored):
                yield entry_key, timestamp, is_left, key, self._serdes[is_left].deserialize(entry[_SIDE:])

    def holds(self, timestamp: int, is_left: bool, key: Value) -> bool:  # noqa: FBT001
        return self.below.overlay.get(self._entry_key(timestamp, is_left, key)) is not None

    def _entries_from_first(self) -> Iterator[tuple[bytes, bytes]]:
        """Read from the first entry found last time, so that cleared entries are not read again."""
        entries = self.below.overlay.range(self._from)
        first = next(entries, None)
        if first is not None:
            self._from = first[0]
            yield first
            yield from entries

    def _entry_key(self, timestamp: int, is_left: bool, key: Value) -> bytes:  # noqa: FBT001
        side = _LEFT if is_left else _RIGHT
        return timestamp.to_bytes(_TIME, "big") + side + self._key.serialize(key)


def _join_entries(entries: list[bytes]) -> bytes:
    head = _VARIABLE_SIZE + len(entries).to_bytes(_INT, "big")
    return head + b"".join(len(entry).to_bytes(_INT, "big") + entry for entry in entries)


def _split_entries(stored: bytes) -> Iterator[bytes]:
    at = 1 + _INT
    while at < len(stored):
        end = at + _INT + int.from_bytes(stored[at : at + _INT], "big")
        yield stored[at + _INT : end]
        at = end
