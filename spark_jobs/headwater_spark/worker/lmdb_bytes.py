"""The entries of a store in LMDB, which has keys of 1 to 511 bytes.

So each key starts with a zero byte. Longer keys are in a second database: its keys are the first bytes of the
key and a digest, its values have the whole key. Ranges merge the two.
"""

from collections.abc import Iterator
from hashlib import blake2b
from heapq import merge
from itertools import groupby
from typing import Any

import attrs
import lmdb

from headwater_spark.engine.stores.interfaces import Pair

_PREFIX = b"\0"
_MAX_SHORT = 510
_DIGEST = 32
_HEAD = 479
_LENGTH = 4


@attrs.define
class Databases:
    """The database handles of one store; `long` is None until there is a long key."""

    short: Any
    long: Any = None


@attrs.define
class Snapshot:
    """The read transaction that all stores of an environment share; replaced after each batch."""

    transaction: Any  # LMDB's type includes memoryviews, which this transaction never returns


def is_long(key: bytes) -> bool:
    return len(key) > _MAX_SHORT


def write_entry(transaction: lmdb.Transaction, databases: Databases, key: bytes, value: bytes | None) -> None:
    """Put a value, or delete it (None). `databases.long` must be set if the key is long."""
    if is_long(key):
        stored_key, handle = _long_key(key), databases.long
        value = None if value is None else len(key).to_bytes(_LENGTH, "big") + key + value
    else:
        stored_key, handle = _PREFIX + key, databases.short
    if value is None:
        transaction.delete(stored_key, db=handle)
    else:
        transaction.put(stored_key, value, db=handle)


class LmdbBytes:
    """The committed entries of one store, read in `snapshot`. Only `write` writes them."""

    def __init__(self, snapshot: Snapshot, databases: Databases) -> None:
        self._snapshot = snapshot
        self._databases = databases

    def get(self, key: bytes) -> bytes | None:
        if is_long(key):
            if self._databases.long is None:
                return None
            stored = self._snapshot.transaction.get(_long_key(key), db=self._databases.long)
            return None if stored is None else _split_stored(stored)[1]
        found: bytes | None = self._snapshot.transaction.get(_PREFIX + key, db=self._databases.short)
        return found

    def range(self, start: bytes = b"", end: bytes | None = None) -> Iterator[Pair]:
        short = self._short_range(start, end)
        if self._databases.long is None:
            return short
        return merge(short, self._long_range(start, end), key=_key_of)

    def reverse_range(self, start: bytes = b"", end: bytes | None = None) -> Iterator[Pair]:
        short = self._short_reverse_range(start, end)
        if self._databases.long is None:
            return short
        long = reversed(list(self._long_range(start, end)))  # few, as keys of 511 bytes or more are rare
        return merge(short, long, key=_key_of, reverse=True)

    def _short_range(self, start: bytes, end: bytes | None) -> Iterator[Pair]:
        cursor = self._snapshot.transaction.cursor(self._databases.short)
        found = cursor.set_range(_PREFIX + start[:_MAX_SHORT])
        while found:
            key = cursor.key()[1:]
            if end is not None and key >= end:
                return
            if key >= start:
                yield key, cursor.value()
            found = cursor.next()

    def _short_reverse_range(self, start: bytes, end: bytes | None) -> Iterator[Pair]:
        cursor = self._snapshot.transaction.cursor(self._databases.short)
        if end is not None and cursor.set_range(_PREFIX + end[:_MAX_SHORT]):
            found = cursor.prev() if cursor.key()[1:] >= end else True
        else:
            found = cursor.last()
        while found:
            key = cursor.key()[1:]
            if key < start:
                return
            yield key, cursor.value()
            found = cursor.prev()

    def _long_range(self, start: bytes, end: bytes | None) -> Iterator[Pair]:
        """Yield entries in the order of whole keys: entries with the same first bytes are sorted here."""
        cursor = self._snapshot.transaction.cursor(self._databases.long)
        if not cursor.set_range(start[:_HEAD]):
            return
        for _, alike in groupby(cursor.iternext(), key=_key_head):
            for key, value in sorted(_split_stored(stored) for _, stored in alike):
                if end is not None and key >= end:
                    return
                if key >= start:
                    yield key, value


def _long_key(key: bytes) -> bytes:
    return key[:_HEAD] + blake2b(key, digest_size=_DIGEST).digest()


def _split_stored(stored: bytes) -> Pair:
    end = _LENGTH + int.from_bytes(stored[:_LENGTH], "big")
    return stored[_LENGTH:end], stored[end:]


def _key_head(pair: Pair) -> bytes:
    return pair[0][:_HEAD]


def _key_of(pair: Pair) -> bytes:
    return pair[0]
