"""PURE. What a task commits beside its offsets: how far its state is, and the times it has seen.

The bytes are those of Kafka Streams' `TopicPartitionMetadata` and `ProcessorMetadata`, so that a Kafka
Streams application which takes the offsets over finds the stream time there, and ours finds its.
"""

import base64
import binascii
import struct
import zlib
from collections.abc import Iterable, Mapping

import attrs

_FORMAT = 2
_COMPRESSED = 3
"""Ours alone: the same bytes deflated, where they would not fit into the broker's limit."""
LARGEST = 4096
"""`offset.metadata.max.bytes` of the broker, unless it was changed."""
_VERSION = "headwater.version"
_HEAD = struct.Struct(">bq")
_COUNT = struct.Struct(">i")
_TIME = struct.Struct(">q")


@attrs.frozen
class Marker:
    """`version` batches of the task are in; `clocks` (milliseconds by name) are as of the last of them."""

    version: int = 0
    clocks: Mapping[str, int] = attrs.field(factory=dict)

    def encode(self, partition_time: int) -> str:
        """Return the text that is committed with an offset; it may still exceed `LARGEST`."""
        entries = {**self.clocks, _VERSION: self.version}
        body = _COUNT.pack(len(entries)) + b"".join(map(_entry, entries.items()))
        plain = _text(_HEAD.pack(_FORMAT, partition_time) + body)
        if len(plain) <= LARGEST:
            return plain
        return _text(_HEAD.pack(_COMPRESSED, partition_time) + zlib.compress(body))


def decode(text: str) -> Marker | None:
    """Return the marker in a committed text; None = none of ours (nothing, or from Kafka Streams)."""
    try:
        raw = base64.b64decode(text, validate=True)
        format_, _ = _HEAD.unpack_from(raw)
        body = raw[_HEAD.size :]
        clocks = _entries(zlib.decompress(body) if format_ == _COMPRESSED else body)
        version = clocks.pop(_VERSION)
    except (binascii.Error, struct.error, zlib.error, UnicodeDecodeError, KeyError):
        return None
    return Marker(version, clocks)


def newest(texts: Iterable[str]) -> Marker | None:
    """Return the marker of the last batch among those committed for a task's partitions."""
    markers = [marker for marker in map(decode, texts) if marker is not None]
    return max(markers, key=lambda marker: marker.version, default=None)


def _entry(entry: tuple[str, int]) -> bytes:
    name = entry[0].encode()
    return _COUNT.pack(len(name)) + name + _TIME.pack(entry[1])


def _entries(body: bytes) -> dict[str, int]:
    (count,) = _COUNT.unpack_from(body)
    place, entries = _COUNT.size, {}
    for _ in range(count):
        (length,) = _COUNT.unpack_from(body, place)
        place += _COUNT.size
        name = body[place : place + length].decode()
        (entries[name],) = _TIME.unpack_from(body, place + length)
        place += length + _TIME.size
    return entries


def _text(raw: bytes) -> str:
    return base64.b64encode(raw).decode("ascii")
