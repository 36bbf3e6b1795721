"""Serdes of single values and of windowed keys, and equality of values as in Java, where Python's differs.

Follows `org.apache.kafka.common.serialization`, `TimeWindowedSerializer` and `SessionWindowedSerializer`.

In Python, `1 == 1.0 == True` and `0.0 == -0.0`, and NaN differs from itself. In Java, numbers of different
types and the two zeros differ, and NaN equals itself (`Double#equals`; `IntNode`, `DoubleNode`, `BooleanNode`
of Jackson).
"""

import operator
import struct
from collections.abc import Callable, Mapping
from math import copysign, isnan

import attrs

from headwater_spark.engine.records import Value, Windowed
from headwater_spark.engine.serdes.java_texts import normalize_uuid, read_utf8


def equal_in_java(one: Value, other: Value) -> bool:
    """Return whether two values of one format are equal; the order of an object's fields does not matter.

    It calls no function for values in values: these may be nested more deeply than Python's calls.
    """
    pending = [(one, other)]
    while pending:
        one, other = pending.pop()
        if one is other:
            continue
        kind = type(one)
        if kind is not type(other):
            return False
        if kind is float:
            if not _equal_floats(one, other):
                return False
        elif kind is dict:
            if one.keys() != other.keys():
                return False
            pending += [(member, other[name]) for name, member in one.items()]
        elif isinstance(one, (list, tuple)):
            if len(one) != len(other):
                return False
            pending += zip(one, other, strict=True)
        elif one != other:
            return False
    return True


def _equal_floats(one: float, other: float) -> bool:
    if one == other:
        return copysign(1.0, one) == copysign(1.0, other)
    return isnan(one) and isnan(other)


def equal_in_bytes(serialize: Callable[[Value], bytes]) -> Callable[[Value, Value], bool]:
    """Return a function that compares the bytes of two values; values that cannot be serialized differ."""

    def equal(one: Value, other: Value) -> bool:
        try:
            return serialize(one) == serialize(other)
        except ValueError:
            return False

    return equal


class DeserializationError(ValueError):
    """Bytes are not valid in their format. The text names the format and the fault, not the content."""

    def __init__(self, format_name: str, fault: str) -> None:
        super().__init__(f"invalid {format_name} value: {fault}")


class SerializationError(ValueError):
    """A value cannot be written in its format. The text names the format and the fault, not the value."""

    def __init__(self, format_name: str, fault: str) -> None:
        super().__init__(f"the value cannot be written as {format_name}: {fault}")
        self.fault = fault


def kind_of(value: object) -> str:
    """Return the type of a value for messages."""
    return _KINDS.get(type(value), type(value).__name__)


_KINDS = {
    str: "a string",
    int: "a whole number",
    float: "a floating-point number",
    bool: "a boolean",
    bytes: "bytes",
    dict: "an object",
    list: "an array",
    type(None): "null",
}


@attrs.frozen
class Plain:
    """A serde (`program_interface.Serde`)."""

    serialize: Callable[[Value], bytes]
    deserialize: Callable[[bytes], Value]
    equal: Callable[[Value, Value], bool] = operator.eq


def _write_string(value: Value) -> bytes:
    """Replace halves of surrogate pairs by a question mark, as Java does."""
    try:
        encoded: bytes = value.encode("utf-8", "replace")
    except AttributeError:
        raise SerializationError("string", f"it is {kind_of(value)}") from None
    return encoded


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
        return normalize_uuid(value).encode()
    except (ValueError, AttributeError, TypeError):
        raise SerializationError("uuid", f"it is {kind_of(value)}, not a UUID") from None


def _read_uuid(data: bytes) -> str:
    try:
        return normalize_uuid(read_utf8(data))
    except ValueError:
        raise DeserializationError("uuid", f"{len(data)} byte(s) that are not a UUID") from None


def _number_serde(name: str, code: str, kinds: tuple[type, ...]) -> Plain:
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


def _floating_serde(name: str, code: str) -> Plain:
    """Return a serde whose whole numbers are floating-point numbers, too; NaN equals each NaN."""
    number = _number_serde(name, code, (float, int))
    equal_bytes = equal_in_bytes(number.serialize)

    def equal(one: Value, other: Value) -> bool:
        return equal_in_java(one, other) or equal_bytes(one, other)

    return Plain(number.serialize, number.deserialize, equal)


def _double_serde() -> Plain:
    """Return the serde of doubles; it writes the same bytes for each NaN (`Double#doubleToLongBits`)."""
    number = _floating_serde("double", ">d")
    write_number = number.serialize

    def write(value: Value) -> bytes:
        return write_number(value) if value == value else _NAN  # noqa: PLR0124 - NaN

    return Plain(write, number.deserialize, number.equal)


_NAN = bytes.fromhex("7ff8000000000000")
_WHOLE = (int,)

PLAIN: Mapping[str, Plain] = {
    "string": Plain(_write_string, read_utf8),
    "bytes": Plain(_write_bytes, lambda data: data),
    "boolean": Plain(_write_boolean, _read_boolean),
    "uuid": Plain(_write_uuid, _read_uuid, equal_in_bytes(_write_uuid)),
    "long": _number_serde("long", ">q", _WHOLE),
    "integer": _number_serde("integer", ">i", _WHOLE),
    "short": _number_serde("short", ">h", _WHOLE),
    "double": _double_serde(),
    "float": _floating_serde("float", ">f"),
}


def reads_anything(serde: object) -> bool:
    """Return whether any bytes are valid in the format, so that reading them cannot fail."""
    return serde is PLAIN["string"] or serde is PLAIN["bytes"]


def reads_as_written(serde: object) -> bool:
    """Return whether each value of the format is read as it was written.

    A `float` is rounded, a whole number is read from a `double` with a fraction, and objects of formats with
    a schema get the defaults of missing fields. Halves of surrogate pairs, which only escapes of JSON have,
    are written to a `string` as question marks.
    """
    return any(serde is PLAIN[name] for name in _READ_AS_WRITTEN)


_READ_AS_WRITTEN = ("bytes", "boolean", "long", "integer", "short")
_START = struct.Struct(">q")
_BOUNDS = struct.Struct(">qq")
LONGEST_MS = 2**63 - 1


def time_windowed(inner: Plain, size_ms: int | None) -> Plain:
    """Return the serde of `key ‖ start`. Without a window size, the end is the largest timestamp."""

    def write(value: Value) -> bytes:
        if not isinstance(value, Windowed):
            raise SerializationError("time-windowed", f"it is {kind_of(value)}")
        return inner.serialize(value.key) + _START.pack(value.start)

    def read(data: bytes) -> Value:
        if len(data) < _START.size:
            raise DeserializationError("time-windowed", f"{len(data)} byte(s), expected at least 8")
        (start,) = _START.unpack_from(data, len(data) - 8)
        end = LONGEST_MS if size_ms is None else min(start + size_ms, LONGEST_MS)
        return Windowed(inner.deserialize(data[:-8]), start, end)

    return Plain(write, read, _equal_windowed(inner))


def session_windowed(inner: Plain) -> Plain:
    """Return the serde of `key ‖ end ‖ start`."""

    def write(value: Value) -> bytes:
        if not isinstance(value, Windowed):
            raise SerializationError("session-windowed", f"it is {kind_of(value)}")
        return inner.serialize(value.key) + _BOUNDS.pack(value.end, value.start)

    def read(data: bytes) -> Value:
        if len(data) < _BOUNDS.size:
            raise DeserializationError("session-windowed", f"{len(data)} byte(s), expected at least 16")
        end, start = _BOUNDS.unpack_from(data, len(data) - 16)
        return Windowed(inner.deserialize(data[:-16]), start, end)

    return Plain(write, read, _equal_windowed(inner))


def _equal_windowed(inner: Plain) -> Callable[[Value, Value], bool]:
    def equal(one: Value, other: Value) -> bool:
        return (
            isinstance(one, Windowed)
            and isinstance(other, Windowed)
            and one[1:] == other[1:]
            and inner.equal(one.key, other.key)
        )

    return equal
