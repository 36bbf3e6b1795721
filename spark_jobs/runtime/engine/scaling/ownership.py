"""Ownership of records: (topic, partition, offset) → processor, stored as a log of epochs (KIP-287).

Partitions are assigned to processors by linear hashing on the *initial* number of processors, and there are
never more processors than partitions. Each added processor appends an epoch. Each partition that moves has a
cut: the first offset that the new processor owns. Epochs are never removed, so a record always has the same
owner, and produces output once.

Linear hashing: an added bucket takes keys from one bucket only; no other key moves.
"""

from collections.abc import Iterator, Mapping

import attrs

from spark_jobs.runtime.engine.records import TopicPartition


def bucket(number: int, initial: int, count: int) -> int:
    """Return the bucket of `number` (0 or more) in a table that has grown from `initial` to `count` buckets.

    A table grows by splitting one bucket after the other: round k splits the first `initial * 2**k` buckets
    in order. It never has fewer than `initial` buckets.

    Raises:
        ValueError: `initial` is less than 1, or `count` less than `initial`.
    """
    if not 1 <= initial <= count:
        raise ValueError(f"a table of initially {initial} buckets cannot have {count}")
    span = initial
    while span * 2 <= count:
        span *= 2
    found = number % (span * 2)
    return found if found < count else found % span


def split_by(new: int, initial: int) -> int:
    """Return the bucket from which the added bucket `new` takes keys.

    Raises `ValueError` if it is one of the `initial` buckets.
    """
    if new < initial:
        raise ValueError(f"bucket {new} is one of the first {initial}")
    return bucket(new, initial, new)


def ancestors(number: int, initial: int) -> Iterator[int]:
    """Yield `number` and the earlier buckets of its keys, back to one of the first `initial` buckets."""
    yield number
    while number >= initial:
        number = split_by(number, initial)
        yield number


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
