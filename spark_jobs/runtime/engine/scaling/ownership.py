"""PURE. Which processor owns a record: a function of (topic, partition, offset), kept as a log of epochs.

KIP-287: partitions are spread over processors by linear hashing over the *initial* number of processors,
and there are never more processors than partitions. Adding a processor appends an epoch; each partition that
moves has a cut, the first offset that the new processor owns. Nothing is ever taken out of the log, so every
record has one owner for all time and produces output once.
"""

from collections.abc import Mapping

import attrs

from spark_jobs.runtime.engine.scaling.linear_hashing import bucket

TopicPartition = tuple[str, int]


@attrs.frozen
class Epoch:
    """From here on there are `processors`; `cuts` has the partitions that existed and moved."""

    processors: int
    cuts: Mapping[TopicPartition, int] = attrs.field(factory=dict)


@attrs.frozen
class Ownership:
    """`initial` processors at first, one more by each of `epochs`, in order."""

    initial: int = 1
    epochs: tuple[Epoch, ...] = ()

    @property
    def processors(self) -> int:
        return self.epochs[-1].processors if self.epochs else self.initial

    def owner(self, topic: str, partition: int, offset: int) -> int:
        """Return the processor, 0 up to `processors` - 1, that the record belongs to."""
        owner = place = bucket(partition, self.initial, self.initial)
        for epoch in self.epochs:
            before, place = place, bucket(partition, self.initial, epoch.processors)
            # a partition that moved without a cut did not exist yet: the new owner has all of it
            if place != before and offset >= epoch.cuts.get((topic, partition), 0):
                owner = place
        return owner

    def moving(self, partitions: int) -> frozenset[int]:
        """Return the partitions (of `partitions` in all) that one more processor would take over: S1."""
        self._check_room(partitions)
        new = self.processors
        return frozenset(
            each for each in range(partitions) if bucket(each, self.initial, self.processors + 1) == new
        )

    def with_processor(self, partitions: int, cuts: Mapping[TopicPartition, int]) -> "Ownership":
        """Return the log with one more processor, which takes over the moving partitions at `cuts`.

        `partitions` is the number of input partitions now. Raises ValueError if there would be more
        processors than partitions, or if a cut is missing or of a partition that does not move.
        """
        moving = self.moving(partitions)
        strangers = sorted({partition for _, partition in cuts} - moving)
        if strangers:
            raise ValueError(f"partitions {strangers} do not move to processor {self.processors}")
        topics = {topic for topic, _ in cuts}
        missing = sorted((topic, each) for topic in topics for each in moving if (topic, each) not in cuts)
        if missing or not topics:
            raise ValueError(f"no cut for {missing or sorted(moving)}")
        return attrs.evolve(self, epochs=(*self.epochs, Epoch(self.processors + 1, dict(cuts))))

    def _check_room(self, partitions: int) -> None:
        if self.processors + 1 > partitions:
            raise ValueError(
                f"{self.processors + 1} processors need as many partitions; there are {partitions}: "
                "expand the input topics first (KIP-287)"
            )
