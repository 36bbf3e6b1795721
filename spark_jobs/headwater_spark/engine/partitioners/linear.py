"""Linear hashing of keys: an added partition takes keys from one partition only (KIP-287)."""

from headwater.model.linear_hashing import bucket
from headwater_spark.engine.partitioners.murmur2 import positive_hash


def linear_partition(key: bytes, initial: int, num_partitions: int) -> int:
    """Return the partition of a serialized key on a topic that had `initial` partitions at first.

    With `initial`, 2 x `initial`, 4 x `initial`, ... partitions it is that of Kafka's default partitioner.

    Raises:
        ValueError: `initial` is less than 1, or `num_partitions` less than `initial`.
    """
    return bucket(positive_hash(key), initial, num_partitions)
