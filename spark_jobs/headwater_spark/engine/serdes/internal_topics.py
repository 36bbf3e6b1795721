"""Values of internal topics: changes (`KTable#groupBy`), and messages of foreign-key joins.

Follows `ChangedSerializer`, `SubscriptionWrapperSerde` and `SubscriptionResponseWrapperSerde`.
"""

import struct
from typing import NamedTuple

from headwater_spark.engine.program_interface import Serde
from headwater_spark.engine.records import Value
from headwater_spark.engine.serdes.plain import DeserializationError, Plain, SerializationError

_OLD, _NEW, _BOTH = range(3)
_CONTINUES = 0x80


def changed_serde(inner: Serde) -> Plain:
    """Return the serde of changes (new, old, is latest), for the repartition topic of `KTable#groupBy`."""
    serialize, deserialize = inner.serialize, inner.deserialize

    def write(change: Value) -> bytes:
        new, old = change[0], change[1]
        if new is None:
            if old is None:
                raise SerializationError("change", "neither an old nor a new value")
            return serialize(old) + b"\x00"
        new_bytes = serialize(new)
        if old is None:
            return new_bytes + b"\x01"
        return _write_varint(len(new_bytes)) + new_bytes + serialize(old) + b"\x02"

    def read(data: bytes) -> Value:
        kind = data[-1] if data else -1
        if kind == _NEW:
            return (deserialize(data[:-1]), None, True)
        if kind == _OLD:
            return (None, deserialize(data[:-1]), True)
        if kind == _BOTH:
            length, start = _read_varint(data)
            middle = start + length
            if length < 0 or middle > len(data) - 1:
                raise DeserializationError("change", "the new value is longer than the record")
            return (deserialize(data[start:middle]), deserialize(data[middle:-1]), True)
        raise DeserializationError("change", f"kind {kind}, expected 0, 1 or 2 as the last byte")

    return Plain(write, read)


def _write_varint(value: int) -> bytes:
    """Return the zig-zag encoding with seven bits per byte (`ByteUtils#writeVarint`); `value` ≥ 0."""
    value <<= 1
    written = bytearray()
    while value >= _CONTINUES:
        written.append((value & 0x7F) | _CONTINUES)
        value >>= 7
    written.append(value)
    return bytes(written)


def _read_varint(data: bytes) -> tuple[int, int]:
    """Return the number and the position after it."""
    value = shift = 0
    for position, byte in enumerate(data[:5]):
        value |= (byte & 0x7F) << shift
        if byte < _CONTINUES:
            return (value >> 1) ^ -(value & 1), position + 1
        shift += 7
    raise DeserializationError("change", "the length of the new value is malformed")


DELETE_QUIETLY, DELETE_AND_PROPAGATE, NULL_IF_MISSING, ONLY_IF_PRESENT = range(4)
"""`SubscriptionWrapper.Instruction`."""

_HASH_BYTES = 16
_SUBSCRIPTION_HEAD = 2
_HASH_IS_NULL = 0x80
_PARTITION = struct.Struct(">i")
VERSION_WITHOUT_PARTITION, LATEST_VERSION = 0, 1
"""Versions of subscriptions; those before Kafka Streams 3.4 have no partition."""


class Subscription(NamedTuple):
    """A subscription of a left row to a right row; `hash` is of the left value, None for a deletion."""

    hash: bytes | None
    instruction: int
    key: Value
    partition: int | None
    """The partition of the left task, for the response; None in version 0: the partition of the key."""
    version: int = LATEST_VERSION


class Response(NamedTuple):
    """The right value for a left row. `partition` is the target partition; it is not serialized."""

    hash: bytes | None
    value: Value
    partition: int | None = None


def subscription_serde(left_key: Serde) -> Plain:
    """Return the serde of `version and null flag ‖ instruction ‖ hash ‖ left key ‖ partition`."""
    serialize, deserialize = left_key.serialize, left_key.deserialize

    def write(message: Value) -> bytes:
        first = message.version | (_HASH_IS_NULL if message.hash is None else 0)
        head = bytes((first, message.instruction)) + (message.hash or b"") + serialize(message.key)
        if message.version == VERSION_WITHOUT_PARTITION:
            return head
        return head + _PARTITION.pack(message.partition)

    def read(data: bytes) -> Value:
        version, hashed, start = _read_head(data, _SUBSCRIPTION_HEAD)
        end = len(data) if version == VERSION_WITHOUT_PARTITION else len(data) - _PARTITION.size
        if end < start or version > LATEST_VERSION or data[1] > ONLY_IF_PRESENT:
            raise DeserializationError("subscription", f"version {version}, {len(data)} byte(s)")
        partition = None if version == VERSION_WITHOUT_PARTITION else _PARTITION.unpack_from(data, end)[0]
        return Subscription(hashed, data[1], deserialize(data[start:end]), partition, version)

    return Plain(write, read)


def names_processor(subscription: bytes) -> bool:
    """Return whether a subscription names the processor that gets the response.

    Subscriptions of applications with `processors` name none, unless they were written before the document
    declared `processors`.
    An empty value is no subscription of Kafka Streams.
    """
    return bool(subscription) and subscription[0] & ~_HASH_IS_NULL != VERSION_WITHOUT_PARTITION


def without_processor(subscription: bytes) -> bytes:
    """Return a subscription whose response goes to the partition of the left key."""
    first = subscription[0] & _HASH_IS_NULL | VERSION_WITHOUT_PARTITION
    return bytes((first,)) + subscription[1 : -_PARTITION.size]


def named_partition(subscription: bytes) -> int:
    """Return the partition in a subscription that names one."""
    (partition,) = _PARTITION.unpack(subscription[-_PARTITION.size :])
    return int(partition)


def subscription_to(subscription: bytes, partition: int) -> bytes:
    """Return a subscription that names another partition."""
    return subscription[: -_PARTITION.size] + _PARTITION.pack(partition)


def left_key_of(subscription: bytes) -> bytes:
    """Return the key of the left row in a subscription that names a partition.

    Source: `SubscriptionWrapperSerde`: version and null flag ‖ instruction ‖ hash ‖ left key ‖ partition.
    """
    start = _SUBSCRIPTION_HEAD + (0 if subscription[0] & _HASH_IS_NULL else _HASH_BYTES)
    return subscription[start : -_PARTITION.size]


def response_serde(right_value: Serde) -> Plain:
    """Return the serde of `version and null flag ‖ hash ‖ right value`; a null value is omitted."""
    serialize, deserialize = right_value.serialize, right_value.deserialize

    def write(message: Value) -> bytes:
        head = b"\x80" if message.hash is None else b"\x00" + message.hash
        return head if message.value is None else head + serialize(message.value)

    def read(data: bytes) -> Value:
        version, hashed, start = _read_head(data, 1)
        if version != 0:
            raise DeserializationError("response", f"version {version}, expected 0")
        return Response(hashed, deserialize(data[start:]) if len(data) > start else None)

    return Plain(write, read)


def _read_head(data: bytes, fixed: int) -> tuple[int, bytes | None, int]:
    """Return version, hash and the position after the hash; `fixed` bytes are before the hash."""
    if len(data) < fixed:
        raise DeserializationError("foreign-key message", f"{len(data)} byte(s)")
    if data[0] & _HASH_IS_NULL:
        return data[0] & 0x7F, None, fixed
    end = fixed + _HASH_BYTES
    if len(data) < end:
        raise DeserializationError("foreign-key message", f"{len(data)} byte(s), too short for its hash")
    return data[0], data[fixed:end], end


_SEED = 104729
_MASK = 0xFFFF_FFFF_FFFF_FFFF
_C1 = 0x87C3_7B91_1142_53D5
_C2 = 0x4CF5_AD43_2745_937F
_BLOCK = struct.Struct("<QQ")
_RESULT = struct.Struct(">QQ")


def murmur3_128(data: bytes) -> bytes:
    """Return the hash that foreign-key joins use (`Murmur3#hash128`): two longs, big endian."""
    length = len(data)
    h1 = h2 = _SEED
    whole = length & ~15
    for offset in range(0, whole, 16):
        k1, k2 = _BLOCK.unpack_from(data, offset)
        h1 ^= _mix_block(k1, _C1, 31, _C2)
        h1 = ((_rotate_left(h1, 27) + h2) * 5 + 0x52DC_E729) & _MASK
        h2 ^= _mix_block(k2, _C2, 33, _C1)
        h2 = ((_rotate_left(h2, 31) + h1) * 5 + 0x3849_5AB5) & _MASK
    if whole < length:
        k1, k2 = _BLOCK.unpack(data[whole:].ljust(16, b"\x00"))
        h2 ^= _mix_block(k2, _C2, 33, _C1)
        h1 ^= _mix_block(k1, _C1, 31, _C2)
    h1 ^= length
    h2 ^= length
    h1 = (h1 + h2) & _MASK
    h2 = (h2 + h1) & _MASK
    h1, h2 = _finish_hash(h1), _finish_hash(h2)
    h1 = (h1 + h2) & _MASK
    return _RESULT.pack(h1, (h2 + h1) & _MASK)


def _rotate_left(value: int, by: int) -> int:
    return ((value << by) | (value >> (64 - by))) & _MASK


def _mix_block(block: int, first: int, by: int, second: int) -> int:
    return (_rotate_left((block * first) & _MASK, by) * second) & _MASK


def _finish_hash(value: int) -> int:
    value ^= value >> 33
    value = (value * 0xFF51_AFD7_ED55_8CCD) & _MASK
    value ^= value >> 33
    value = (value * 0xC4CE_B9FE_1A85_EC53) & _MASK
    return value ^ (value >> 33)
