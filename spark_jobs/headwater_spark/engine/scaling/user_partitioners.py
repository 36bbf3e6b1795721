"""Partitioners that users name for topics whose records Kafka's default partitioner does not place."""

from collections.abc import Callable
from zlib import crc32

import attrs

from headwater_spark.engine.partitioners.hashing import default_partition


class PartitionerError(Exception):
    """A user's partitioner failed, or did not return a partition; `name` is its name, `reason` says why."""

    def __init__(self, name: str, reason: str) -> None:
        super().__init__(f"{name}: {reason}")
        self.name = name
        self.reason = reason


@attrs.frozen
class UserPartitioner:
    """A user's function: (serialized key, number of partitions) → partition. `name` is `module:function`."""

    name: str
    function: Callable[[bytes, int], object] = attrs.field(eq=False, repr=False)

    def __call__(self, key: bytes, partitions: int) -> int:
        """Return the partition of a key; raises `PartitionerError`."""
        try:
            found = self.function(key, partitions)
        except Exception as error:
            raise PartitionerError(self.name, f"{type(error).__name__}: {error}") from error
        if not isinstance(found, int) or isinstance(found, bool) or not 0 <= found < partitions:
            raise PartitionerError(self.name, f"returned {found!r} for a key and {partitions} partitions")
        return found

    @property
    def checksum(self) -> int:
        """A number that differs for other names."""
        return crc32(self.name.encode())


def partition_of(key: bytes, partitions: int, partitioner: UserPartitioner | None) -> int:
    """Return the partition of a key, by Kafka's default partitioner unless there is another one."""
    return default_partition(key, partitions) if partitioner is None else partitioner(key, partitions)
