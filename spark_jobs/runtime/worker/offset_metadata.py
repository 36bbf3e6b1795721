"""The metadata that a task commits with its offsets: the version of its state, and its clocks.

The bytes are those of Kafka Streams' `TopicPartitionMetadata` and `ProcessorMetadata`. A Kafka Streams
application that takes over the offsets finds the stream time in them, and we find the one that it wrote.
"""

import base64
import binascii
import struct
import zlib
from collections.abc import Iterable, Mapping

import attrs

_FORMAT = 2
_COMPRESSED_FORMAT = 3
"""Ours: the same bytes, deflated, where they would exceed the broker's limit."""
MAX_METADATA_BYTES = 4096
"""The broker's default of `offset.metadata.max.bytes`."""
_VERSION_KEY = "headwater.version"
_HEAD = struct.Struct(">bq")
_COUNT = struct.Struct(">i")
_TIME = struct.Struct(">q")


@attrs.frozen
class OffsetMetadata:
    """`version` = number of the task's committed batches; `clocks` are its times by name, in milliseconds."""

    version: int = 0
    clocks: Mapping[str, int] = attrs.field(factory=dict)

    def encode(self, partition_time: int) -> str:
        """Return the text to commit with an offset; it may still exceed `MAX_METADATA_BYTES`.

        `partition_time` is the largest timestamp of the partition, -1 = none.
        """
        entries = {**self.clocks, _VERSION_KEY: self.version}
        body = _COUNT.pack(len(entries)) + b"".join(map(_encode_entry, entries.items()))
        plain = _base64(_HEAD.pack(_FORMAT, partition_time) + body)
        if len(plain) <= MAX_METADATA_BYTES:
            return plain
        return _base64(_HEAD.pack(_COMPRESSED_FORMAT, partition_time) + zlib.compress(body))


def decode(text: str) -> OffsetMetadata | None:
    """Return the metadata in a committed text; None if it is empty or Kafka Streams wrote it."""
    try:
        raw = base64.b64decode(text, validate=True)
        format_, _ = _HEAD.unpack_from(raw)
        body = raw[_HEAD.size :]
        clocks = _decode_entries(zlib.decompress(body) if format_ == _COMPRESSED_FORMAT else body)
        version = clocks.pop(_VERSION_KEY)
    except (binascii.Error, struct.error, zlib.error, UnicodeDecodeError, KeyError):
        return None
    return OffsetMetadata(version, clocks)


def latest_metadata(texts: Iterable[str]) -> OffsetMetadata | None:
    """Return the metadata of the last batch among the texts committed for a task's partitions."""
    decoded = [metadata for metadata in map(decode, texts) if metadata is not None]
    return max(decoded, key=lambda metadata: metadata.version, default=None)


def _encode_entry(entry: tuple[str, int]) -> bytes:
    name = entry[0].encode()
    return _COUNT.pack(len(name)) + name + _TIME.pack(entry[1])


def _decode_entries(body: bytes) -> dict[str, int]:
    (count,) = _COUNT.unpack_from(body)
    at, entries = _COUNT.size, {}
    for _ in range(count):
        (length,) = _COUNT.unpack_from(body, at)
        at += _COUNT.size
        name = body[at : at + length].decode()
        (entries[name],) = _TIME.unpack_from(body, at + length)
        at += length + _TIME.size
    return entries


def _base64(raw: bytes) -> str:
    return base64.b64encode(raw).decode("ascii")
