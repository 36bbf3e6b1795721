"""Which input partitions belong to each processor of a stateful sub-topology (KIP-287)."""

from collections.abc import Iterator
from itertools import islice

import attrs

from infra.model.linear_hashing import ancestors, bucket
from spark_jobs.runtime.engine.partitioners.murmur2 import positive_hash


@attrs.frozen
class Processors:
    """`count` processors of a sub-topology, whose inputs had `initial` partitions at first."""

    initial: int
    count: int

    def owner(self, partition: int) -> int:
        """Return the processor of an input partition."""
        return bucket(partition, self.initial, max(self.count, self.initial))

    def owner_of_key(self, key: bytes) -> int:
        """Return the processor of a serialized record key; that of its partition, if keys are hashed."""
        return self.owner(positive_hash(key))

    def earlier(self, partition: int) -> Iterator[int]:
        """Yield the partitions that had the keys of `partition` before it was added, the latest first."""
        yield from islice(ancestors(partition, self.initial), 1, None)
