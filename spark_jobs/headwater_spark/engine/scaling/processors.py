"""Which input partitions and keys belong to each processor of a stateful sub-topology (KIP-287)."""

from collections.abc import Iterable, Iterator, Sequence
from itertools import islice

import attrs

from headwater.compiler.streams_config import LINEAR_HASH, StreamsConfig
from headwater.model.linear_hashing import bucket_of, bucket_table, earlier_buckets, round_start
from headwater.model.topology import Application
from headwater_spark.engine.partitioners.hashing import positive_hash

DEFAULT_PARTITIONERS = (None, "default", LINEAR_HASH)
"""Values of `static.partitioner.class` with which the processor of a key follows from its bytes."""


@attrs.frozen
class Processors:
    """`count` processors of a sub-topology, whose inputs had `initial` partitions at first.

    A number up to `count` that the initial one was doubled to gives the same owners (`round_start`).
    `is_recorded`: the changelog topics have another number of partitions, because processors were removed. So
    the number is committed with the offsets.
    """

    initial: int
    count: int
    is_recorded: bool = False

    @classmethod
    def from_count(cls, count: int, known: int | None, *, is_recorded: bool = False) -> "Processors":
        """Return `count` processors; `known` is the initial number, or one that it was doubled to.

        None: `count` is such a number itself.
        """
        initial = None if known is None else round_start(known, count)
        return cls(count if initial is None else initial, count, is_recorded)

    @property
    def recorded_initial(self) -> int | None:
        """The number to commit with offsets: without it, later starts take `count` as the initial one."""
        initial = round_start(self.initial, self.count)
        return initial if initial is not None and initial < self.count else None

    @property
    def recorded_count(self) -> int | None:
        """The number to commit with offsets; None = the changelog topics show it."""
        return self.count if self.is_recorded else None

    def owner(self, partition: int) -> int:
        """Return the processor of an input partition."""
        return bucket_of(partition, self.initial, max(self.count, self.initial))

    @property
    def owner_table(self) -> Sequence[int]:
        """The owners of many numbers: the owner of n is `owner_table[n % len(owner_table)]`."""
        return bucket_table(self.initial, max(self.count, self.initial))

    def owner_of_key(self, key: bytes) -> int:
        """Return the processor of a serialized record key.

        It is the owner of the partition of the key, at all partition counts at which processors are
        supported.
        """
        return self.owner(positive_hash(key))

    def earlier_partitions(self, partition: int) -> Iterator[int]:
        """Yield the partitions that had the keys of `partition` before it was added, the latest first."""
        yield from islice(earlier_buckets(partition, self.initial), 1, None)


def processors_of(application: Application, partition_counts: Iterable[int]) -> Processors:
    """Return the processors of a sub-topology of an application that declares their number.

    Their initial number is known, or declared for `linear-hash`, or follows from the partition counts of the
    inputs: ordinary producers keep keys with their state at counts that it was doubled to.
    """
    count = application.processors or 1
    config = StreamsConfig.from_application(application)
    if config.static_partitioner not in DEFAULT_PARTITIONERS:
        return Processors(count, count)  # more processors are refused, so the number is the initial one
    known = application.initial_processors or config.linear_initial
    if known is None:
        followed = (round_start(partitions, count) for partitions in partition_counts if partitions >= count)
        known = next((each for each in followed if each is not None), None)
    return Processors.from_count(count, known)
