"""The partition of a key: murmur2 of the default partitioner, linear hashing of processors, users' code."""

from collections.abc import Callable, Mapping, Sequence
from functools import lru_cache
from zlib import crc32

import attrs

from headwater.model.linear_hashing import bucket_of
from headwater_spark.engine.records import Value

SEED = 0x9747B28C
MIX = 0x5BD1E995
_MASK = 0xFFFFFFFF


@lru_cache(maxsize=65_536)
def murmur2(key: bytes) -> int:
    """Return the hash of `key` as a signed 32-bit integer."""
    length = len(key)
    hashed = SEED ^ length
    whole = length & ~3
    for start in range(0, whole, 4):
        block = int.from_bytes(key[start : start + 4], "little") * MIX & _MASK
        block = (block ^ (block >> 24)) * MIX & _MASK
        hashed = (hashed * MIX & _MASK) ^ block
    if whole < length:
        hashed = (hashed ^ int.from_bytes(key[whole:], "little")) * MIX & _MASK
    hashed = (hashed ^ (hashed >> 13)) * MIX & _MASK
    hashed ^= hashed >> 15
    return hashed - (1 << 32) if hashed >> 31 else hashed


def positive_hash(key: bytes) -> int:
    """Return the hash as Kafka's partitioners use it: without its sign bit (`Utils#toPositive`)."""
    return murmur2(key) & 0x7FFFFFFF


def default_partition(key: bytes, num_partitions: int) -> int:
    """Return the partition of `key` by Kafka's default partitioner (`BuiltInPartitioner#partitionForKey`)."""
    return positive_hash(key) % num_partitions


def linear_partition(key: bytes, initial: int, num_partitions: int) -> int:
    """Return the partition of a serialized key on a topic that had `initial` partitions at first.

    With `initial`, 2 x `initial`, 4 x `initial`, ... partitions Kafka's default partitioner returns the same.

    Raises:
        ValueError: `initial` is less than 1, or `num_partitions` less than `initial`.
    """
    return bucket_of(positive_hash(key), initial, num_partitions)


def partition_count(counts: Mapping[str, int], topic: str) -> int:
    """Return the number of partitions of a topic; raises ValueError if `counts` does not have it."""
    try:
        return counts[topic]
    except KeyError:
        raise ValueError(f"the number of partitions of {topic} is unknown") from None


@attrs.frozen
class InnerKeyPartition:
    """`WindowedStreamPartitioner`: ignore the `window_bytes` at the end of the key."""

    counts: Mapping[str, int]
    window_bytes: int

    def __call__(self, topic: str, _key: Value, key_bytes: bytes | None, _value: Value) -> int | None:
        return None if key_bytes is None else self.of_inner_key(topic, key_bytes[: -self.window_bytes])

    def of_inner_key(self, topic: str, key: bytes) -> int:
        """Return the partition of all windows of a serialized key."""
        return default_partition(key, partition_count(self.counts, topic))


class PartitionerError(Exception):
    """A user's partitioner failed, or did not return a partition; `name` is its name, `reason` says why."""

    def __init__(self, name: str, reason: str) -> None:
        super().__init__(f"{name}: {reason}")
        self.name = name
        self.reason = reason


class PartitionerEndedError(PartitionerError):
    """The program that runs a user's partitioner cannot return partitions any more, for any key."""


@attrs.frozen
class UserPartitioner:
    """A user's function: (serialized key, number of partitions) → partition.

    `name` is `module:function`, or a class of Java. `of_many` returns the partitions of many keys for each of
    several partition counts; None = `function` is called for each. `serde` is how a class gets its keys.
    """

    name: str
    function: Callable[[bytes, int], object] = attrs.field(eq=False, repr=False)
    of_many: Callable[[Sequence[bytes], Sequence[int]], Sequence[Sequence[int]]] | None = attrs.field(
        default=None, eq=False, repr=False
    )
    serde: str = attrs.field(default="", eq=False)

    def __call__(self, key: bytes, partitions: int) -> int:
        """Return the partition of a key; raises `PartitionerError`."""
        try:
            found = self.function(key, partitions)
        except PartitionerError:
            raise
        except Exception as error:
            raise PartitionerError(self.name, f"{type(error).__name__}: {error}") from error
        return self._check_partition(found, partitions)

    def of_keys(self, keys: Sequence[bytes], *counts: int) -> Sequence[Sequence[int]]:
        """Return the partitions of many keys for each of `counts`; raises `PartitionerError`."""
        if self.of_many is None:
            return [[self(key, count) for key in keys] for count in counts]
        found = self.of_many(keys, counts)
        for partitions, count in zip(found, counts, strict=True):
            for outermost in (min(partitions, default=0), max(partitions, default=0)):
                self._check_partition(outermost, count)
        return found

    @property
    def checksum(self) -> int:
        """A number that differs for other names and serdes."""
        return crc32(f"{self.name} {self.serde}".rstrip().encode())

    def _check_partition(self, found: object, partitions: int) -> int:
        if not isinstance(found, int) or isinstance(found, bool) or not 0 <= found < partitions:
            raise PartitionerError(self.name, f"returned {found!r} for a key and {partitions} partitions")
        return found


def partitions_of(
    keys: Sequence[bytes], partitioner: UserPartitioner | None, *counts: int
) -> Sequence[Sequence[int]]:
    """Return the partitions of keys for each count; `partitioner` = None: Kafka's default one."""
    if partitioner is None:
        return [[default_partition(key, count) for key in keys] for count in counts]
    return partitioner.of_keys(keys, *counts)
