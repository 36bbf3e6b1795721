"""Count the entries of a changelog topic, with a digest of their content, in little memory.

An entry is the last record of a key. For each key, 21 bytes are kept instead of the record: hashes of the key
and of the record, the partition that the entry belongs to, and whether retention may delete it.
"""

from collections.abc import Iterable, Mapping
from hashlib import blake2b
from typing import Any

import attrs
import numpy as np
from numpy.typing import NDArray

from headwater_spark.engine.records import Headers

_DELETED = 0
_RECORDS = 500_000
"""So many records are collected before all but the last of each key are removed."""
_MASK = 0xFFFF_FFFF_FFFF_FFFF
_SIGN = 1 << 63


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
            _signed((self.digest + other.digest) & _MASK),
            self.expiring + other.expiring,
        )

    @property
    def count(self) -> int:
        """The number of all entries."""
        return self.entries + self.expiring

    def is_complete(self, found: "EntryTotals", *, may_expire: bool = False) -> bool:
        """Return whether `found` has these entries, and no other ones.

        With `may_expire`, retention may have deleted any: then only additional ones are found.
        """
        if may_expire:
            return found.count <= self.count
        is_same = (self.entries, self.digest) == (found.entries, found.digest)
        return is_same and found.expiring <= self.expiring


class LastRecords:
    """The last record of each key of one partition."""

    def __init__(self) -> None:
        self._pending: list[tuple[int, int, int, bool]] = []
        self._kept = _columns([])

    def add(self, key: bytes, digest: int | None, partition: int, *, is_expiring: bool) -> None:
        """Add the next record of a key, whose entry belongs to `partition`; `digest` None = it is deleted."""
        self._pending.append(
            (hash(key) & _MASK, _DELETED if digest is None else digest, partition, is_expiring)
        )
        if len(self._pending) >= _RECORDS:
            self._merge()

    def __len__(self) -> int:
        """Return how many keys are kept, also deleted ones."""
        self._merge()
        return len(self._kept[0])

    def has_others_than(self, original: "LastRecords") -> bool:
        """Return whether there is an entry that is not one of `original`."""
        return not bool(np.isin(self.digests(), original.digests()).all())

    def has_deleted(self, original: "LastRecords") -> bool:
        """Return whether the last record of an entry of `original` is a tombstone."""
        return bool(np.isin(self.keys(is_deleted=True), original.keys(is_deleted=False)).any())

    def keys(self, *, is_deleted: bool) -> NDArray[Any]:
        """Return the hashes of the keys that are deleted, or have an entry."""
        self._merge()
        keys, digests, _, _ = self._kept
        found: NDArray[Any] = keys[(digests == _DELETED) == is_deleted]
        return found

    def digests(self) -> NDArray[Any]:
        """Return the digests of the entries."""
        self._merge()
        digests: NDArray[Any] = self._kept[1]
        found: NDArray[Any] = digests[digests != _DELETED]
        return found

    def totals(self) -> Mapping[int, EntryTotals]:
        """Return partition → totals of the entries that belong to it."""
        self._merge()
        _, digests, partitions, expiring = self._kept
        is_entry = digests != _DELETED
        found = {}
        for partition in np.unique(partitions[is_entry]).tolist():
            chosen = is_entry & (partitions == partition)
            kept = digests[chosen & ~expiring]
            digest = int(kept.sum(dtype=np.uint64)) if len(kept) else 0
            found[partition] = EntryTotals(len(kept), _signed(digest), int((chosen & expiring).sum()))
        return found

    def _merge(self) -> None:
        added = _columns(self._pending)
        self._pending = []
        columns = [np.concatenate(pair) for pair in zip(self._kept, added, strict=True)]
        _, last = np.unique(columns[0][::-1], return_index=True)
        at = len(columns[0]) - 1 - last
        self._kept = tuple(column[at] for column in columns)


def record_digest(key: bytes, value: bytes, timestamp: int, headers: Headers) -> int:
    """Return the digest of a record with all that is kept, never 0; the same in each process."""
    head = f"{len(key)} {len(value)} {timestamp} {list(headers) if headers else ''}".encode()
    return int.from_bytes(blake2b(head + key + value, digest_size=8).digest(), "big") | 1


def summed_totals(totals: Iterable[Mapping[int, EntryTotals]], partitions: int) -> list[EntryTotals]:
    """Return the sums for each of `partitions`."""
    found = [EntryTotals()] * partitions
    for each in totals:
        for partition, part in each.items():
            if 0 <= partition < partitions:
                found[partition] += part
    return found


def _columns(rows: list[tuple[int, int, int, bool]]) -> tuple[NDArray[Any], ...]:
    hashes, digests, partitions, expiring = zip(*rows, strict=True) if rows else ((), (), (), ())
    return (
        np.array(hashes, np.uint64),
        np.array(digests, np.uint64),
        np.array(partitions, np.int32),
        np.array(expiring, np.bool_),
    )


def _signed(number: int) -> int:
    """Return 64 bits as a signed number, which offset metadata can have."""
    return number - (1 << 64) if number & _SIGN else number
