"""Records as the columns of their partitions, and what a task writes to each topic."""

from collections.abc import Iterable, Sequence

from headwater_spark.engine.record_order import PartitionColumns
from headwater_spark.engine.records import InputRecord, OutputRecord, TopicPartition


def columns_of(records: Iterable[InputRecord]) -> Sequence[PartitionColumns]:
    """Return the columns of each partition; records of a partition are ordered by offset."""
    partitions: dict[TopicPartition, list[InputRecord]] = {}
    for record in records:
        partitions.setdefault(record[:2], []).append(record)
    return [
        PartitionColumns(each, *map(list, list(zip(*found, strict=True))[2:]))
        for each, found in partitions.items()
    ]


def by_topic(records: Iterable[OutputRecord]) -> dict[str, list[OutputRecord]]:
    """Return the records of each topic, in their order."""
    found: dict[str, list[OutputRecord]] = {}
    for record in records:
        found.setdefault(record[0], []).append(record)
    return found
