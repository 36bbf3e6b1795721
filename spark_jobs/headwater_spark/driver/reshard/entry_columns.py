"""Hash many records of a changelog topic at once: a loop over them takes ten times as long."""

from collections.abc import Sequence
from typing import Any, Protocol

import attrs
import numpy as np
from numpy.typing import NDArray
from pandas.util import hash_array  # type: ignore[import-untyped]

from headwater_spark.engine.columns import Columns
from headwater_spark.engine.records import Headers

Hashes = NDArray[np.uint64]
DIGEST_VERSION = 1
"""Executions with another version compute other digests. Change it with the digests."""
_OTHER_KEY = "other hash of 16"
_FIRST, _SECOND = (np.uint64(each) for each in (0xFF51AFD7ED558CCD, 0xC4CEB9FE1A85EC53))
_SHIFT = np.uint64(33)
_DELETED = np.uint64(0)
_NONE: Hashes = np.empty(0, np.uint64)


@attrs.frozen(eq=False)
class EntryColumns:
    """The records of a chunk that have a key. `hashes` and `others` are two hashes of the keys.

    Both together distinguish keys: one of 64 bits alone may be the same for two of billions of keys. They are
    the same in each process.
    """

    keys: Sequence[bytes]
    values: Sequence[bytes | None]
    times: NDArray[np.int64]
    headers: Sequence[Headers]
    hashes: Hashes
    others: Hashes

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
            self.others[at] if len(self.others) else self.others,
        )

    def digests(self) -> Hashes:
        """Return a digest of all that is kept of each record, 0 for those that delete an entry.

        The digests are the same in each process.
        """
        is_deleted = np.fromiter((value is None for value in self.values), np.bool_, len(self.values))
        contents = [value or b"" for value in self.values] if is_deleted.any() else self.values
        found = _mix(_mix(self.hashes) ^ content_hashes(contents))  # type: ignore[arg-type]  # no value is None
        found = _mix(found ^ self.times.astype(np.uint64))
        at = np.flatnonzero([bool(each) for each in self.headers])
        headers = content_hashes([repr(list(self.headers[index])).encode() for index in at.tolist()])
        found[at] = _mix(found[at] ^ headers)
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
    columns = EntryColumns(keys, chunk.values, np.array(chunk.times, np.int64), chunk.headers, _NONE, _NONE)
    if None in keys:
        columns = columns.chosen(np.array([key is not None for key in keys]))
    return attrs.evolve(
        columns,
        hashes=content_hashes(columns.keys),
        others=content_hashes(columns.keys, is_other=True),
    )


def content_hashes(contents: Sequence[bytes], *, is_other: bool = False) -> Hashes:
    """Return a hash (SipHash) of each content, which depends on nothing else; `is_other`: a second one."""
    found = np.empty(len(contents), object)
    found[:] = contents
    options = {"hash_key": _OTHER_KEY} if is_other else {}
    hashes: Hashes = hash_array(found, categorize=False, **options)
    return hashes


def _mix(hashes: Hashes) -> Hashes:
    """Return hashes of which each bit depends on all bits of the given ones."""
    hashes = (hashes ^ hashes >> _SHIFT) * _FIRST
    hashes = (hashes ^ hashes >> _SHIFT) * _SECOND
    return hashes ^ hashes >> _SHIFT
