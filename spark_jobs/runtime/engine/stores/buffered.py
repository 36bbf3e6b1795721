"""What Kafka Streams' buffers keep of a record, in its bytes (`BufferValue`, `ProcessorRecordContext`).

    timestamp(8) offset(8) length(4) topic partition(4) headers(4) [length(4) name length(4) value]...
    length(4) prior   length(4) old   length(4) new

A length of -1 stands for null, an old value's -2 for "the same as prior".
"""

import struct
from typing import NamedTuple

from spark_jobs.runtime.engine.stores.interfaces import BufferedContext

_FIXED = struct.Struct(">qqi")
_INT = struct.Struct(">i")
_NULL = -1
_SAME = -2
_CONTEXT_BYTES = 8 + 8 + 4


class Buffered(NamedTuple):
    """A change in bytes: `prior` is what downstream knows, `old` what the parent had before."""

    context: BufferedContext
    prior: bytes | None
    old: bytes | None
    new: bytes | None

    def serialize(self) -> bytes:
        same = self.old is not None and self.old == self.prior
        old = _INT.pack(_SAME) if same else _nullable(self.old)
        return b"".join((serialize_context(self.context), _nullable(self.prior), old, _nullable(self.new)))

    @property
    def estimated_bytes(self) -> int:
        """What Kafka Streams counts for its limit in bytes (`residentMemorySizeEstimate`)."""
        old = None if self.old == self.prior else self.old
        values = sum(len(part) for part in (self.prior, old, self.new) if part is not None)
        _, _, topic, _, headers = self.context
        named = sum(len(name) + len(value or b"") for name, value in headers)
        return values + _CONTEXT_BYTES + len(topic) + named


def serialize_context(context: BufferedContext) -> bytes:
    timestamp, offset, topic, partition, headers = context
    name = topic.encode()
    parts = [_FIXED.pack(timestamp, offset, len(name)), name, _INT.pack(partition), _INT.pack(len(headers))]
    for header, value in headers:
        parts += (_nullable(header.encode()), _nullable(value))
    return b"".join(parts)


def deserialize(stored: bytes) -> Buffered:
    """What follows the last value is left alone: the changelog has the buffer time there."""
    timestamp, offset, length = _FIXED.unpack_from(stored)
    at = _FIXED.size + length
    topic = stored[_FIXED.size : at].decode()
    (partition,), (count,) = _INT.unpack_from(stored, at), _INT.unpack_from(stored, at + _INT.size)
    at += 2 * _INT.size
    headers: list[tuple[str, bytes | None]] = []
    for _ in range(count):
        name, at = _read(stored, at)
        value, at = _read(stored, at)
        headers.append(((name or b"").decode(), value))
    prior, at = _read(stored, at)
    if _INT.unpack_from(stored, at)[0] == _SAME:
        old, at = prior, at + _INT.size
    else:
        old, at = _read(stored, at)
    new, at = _read(stored, at)
    return Buffered((timestamp, offset, topic, partition, tuple(headers)), prior, old, new)


def _nullable(value: bytes | None) -> bytes:
    return _INT.pack(_NULL) if value is None else _INT.pack(len(value)) + value


def _read(stored: bytes, at: int) -> tuple[bytes | None, int]:
    (length,) = _INT.unpack_from(stored, at)
    at += _INT.size
    return (None, at) if length == _NULL else (stored[at : at + length], at + length)
