"""When an added partition is read first: after the partitions that had its keys before (KIP-253, KIP-287).

A producer that learns of an added partition writes the next records of some keys to it. Their earlier
records are in an existing partition, the parent. So a partition is released when its parents have been
processed up to where they ended when it was found.
"""

from collections.abc import Collection

import attrs

from headwater_spark.driver.input.step_planner import Offsets
from headwater_spark.engine.records import TopicPartition
from headwater_spark.engine.scaling.processors import Processors


@attrs.define
class PartitionReleases:
    """The partitions of one query that are released.

    `processed` are partitions of which a record was processed: these were released by an earlier client.
    """

    _processors: Processors
    _released: set[TopicPartition] = attrs.field(factory=set)
    _parent_ends: dict[TopicPartition, dict[TopicPartition, int]] = attrs.field(factory=dict, init=False)
    """Partition that is not released → the end offsets of its parents when it was found."""

    @classmethod
    def of(cls, processors: Processors, processed: Collection[TopicPartition]) -> "PartitionReleases":
        return cls(processors, set(processed))

    def released(self, ends: Offsets, positions: Offsets) -> Offsets:
        """Return the end offsets of the partitions that may be read now.

        Args:
            ends: Partition → end offset; an added partition's was read before its parent's.
            positions: Partition → offset up to which it is processed.
        """
        for partition in ends.keys() - self._parent_ends.keys() - self._released:
            topic, number = partition
            parents = ((topic, each) for each in self._processors.earlier(number))
            self._parent_ends[partition] = {parent: ends[parent] for parent in parents if parent in ends}
        due = [
            partition
            for partition, parent_ends in self._parent_ends.items()
            if all(positions.get(parent, 0) >= end for parent, end in parent_ends.items())
        ]
        for partition in due:
            del self._parent_ends[partition]
            self._released.add(partition)
        return {partition: end for partition, end in ends.items() if partition in self._released}
