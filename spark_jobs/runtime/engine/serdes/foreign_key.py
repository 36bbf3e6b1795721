"""Messages of foreign-key joins (facts 6): `SubscriptionWrapperSerde`, `SubscriptionResponseWrapperSerde`."""

import struct
from typing import NamedTuple

from spark_jobs.runtime.engine.program_interface import Serde
from spark_jobs.runtime.engine.records import Value
from spark_jobs.runtime.engine.serdes.errors import DeserializationError
from spark_jobs.runtime.engine.serdes.plain import Plain

DELETE_QUIETLY, DELETE_AND_PROPAGATE, NULL_IF_MISSING, ONLY_IF_PRESENT = range(4)
"""`SubscriptionWrapper.Instruction`."""

_HASH_BYTES = 16
_HASH_IS_NULL = 0x80
_PARTITION = struct.Struct(">i")
_LATEST_VERSION = 1


class Subscription(NamedTuple):
    """What a left row wants of the right table; `hash` is that of the left value, None for a deletion."""

    hash: bytes | None
    instruction: int
    key: Value
    partition: int | None
    """Of the left task, where the answer goes; None in messages of before 3.4 (version 0)."""
    version: int = _LATEST_VERSION


class Response(NamedTuple):
    """The right value for a left row; `partition` is not written, it says where the message goes."""

    hash: bytes | None
    value: Value
    partition: int | None = None


def subscription_serde(left_key: Serde) -> Plain:
    """Version and null flag ‖ instruction ‖ hash ‖ left key ‖ partition."""
    serialize, deserialize = left_key.serialize, left_key.deserialize

    def write(message: Value) -> bytes:
        first = message.version | (_HASH_IS_NULL if message.hash is None else 0)
        head = bytes((first, message.instruction)) + (message.hash or b"") + serialize(message.key)
        return head if message.version == 0 else head + _PARTITION.pack(message.partition)

    def read(data: bytes) -> Value:
        version, hashed, start = _head(data, 2)
        end = len(data) if version == 0 else len(data) - _PARTITION.size
        if end < start or version > _LATEST_VERSION or data[1] > ONLY_IF_PRESENT:
            raise DeserializationError("subscription", f"version {version}, {len(data)} byte(s)")
        partition = None if version == 0 else _PARTITION.unpack_from(data, end)[0]
        return Subscription(hashed, data[1], deserialize(data[start:end]), partition, version)

    return Plain(write, read)


def response_serde(right_value: Serde) -> Plain:
    """Version and null flag ‖ hash ‖ right value, nothing for null."""
    serialize, deserialize = right_value.serialize, right_value.deserialize

    def write(message: Value) -> bytes:
        head = b"\x80" if message.hash is None else b"\x00" + message.hash
        return head if message.value is None else head + serialize(message.value)

    def read(data: bytes) -> Value:
        version, hashed, start = _head(data, 1)
        if version != 0:
            raise DeserializationError("response", f"version {version}, expected 0")
        return Response(hashed, deserialize(data[start:]) if len(data) > start else None)

    return Plain(write, read)


def _head(data: bytes, fixed: int) -> tuple[int, bytes | None, int]:
    """Version, hash and where the rest starts; `fixed` bytes stand before the hash."""
    if len(data) < fixed:
        raise DeserializationError("foreign-key message", f"{len(data)} byte(s)")
    if data[0] & _HASH_IS_NULL:
        return data[0] & 0x7F, None, fixed
    end = fixed + _HASH_BYTES
    if len(data) < end:
        raise DeserializationError("foreign-key message", f"{len(data)} byte(s), too short for its hash")
    return data[0], data[fixed:end], end
