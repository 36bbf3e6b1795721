"""Windowed keys in topics (facts 6): `TimeWindowedSerializer`, `SessionWindowedSerializer`."""

import struct

from spark_jobs.runtime.engine.records import Value, Windowed
from spark_jobs.runtime.engine.serdes.errors import DeserializationError, SerializationError, kind_of
from spark_jobs.runtime.engine.serdes.plain import Plain

_START = struct.Struct(">q")
_BOUNDS = struct.Struct(">qq")
LONGEST_MS = 2**63 - 1


def time_windowed(inner: Plain, size_ms: int | None) -> Plain:
    """Key ‖ start. Without a size the end is not known and taken as the end of time."""

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

    return Plain(write, read)


def session_windowed(inner: Plain) -> Plain:
    """Key ‖ end ‖ start."""

    def write(value: Value) -> bytes:
        if not isinstance(value, Windowed):
            raise SerializationError("session-windowed", f"it is {kind_of(value)}")
        return inner.serialize(value.key) + _BOUNDS.pack(value.end, value.start)

    def read(data: bytes) -> Value:
        if len(data) < _BOUNDS.size:
            raise DeserializationError("session-windowed", f"{len(data)} byte(s), expected at least 16")
        end, start = _BOUNDS.unpack_from(data, len(data) - 16)
        return Windowed(inner.deserialize(data[:-16]), start, end)

    return Plain(write, read)
