"""PURE. Static partitioners: a key stays on its partition whatever the number of partitions (KIP-878).

Each may name a partition that does not exist yet: then the runtime raises `TaskMigrated` and waits for the
expansion. What they need stands in the application's config, beside `static.partitioner.class`:

- `initial-hash`: `static.partitioner.initial.partitions`, the count at the beginning, never to be changed.
- `key-prefix`: `static.partitioner.table` (`acme=0,globex=1`), `static.partitioner.separator` (`:`), and for
  prefixes that are not in the table `static.partitioner.initial.partitions`.
- `range`: `static.partitioner.bounds` (`g,n,t`): keys before `g` go to partition 0, before `n` to 1, before
  `t` to 2, all others to 3.
"""

from bisect import bisect_right
from collections.abc import Mapping

import attrs

from spark_jobs.runtime.engine.partitioners.murmur2 import default_partition


@attrs.frozen
class InitialHash:
    """Kafka's default over the count at the beginning: later partitions get no keys by themselves."""

    initial_partitions: int

    def static_partition(self, topic: str, key: object, num_partitions: int) -> int:  # noqa: ARG002
        return default_partition(bytes_of(key), self.initial_partitions)

    def on_partition_expansion(self, old: int, new: int) -> None:
        """Nothing depends on the count."""


@attrs.frozen
class KeyPrefix:
    """By the key's prefix, say a tenant: a table says where it lives, others are hashed as `InitialHash`."""

    table: Mapping[str, int]
    separator: str = ":"
    initial_partitions: int | None = None

    def static_partition(self, topic: str, key: object, num_partitions: int) -> int:
        """Raise KeyError for a prefix that is not in the table when nothing says how to hash others."""
        prefix = text_of(key).partition(self.separator)[0]
        if prefix in self.table:
            return self.table[prefix]
        if self.initial_partitions is None:
            raise KeyError(prefix)
        return InitialHash(self.initial_partitions).static_partition(topic, prefix, num_partitions)

    def on_partition_expansion(self, old: int, new: int) -> None:
        """The table says it all: a new tenant is given a new partition by a change of the document."""


@attrs.frozen
class Range:
    """By order: partition i has the keys from `bounds[i - 1]` up to, and without, `bounds[i]`.

    Bounds may be appended, which splits the last range; keys from the new bound on must be new ones.
    """

    bounds: tuple[str, ...]

    def static_partition(self, topic: str, key: object, num_partitions: int) -> int:  # noqa: ARG002
        return bisect_right(self.bounds, text_of(key))

    def on_partition_expansion(self, old: int, new: int) -> None:
        """Nothing depends on the count."""


def text_of(key: object) -> str:
    """Return the text of a key: bytes as UTF-8, whatever is no text in its plain form."""
    return key.decode(errors="surrogateescape") if isinstance(key, bytes) else str(key)


def bytes_of(key: object) -> bytes:
    """Return what is hashed of a key: `text_of` it, as UTF-8."""
    return text_of(key).encode(errors="surrogateescape")
