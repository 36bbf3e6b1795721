"""PURE. What a partitioner answers, held against the partitions that there are."""

from spark_jobs.runtime.engine.partitioners.protocol import StaticStreamPartitioner


class TaskMigrated(Exception):  # noqa: N818 (Kafka's TaskMigratedException)
    """A record wants a partition that does not exist (yet); the batch is tried again after an expansion.

    KIP-878, earlier draft, `StaticStreamPartitioner#staticPartition`.
    """

    def __init__(self, topic: str, partition: int, num_partitions: int) -> None:
        super().__init__(topic, partition, num_partitions)
        self.topic = topic
        self.partition = partition
        self.num_partitions = num_partitions

    def __str__(self) -> str:
        return (
            f"a record of {self.topic} wants partition {self.partition} of {self.num_partitions}: "
            "it waits until the topic is expanded"
        )


def static_partition(
    partitioner: StaticStreamPartitioner, topic: str, key: object, num_partitions: int
) -> int:
    """Return the partition that `partitioner` names.

    Raises `TaskMigrated` for one that is not there yet, ValueError for an answer that is no partition.
    """
    partition: object = partitioner.static_partition(topic, key, num_partitions)
    if not isinstance(partition, int) or partition < 0:
        raise ValueError(
            f"{type(partitioner).__name__} answered {partition!r}, which is no partition of {topic}"
        )
    if partition >= num_partitions:
        raise TaskMigrated(topic, partition, num_partitions)
    return partition
