"""Ownership of records: (topic, partition, offset) → processor, stored as a log of epochs (KIP-287).

Partitions are assigned to processors by linear hashing on the *initial* number of processors, and there are
never more processors than partitions. Each added processor appends an epoch. Each partition that moves has a
cut: the first offset that the new processor owns. Epochs are never removed, so a record always has the same
owner, and produces output once.
"""

from collections.abc import Mapping

import attrs

from infra.model.linear_hashing import bucket
from spark_jobs.runtime.engine.records import TopicPartition


@attrs.frozen
class Epoch:
    """The number of processors from here on, and the cuts of the existing partitions that moved."""

    processors: int
    cuts: Mapping[TopicPartition, int] = attrs.field(factory=dict)


@attrs.frozen
class Ownership:
    """`initial` processors, and one more per epoch."""

    initial: int = 1
    epochs: tuple[Epoch, ...] = ()

    @property
    def processors(self) -> int:
        return self.epochs[-1].processors if self.epochs else self.initial

    def owner(self, topic: str, partition: int, offset: int) -> int:
        """Return the processor that owns a record, from 0 to `processors` - 1."""
        owner = assigned = bucket(partition, self.initial, self.initial)
        for epoch in self.epochs:
            before, assigned = assigned, bucket(partition, self.initial, epoch.processors)
            # a partition that moved without a cut did not exist yet: the new owner has all of it
            if assigned != before and offset >= epoch.cuts.get((topic, partition), 0):
                owner = assigned
        return owner

    def moving(self, partitions: int) -> frozenset[int]:
        """Return the partitions (of `partitions` in total) that an added processor would own."""
        self._check_count(partitions)
        new = self.processors
        return frozenset(
            each for each in range(partitions) if bucket(each, self.initial, self.processors + 1) == new
        )

    def with_processor(self, partitions: int, cuts: Mapping[TopicPartition, int]) -> "Ownership":
        """Return the log with an added processor that owns the moving partitions from `cuts` on.

        `partitions` is the current number of input partitions.

        Raises:
            ValueError: There would be more processors than partitions, a cut is missing, or a cut is of a
                partition that does not move.
        """
        moving = self.moving(partitions)
        unmoved = sorted({partition for _, partition in cuts} - moving)
        if unmoved:
            raise ValueError(f"partitions {unmoved} do not move to processor {self.processors}")
        topics = {topic for topic, _ in cuts}
        missing = sorted((topic, each) for topic in topics for each in moving if (topic, each) not in cuts)
        if missing or not topics:
            raise ValueError(f"no cut for {missing or sorted(moving)}")
        return attrs.evolve(self, epochs=(*self.epochs, Epoch(self.processors + 1, dict(cuts))))

    def _check_count(self, partitions: int) -> None:
        if self.processors + 1 > partitions:
            raise ValueError(
                f"{self.processors + 1} processors need as many partitions; there are {partitions}: "
                "expand the input topics first (KIP-287)"
            )
