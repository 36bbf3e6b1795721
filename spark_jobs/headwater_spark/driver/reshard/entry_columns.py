"""Hash many records of a changelog topic at once: a loop over them takes ten times as long."""

from collections.abc import Sequence
from hashlib import blake2b
from typing import Any, Protocol

import attrs
import numpy as np
from numpy.typing import NDArray

from headwater_spark.engine.columns import Columns
from headwater_spark.engine.records import Headers

Hashes = NDArray[np.uint64]
_WIDTHS = np.array([16, 32, 64, 128, 256])
"""Contents are padded with zeros to the next of these numbers of bytes; longer ones are hashed one by one."""
_BLOCK = 8
_SEED, _FIRST, _SECOND = (
    np.uint64(each) for each in (0x9E3779B97F4A7C15, 0xFF51AFD7ED558CCD, 0xC4CEB9FE1A85EC53)
)
_SHIFT = np.uint64(32)
_DELETED = np.uint64(0)
_NONE: Hashes = np.empty(0, np.uint64)


@attrs.frozen(eq=False)
class EntryColumns:
    """The records of a chunk that have a key. `hashes` are hashes of the keys, the same in each process."""

    keys: Sequence[bytes]
    values: Sequence[bytes | None]
    times: NDArray[np.int64]
    headers: Sequence[Headers]
    hashes: Hashes

    @property
    def columns(self) -> Columns:
        """The records as a producer takes them."""
        return self.keys, self.values, self.times.tolist(), self.headers

    def chosen(self, is_chosen: NDArray[np.bool_]) -> "EntryColumns":
        """Return some of the records."""
        if is_chosen.all():
            return self
        at = np.flatnonzero(is_chosen)
        indexes = at.tolist()
        return EntryColumns(
            [self.keys[index] for index in indexes],
            [self.values[index] for index in indexes],
            self.times[at],
            [self.headers[index] for index in indexes],
            self.hashes[at] if len(self.hashes) else self.hashes,
        )

    def digests(self) -> Hashes:
        """Return a digest of all that is kept of each record, 0 for those that delete an entry.

        The digests are the same in each process.
        """
        is_deleted = np.fromiter((value is None for value in self.values), np.bool_, len(self.values))
        contents = [value or b"" for value in self.values] if is_deleted.any() else self.values
        found = _mix(self.hashes * _FIRST ^ content_hashes(contents))  # type: ignore[arg-type]  # no value is None
        found = _mix(found ^ self.times.astype(np.uint64) * _SECOND)
        for index in np.flatnonzero([bool(each) for each in self.headers]).tolist():
            content = repr(list(self.headers[index])).encode()
            found[index] = _mix(found[index : index + 1] ^ np.uint64(_hash_long(content)))[0]
        found |= np.uint64(1)
        found[is_deleted] = _DELETED
        return found


class Chunk(Protocol):
    """Records of one partition, in columns (`RecordChunk`)."""

    @property
    def keys(self) -> list[bytes | None]: ...
    @property
    def values(self) -> list[bytes | None]: ...
    @property
    def times(self) -> list[int]: ...
    @property
    def headers(self) -> list[Headers]: ...


def entry_columns(chunk: Chunk) -> EntryColumns:
    """Return the records of a chunk that have a key."""
    keys: list[Any] = chunk.keys
    columns = EntryColumns(keys, chunk.values, np.array(chunk.times, np.int64), chunk.headers, _NONE)
    if None in keys:
        columns = columns.chosen(np.array([key is not None for key in keys]))
    return attrs.evolve(columns, hashes=content_hashes(columns.keys))


def content_hashes(contents: Sequence[bytes]) -> Hashes:
    """Return a hash of each content, which depends on nothing else."""
    lengths = np.fromiter(map(len, contents), np.int64, len(contents))
    kinds = np.searchsorted(_WIDTHS, lengths)
    found = np.empty(len(contents), np.uint64)
    for kind in np.unique(kinds).tolist():
        at = np.flatnonzero(kinds == kind)
        chosen = contents if len(at) == len(contents) else [contents[index] for index in at.tolist()]
        if kind == len(_WIDTHS):
            found[at] = [_hash_long(content) for content in chosen]
        else:
            found[at] = _hash_padded(chosen, lengths[at], int(_WIDTHS[kind]))
    return found


def _hash_padded(contents: Sequence[bytes], lengths: NDArray[np.int64], width: int) -> Hashes:
    """Return the hashes of contents that have `width` bytes at most. 64-bit integers overflow."""
    blocks = np.array(contents, f"S{width}").view("<u8").reshape(len(contents), width // _BLOCK)
    hashed = _SEED ^ lengths.astype(np.uint64) * _FIRST
    for block in blocks.T:
        hashed ^= block
        hashed *= _FIRST
        hashed ^= hashed >> _SHIFT
    return _mix(hashed)


def _hash_long(content: bytes) -> int:
    return int.from_bytes(blake2b(content, digest_size=_BLOCK).digest(), "big")


def _mix(hashes: Hashes) -> Hashes:
    """Return hashes of which each bit depends on all bits of the given ones."""
    hashes = (hashes ^ hashes >> _SHIFT) * _FIRST
    hashes = (hashes ^ hashes >> _SHIFT) * _SECOND
    return hashes ^ hashes >> _SHIFT
