"""Count and compare the entries of a changelog topic, with a digest of their content, in little memory.

An entry is the last record of a key. For each key, 29 bytes are kept instead of the record: two hashes of the
key and one of the record, the partition that the entry belongs to, and whether retention may delete it. Many
records are hashed at once (`EntryColumns`): a loop over them takes ten times as long.
"""

from collections.abc import Iterable, Mapping, Sequence
from typing import Any, Protocol

import attrs
import numpy as np
from numpy.typing import NDArray
from pandas.util import hash_array  # type: ignore[import-untyped]

from headwater.model.problems import ProblemsError
from headwater_spark.driver.reshard import problems
from headwater_spark.engine.columns import Columns
from headwater_spark.engine.records import Headers
from headwater_spark.engine.scaling.transfers import NO_OWNER, Transfer

Hashes = NDArray[np.uint64]
DIGEST_VERSION = 1
"""Executions with another version compute other digests. Change it with the digests."""
_OTHER_KEY = "other hash of 16"
_FIRST_FACTOR, _SECOND_FACTOR = (np.uint64(each) for each in (0xFF51AFD7ED558CCD, 0xC4CEB9FE1A85EC53))
_SHIFT = np.uint64(33)
_DELETED = np.uint64(0)
"""The digest of a record that deletes an entry."""
_NO_HASHES: Hashes = np.empty(0, np.uint64)

_MOST_PENDING = 500_000
"""So many records, or as many as are kept, are collected before all but the last of each key are removed."""
_MASK = 0xFFFF_FFFF_FFFF_FFFF
_SIGN = 1 << 63
_NO_RECORDS = (_NO_HASHES, _NO_HASHES, _NO_HASHES, np.empty(0, np.int32), np.empty(0, np.bool_))


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

    def select_records(self, is_chosen: NDArray[np.bool_]) -> "EntryColumns":
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
        found = _mix_bits(_mix_bits(self.hashes) ^ content_hashes(contents))  # type: ignore[arg-type]  # no value is None
        found = _mix_bits(found ^ self.times.astype(np.uint64))
        at = np.flatnonzero([bool(each) for each in self.headers])
        headers = content_hashes([repr(list(self.headers[index])).encode() for index in at.tolist()])
        found[at] = _mix_bits(found[at] ^ headers)
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
    columns = EntryColumns(
        keys, chunk.values, np.array(chunk.times, np.int64), chunk.headers, _NO_HASHES, _NO_HASHES
    )
    if None in keys:
        columns = columns.select_records(np.array([key is not None for key in keys]))
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


def _mix_bits(hashes: Hashes) -> Hashes:
    """Return hashes whose bits each depend on all bits of the given hashes (`fmix64` of MurmurHash3)."""
    hashes = (hashes ^ hashes >> _SHIFT) * _FIRST_FACTOR
    hashes = (hashes ^ hashes >> _SHIFT) * _SECOND_FACTOR
    return hashes ^ hashes >> _SHIFT


@attrs.frozen
class EntryTotals:
    """The number of entries and the sum of their digests. `expiring` are entries that retention may delete.

    Only the number of expiring entries is known: brokers delete them at any time.
    """

    entries: int = 0
    digest: int = 0
    expiring: int = 0

    def __add__(self, other: "EntryTotals") -> "EntryTotals":
        return EntryTotals(
            self.entries + other.entries,
            _to_signed((self.digest + other.digest) & _MASK),
            self.expiring + other.expiring,
        )

    @property
    def count(self) -> int:
        """The number of all entries."""
        return self.entries + self.expiring

    def is_complete(self, found: "EntryTotals", *, may_expire: bool = False, has_digest: bool = True) -> bool:
        """Return whether `found` has these entries, and no other ones.

        With `may_expire`, retention may have deleted any: then only additional ones are found. Without
        `has_digest`, only their numbers are compared.
        """
        if may_expire:
            return found.count <= self.count
        is_same = self.digest == found.digest or not has_digest
        return is_same and self.entries == found.entries and found.expiring <= self.expiring


class LastRecords:
    """The last record of each key of one partition."""

    def __init__(self) -> None:
        self._kept: tuple[NDArray[Any], ...] = _NO_RECORDS
        self._pending: list[tuple[NDArray[Any], ...]] = []
        self._number = 0

    def add(self, entries: EntryColumns, partitions: NDArray[np.int64], expiring: NDArray[np.bool_]) -> None:
        """Add the next records, the partitions that they belong to, and which ones retention may delete.

        The digest 0 deletes an entry.
        """
        columns = entries.hashes, entries.others, entries.digests(), partitions.astype(np.int32), expiring
        self._pending.append(columns)
        self._number += len(entries.keys)
        if self._number >= max(_MOST_PENDING, len(self._kept[0])):
            self._merge()

    def __len__(self) -> int:
        """Return how many keys are kept, also deleted ones."""
        self._merge()
        return len(self._kept[0])

    def has_others_than(self, original: "LastRecords") -> bool:
        """Return whether there is an entry that is not one of `original`."""
        # The default of NumPy 2.0 fails for large unsigned numbers that are close to each other.
        return not bool(np.isin(self.digests(), original.digests(), kind="sort").all())

    def has_deleted(self, original: "LastRecords") -> bool:
        """Return whether the last record of an entry of `original` is a tombstone."""
        pairs = zip(self.keys(is_deleted=True), original.keys(is_deleted=False), strict=True)
        return bool(np.logical_and(*(np.isin(own, others, kind="sort") for own, others in pairs)).any())

    def keys(self, *, is_deleted: bool) -> tuple[Hashes, Hashes]:
        """Return both hashes of the keys that are deleted, or have an entry."""
        self._merge()
        hashes, others, digests, _, _ = self._kept
        is_chosen = (digests == _DELETED) == is_deleted
        return hashes[is_chosen], others[is_chosen]

    def leaving_keys(self, partition: int) -> Hashes:
        """Return the hashes of the keys of entries that belong to another partition than this one."""
        self._merge()
        keys, _, digests, partitions, _ = self._kept
        found: Hashes = keys[(digests != _DELETED) & (partitions != partition) & (partitions != NO_OWNER)]
        return found

    def digests(self) -> NDArray[Any]:
        """Return the digests of the entries."""
        self._merge()
        digests: NDArray[Any] = self._kept[2]
        found: NDArray[Any] = digests[digests != _DELETED]
        return found

    def totals(self) -> Mapping[int, EntryTotals]:
        """Return partition → totals of the entries that belong to it."""
        self._merge()
        _, _, digests, partitions, expiring = self._kept
        is_entry = digests != _DELETED
        found = {}
        for partition in np.unique(partitions[is_entry]).tolist():
            chosen = is_entry & (partitions == partition)
            kept = digests[chosen & ~expiring]
            digest = int(kept.sum(dtype=np.uint64)) if len(kept) else 0
            found[partition] = EntryTotals(len(kept), _to_signed(digest), int((chosen & expiring).sum()))
        return found

    def _merge(self) -> None:
        if not self._pending:
            return
        columns = [np.concatenate(parts) for parts in zip(self._kept, *self._pending, strict=True)]
        self._pending, self._number = [], 0
        at = _last_of_each(columns[0], columns[1])
        self._kept = tuple(column[at] for column in columns)


def summed_totals(totals: Iterable[Mapping[int, EntryTotals]], partitions: int) -> list[EntryTotals]:
    """Return the sums for each of `partitions`."""
    found = [EntryTotals()] * partitions
    for each in totals:
        for partition, part in each.items():
            if 0 <= partition < partitions:
                found[partition] += part
    return found


def _last_of_each(hashes: Hashes, others: Hashes) -> NDArray[np.intp]:
    """Return the positions of the last records of keys; two keys may share one of their hashes, not both."""
    order = np.argsort(hashes, kind="stable")
    is_last = _is_last(hashes[order])
    if ((others[order][:-1] != others[order][1:]) & ~is_last[:-1]).any():
        order = np.lexsort((others, hashes))
        is_last = _is_last(hashes[order]) | _is_last(others[order])
    found: NDArray[np.intp] = order[is_last]
    return found


def _is_last(sorted_: Hashes) -> NDArray[np.bool_]:
    """Return for each hash whether the next one differs."""
    found = np.ones(len(sorted_), np.bool_)
    found[:-1] = sorted_[:-1] != sorted_[1:]
    return found


def _to_signed(number: int) -> int:
    """Return 64 bits as a signed number, which offset metadata can have."""
    return number - (1 << 64) if number & _SIGN else number


@attrs.frozen
class FoundTotals:
    """The totals of each partition, and how many entries each has that belong to another partition."""

    partitions: Sequence[EntryTotals]
    misplaced: Sequence[int]


def check_totals(
    application: str,
    transfer: Transfer,
    expected: Sequence[EntryTotals],
    found: FoundTotals,
    *,
    is_cleared: bool = False,
    may_expire: bool = False,
    has_digests: bool = True,
) -> None:
    """Raise `ProblemsError` if a partition does not have exactly the entries that it must have.

    Without `has_digests`, only their numbers are compared.
    """
    incomplete = incomplete_partitions(expected, found, may_expire=may_expire, has_digests=has_digests)
    wrong = [
        problems.wrong_copy(
            application,
            transfer.target,
            partition,
            _describe_totals(total),
            _describe_totals(other),
            is_cleared=is_cleared,
        )
        for partition, total, other in incomplete
    ]
    if wrong:
        raise ProblemsError(wrong)


def incomplete_partitions(
    expected: Sequence[EntryTotals], found: FoundTotals, *, may_expire: bool, has_digests: bool
) -> Sequence[tuple[int, EntryTotals, EntryTotals]]:
    """Return (partition, expected, found) of the partitions that do not have exactly the expected entries."""
    return [
        (partition, total, other)
        for partition, (total, other) in enumerate(zip(expected, found.partitions, strict=True))
        if not total.is_complete(other, may_expire=may_expire, has_digest=has_digests)
    ]


def _describe_totals(totals: EntryTotals) -> str:
    return f"{totals.entries + totals.expiring:,} entries, digest {totals.digest & _MASK:016x}"
