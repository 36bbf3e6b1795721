"""Where the entries of a changelog topic go: to another partition of it (KIP-287), or to another topic."""

from collections import defaultdict
from collections.abc import Iterator, Sequence
from math import gcd

import attrs
import numpy as np
from numpy.typing import NDArray

from headwater_spark.engine.partitioners.hashing import MIX, SEED, UserPartitioner, default_partition
from headwater_spark.engine.scaling.moved_stores import MovedStore
from headwater_spark.engine.scaling.processors import Processors
from headwater_spark.engine.serdes.internal_topics import named_partition, names_processor, subscription_to

_MIX = np.uint32(MIX)
_POSITIVE = np.uint32(0x7FFFFFFF)
_BLOCK = 4


def positive_hashes(keys: Sequence[bytes]) -> NDArray[np.uint32]:
    """Return `positive_hash` of each key: ten times as fast for thousands of keys."""
    if len(set(map(len, keys))) == 1:
        return _hash_equal_lengths(keys, len(keys[0]))
    lengths = defaultdict(list)
    for index, key in enumerate(keys):
        lengths[len(key)].append(index)
    found = np.empty(len(keys), np.uint32)
    for length, indexes in lengths.items():
        found[indexes] = _hash_equal_lengths([keys[index] for index in indexes], length)
    return found


def _hash_equal_lengths(keys: Sequence[bytes], length: int) -> NDArray[np.uint32]:
    """Return the hashes of keys of one length. Arrays of 32-bit integers overflow as Java's `int` does."""
    hashed = np.full(len(keys), SEED ^ length, np.uint32)
    content = np.frombuffer(b"".join(keys), np.uint8).reshape(len(keys), length)
    whole = length - length % _BLOCK
    for block in np.ascontiguousarray(content[:, :whole]).view("<u4").T:
        mixed = block * _MIX
        mixed ^= mixed >> 24
        hashed = (hashed * _MIX) ^ (mixed * _MIX)
    if whole < length:
        for position in range(whole, length):
            hashed ^= content[:, position].astype(np.uint32) << np.uint32(8 * (position - whole))
        hashed *= _MIX
    hashed ^= hashed >> 13
    hashed *= _MIX
    hashed ^= hashed >> 15
    return hashed & _POSITIVE


NO_OWNER = -1

_LENGTH = 4


def entry_owners(
    store: MovedStore, entry_keys: Sequence[bytes | None], *numbers: Processors
) -> Sequence[Sequence[int]]:
    """Return the processors of the entries for each of `numbers`: what `MovedStore.processor` returns.

    A record without key is no entry: its processor is `NO_OWNER`.
    """
    return [owners.tolist() for owners in entry_owner_arrays(store, entry_keys, *numbers)]


def entry_owner_arrays(
    store: MovedStore, entry_keys: Sequence[bytes | None], *numbers: Processors
) -> Sequence[NDArray[np.int64]]:
    """Return the same as `entry_owners`, as arrays."""
    if None in entry_keys:
        hashes = positive_hashes([b"" if key is None else store.record_key(key) for key in entry_keys])
    else:
        hashes = positive_hashes(store.record_keys(entry_keys))  # type: ignore[arg-type]  # no key is None
    found = [table[hashes % len(table)] for table in (np.array(each.owner_table) for each in numbers)]
    if None in entry_keys:
        is_entry = np.array([key is not None for key in entry_keys])
        return [np.where(is_entry, owners, NO_OWNER) for owners in found]
    return found


@attrs.frozen
class LeftCounts:
    """The partition counts of the left table of a foreign-key join: its subscriptions name a partition."""

    before: int
    after: int


@attrs.frozen
class Transfer:
    """The entries of `source`, which has `before` partitions, go to `target` with `after` partitions.

    `store` = None: a copy, in which entries keep their partition. `left` is set for stores with
    subscriptions. `partitioner` = None: Kafka's default one.
    """

    source: str
    target: str
    before: int
    after: int
    store: MovedStore | None = None
    left: LeftCounts | None = None
    partitioner: UserPartitioner | None = None

    @property
    def is_in_place(self) -> bool:
        return self.source == self.target

    def partitions(self, keys: Sequence[bytes | None], partition: int) -> tuple[Sequence[int], Sequence[int]]:
        """Return the partitions of entries before and after; in a copy, both are `partition`.

        A record without a key is no entry: its partitions are -1.
        """
        before, after = self.partition_arrays(keys, partition)
        return before.tolist(), after.tolist()

    def partition_arrays(
        self, keys: Sequence[bytes | None], partition: int
    ) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
        """Return the same as `partitions`, as arrays."""
        if self.store is None or not keys:
            owners = np.array([NO_OWNER if key is None else partition for key in keys], np.int64)
            return owners, owners
        if self.partitioner is not None:
            return self._user_partitions(keys, self.store, self.partitioner)
        counts = (Processors(self.before, self.before), Processors(self.after, self.after))
        before, after = entry_owner_arrays(self.store, keys, *counts)
        return before, after

    def _user_partitions(
        self, keys: Sequence[bytes | None], store: MovedStore, partitioner: UserPartitioner
    ) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
        is_entry = np.array([key is not None for key in keys])
        record_keys = [store.record_key(key) for key in keys if key is not None]
        before, after = (np.full(len(keys), NO_OWNER, np.int64) for _ in range(2))
        before[is_entry], after[is_entry] = partitioner.of_keys(record_keys, self.before, self.after)
        return before, after

    def value(self, entry_key: bytes, value: bytes | None) -> bytes | None:
        """Return the value of an entry after the transfer: a subscription names another partition."""
        if self.left is None or value is None or not names_processor(value):
            return value
        left_key = entry_key[_LENGTH + int.from_bytes(entry_key[:_LENGTH], "big") :]
        return subscription_to(value, default_partition(left_key, self.left.after))

    def is_misdirected(self, entry_key: bytes, value: bytes | None) -> bool:
        """Return whether a subscription did not name the partition of its left key before."""
        if self.left is None or value is None or not names_processor(value):
            return False
        left_key = entry_key[_LENGTH + int.from_bytes(entry_key[:_LENGTH], "big") :]
        return named_partition(value) != default_partition(left_key, self.left.before)


def earlier_partitions(partition: int, before: int, after: int) -> Iterator[int]:
    """Yield the partitions in which keys of `partition` may have been at the count `before`.

    A hash that is `partition` modulo `after` is congruent to it modulo their greatest common divisor.
    """
    step = gcd(before, after)
    yield from range(partition % step, before, step)
