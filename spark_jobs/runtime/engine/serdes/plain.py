"""Formats of one value: text, numbers, booleans, bytes (`org.apache.kafka.common.serialization`)."""

import struct
import uuid
from collections.abc import Callable, Mapping

import attrs

from spark_jobs.runtime.engine.records import Value
from spark_jobs.runtime.engine.serdes.errors import DeserializationError, SerializationError, kind_of


@attrs.frozen
class Plain:
    """A serde of two functions (`spark_jobs.runtime.engine.program_interface.Serde`)."""

    serialize: Callable[[Value], bytes]
    deserialize: Callable[[bytes], Value]


def _write_string(value: Value) -> bytes:
    try:
        encoded: bytes = value.encode()
    except (AttributeError, UnicodeEncodeError):
        raise SerializationError("string", f"it is {kind_of(value)}") from None
    return encoded


def _read_string(data: bytes) -> str:
    """Malformed parts become U+FFFD, as in Java."""
    return data.decode("utf-8", "replace")


def _write_bytes(value: Value) -> bytes:
    if not isinstance(value, bytes):
        raise SerializationError("bytes", f"it is {kind_of(value)}")
    return value


def _write_boolean(value: Value) -> bytes:
    if not isinstance(value, bool):
        raise SerializationError("boolean", f"it is {kind_of(value)}")
    return b"\x01" if value else b"\x00"


def _read_boolean(data: bytes) -> bool:
    if data not in {b"\x00", b"\x01"}:
        raise DeserializationError("boolean", f"{len(data)} byte(s), expected one that is 0 or 1")
    return data == b"\x01"


def _write_uuid(value: Value) -> bytes:
    try:
        return str(uuid.UUID(value)).encode()
    except (ValueError, AttributeError, TypeError):
        raise SerializationError("uuid", f"it is {kind_of(value)} that is no UUID") from None


def _read_uuid(data: bytes) -> str:
    try:
        return str(uuid.UUID(data.decode("ascii")))
    except ValueError:
        raise DeserializationError("uuid", f"{len(data)} byte(s) that are no UUID") from None


def _number(name: str, code: str, kinds: tuple[type, ...]) -> Plain:
    packer = struct.Struct(code)
    pack, unpack, size = packer.pack, packer.unpack, packer.size

    def write(value: Value) -> bytes:
        if type(value) not in kinds:
            raise SerializationError(name, f"it is {kind_of(value)}")
        try:
            return pack(value)
        except (struct.error, OverflowError):
            raise SerializationError(name, f"the number does not fit {size} bytes") from None

    def read(data: bytes) -> Value:
        try:
            return unpack(data)[0]
        except struct.error:
            raise DeserializationError(name, f"{len(data)} byte(s), expected {size}") from None

    return Plain(write, read)


_WHOLE = (int,)
_FLOATING = (float, int)

PLAIN: Mapping[str, Plain] = {
    "string": Plain(_write_string, _read_string),
    "bytes": Plain(_write_bytes, lambda data: data),
    "boolean": Plain(_write_boolean, _read_boolean),
    "uuid": Plain(_write_uuid, _read_uuid),
    "long": _number("long", ">q", _WHOLE),
    "integer": _number("integer", ">i", _WHOLE),
    "short": _number("short", ">h", _WHOLE),
    "double": _number("double", ">d", _FLOATING),
    "float": _number("float", ">f", _FLOATING),
}


def reads_anything(serde: object) -> bool:
    """Whether any bytes are a value to it: nothing is found by reading them."""
    return serde is PLAIN["string"] or serde is PLAIN["bytes"]
