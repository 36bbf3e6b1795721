"""Values of the repartition topic of `KTable#groupBy`: old and new in one (`ChangedSerializer`, facts 6)."""

from spark_jobs.runtime.engine.program_interface import Serde
from spark_jobs.runtime.engine.records import Value
from spark_jobs.runtime.engine.serdes.errors import DeserializationError, SerializationError
from spark_jobs.runtime.engine.serdes.plain import Plain

_OLD, _NEW, _BOTH = range(3)
_CONTINUES = 0x80


def changed_serde(inner: Serde) -> Plain:
    """Of changes (new, old, is latest)."""
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
        return _varint(len(new_bytes)) + new_bytes + serialize(old) + b"\x02"

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


def _varint(value: int) -> bytes:
    """Zig-zag, seven bits a byte (`ByteUtils#writeVarint`); lengths are never negative."""
    value <<= 1
    written = bytearray()
    while value >= _CONTINUES:
        written.append((value & 0x7F) | _CONTINUES)
        value >>= 7
    written.append(value)
    return bytes(written)


def _read_varint(data: bytes) -> tuple[int, int]:
    """The number and where it ends."""
    value = shift = 0
    for position, byte in enumerate(data[:5]):
        value |= (byte & 0x7F) << shift
        if byte < _CONTINUES:
            return (value >> 1) ^ -(value & 1), position + 1
        shift += 7
    raise DeserializationError("change", "the length of the new value is malformed")
