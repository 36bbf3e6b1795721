"""What `static.partitioner.class` names (KIP-878, earlier draft: `StaticStreamPartitioner`)."""

from typing import Protocol


class StaticStreamPartitioner(Protocol):
    """Keeps every key on its partition, whatever the number of partitions. A class of the user's needs both.

    An object is made without arguments, once in each process that partitions or expands.
    """

    def static_partition(self, topic: str, key: object, num_partitions: int) -> int:
        """Return the partition of `key` (as its serde reads it), 0 or more.

        One at or above `num_partitions` means that the topic is to be expanded first: nothing is lost, the
        batch is tried again.
        """
        ...

    def on_partition_expansion(self, old: int, new: int) -> None:
        """Hear that the application has settled after an expansion from `old` to `new` partitions.

        Called on the leading agent only; from now on keys may be sent to the new partitions.
        """
        ...
