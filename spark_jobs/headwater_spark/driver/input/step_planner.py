"""What a query with several input topics reads next, so that its tasks process records in the order of time.

A micro-batch that is larger than the limit is processed in steps. A step reads an offset range of each input
partition; a task processes its part up to the point where one of its partitions has no record left, and holds
the rest back (KIP-695, `PartitionGroup#readyToProcess`). The next step reads what was held back again.

An added partition is read after the partitions that had its keys before (KIP-253, KIP-287). A producer that
learns of it writes the next records of some keys to it. Their earlier records are in an existing partition,
the parent. So a partition is released when its parents have been processed up to where they ended when it was
found.
"""

from collections import defaultdict
from collections.abc import Callable, Collection, Mapping

import attrs

from headwater_spark.engine.records import OffsetRanges, Offsets, TopicPartition
from headwater_spark.engine.scaling.processors import Processors

DISABLED = -1
"""The value of `max.task.idle.ms` with which tasks never wait, not even for records that are in Kafka."""
_LEAST_SHARE = 8
"""A partition gets at least one eighth of an equal share, also if all its records were held back before."""
_SMALL_REST = 16
"""So many records at the end of a partition are read with those before them.

No task gets a record of a range of transaction markers only: another Spark job has to commit its end.
"""


@attrs.define
class StepPlanner:
    """The positions of a query in its input: the records before them are processed.

    `max_idle_ms` is `max.task.idle.ms`. Times are milliseconds of any clock. `task_of` returns the task of a
    partition; None = they have the same number.
    """

    _limit: int
    _max_idle_ms: int = 0
    _task_of: Callable[[int], int] | None = None
    _positions: dict[TopicPartition, int] = attrs.field(factory=dict, init=False)
    _advanced: dict[TopicPartition, int] = attrs.field(factory=dict, init=False)
    """Partition → offsets that the last step which read it has processed."""
    _empty_since: dict[TopicPartition, int] = attrs.field(factory=dict, init=False)

    def start(self, positions: Offsets) -> None:
        """Begin at `positions`; partitions without one are read from their first record."""
        self._positions = dict(positions)
        self._advanced = {}
        self._empty_since = {}

    @property
    def positions(self) -> Offsets:
        return dict(self._positions)

    def position(self, partition: TopicPartition) -> int:
        return self._positions.get(partition, 0)

    def is_behind(self, ends: Offsets) -> bool:
        return any(self.position(each) < end for each, end in ends.items())

    def fits_one_batch(self, starts: Offsets, ends: Offsets) -> bool:
        """Return whether tasks can process Spark's own batch: all that there is, and not too much."""
        number = sum(end - starts.get(each, 0) for each, end in ends.items())
        may_wait = self._max_idle_ms > 0 and any(
            len(inputs) > 1 for inputs in self._inputs_by_task(ends).values()
        )
        return number <= (0 if may_wait else self._limit) and all(
            starts.get(each, 0) <= self.position(each) for each in ends
        )

    def next_ranges(self, ends: Offsets, now_ms: int, most: int | None = None) -> OffsetRanges:
        """Return what the next step reads; empty while all tasks with records have to wait for others.

        `ends` are the present ends of all input partitions of the query. `most` is the number of records that
        fit into memory, None = the limit in records.
        """
        limit = self._limit if most is None else min(most, self._limit)
        available: dict[TopicPartition, int] = {}
        self._note_empty(ends, now_ms)
        for inputs in self._inputs_by_task(ends).values():
            if not any(self._is_waited_for(each, now_ms) for each in inputs):
                available |= {each: ends[each] - self.position(each) for each in inputs}
        available = {each: number for each, number in available.items() if number > 0}
        shares = divide_records(available, self._partition_weights(available, limit), limit)
        small_rest = _SMALL_REST if most is None else min(_SMALL_REST, most // _SMALL_REST)
        ranges: dict[TopicPartition, tuple[int, int]] = {}
        for each, share in shares.items():
            position, is_rest_small = self.position(each), available[each] - share <= small_rest
            ranges[each] = position, position + (available[each] if is_rest_small else share)
        return ranges

    def find_awaited(self, ranges: OffsetRanges, ends: Offsets) -> frozenset[TopicPartition]:
        """Return the partitions that hold back the others of their task when their range is processed.

        These have more records than the range. With `max.task.idle.ms` above 0 these are all: a task waits
        for the next record of a partition that it has read to the end. Partitions without a range have no
        records, and are not waited for any longer.
        """
        if self._max_idle_ms == DISABLED:
            return frozenset()
        inputs = {each: task for task in self._inputs_by_task(ends).values() for each in task}
        return frozenset(
            each
            for each, (_, end) in ranges.items()
            if len(inputs.get(each, ())) > 1 and (end < ends.get(each, 0) or self._max_idle_ms > 0)
        )

    def advance(self, ranges: OffsetRanges, held_back: Offsets, ends: Offsets, now_ms: int) -> None:
        """Move the positions after a step; `held_back` are the first offsets that were not processed."""
        for each, (first, end) in ranges.items():
            position = held_back.get(each, end)
            self._advanced[each] = position - first
            self._positions[each] = max(position, self.position(each))
        self._note_empty(ends, now_ms)

    def skip_to(self, starts: Offsets) -> None:
        """Skip records that do not exist any more; `starts` are the first offsets of the partitions."""
        for each, start in starts.items():
            self._positions[each] = max(start, self.position(each))

    def _inputs_by_task(self, partitions: Offsets) -> Mapping[int, list[TopicPartition]]:
        tasks: dict[int, list[TopicPartition]] = defaultdict(list)
        for each in partitions:
            tasks[each[1] if self._task_of is None else self._task_of(each[1])].append(each)
        return tasks

    def _note_empty(self, ends: Offsets, now_ms: int) -> None:
        for each, end in ends.items():
            if self.position(each) < end:
                self._empty_since.pop(each, None)
            else:
                self._empty_since.setdefault(each, now_ms)

    def _is_waited_for(self, partition: TopicPartition, now_ms: int) -> bool:
        since = self._empty_since.get(partition)
        return since is not None and now_ms < since + self._max_idle_ms

    def _partition_weights(
        self, available: Mapping[TopicPartition, int], limit: int
    ) -> Mapping[TopicPartition, int]:
        """Return the weights of the partitions: what the tasks could process of them in the last step."""
        least = max(1, limit // (_LEAST_SHARE * max(1, len(available))))
        return {each: max(least, self._advanced.get(each, 0)) for each in available}


def divide_records(
    available: Mapping[TopicPartition, int], weights: Mapping[TopicPartition, int], limit: int
) -> Mapping[TopicPartition, int]:
    """Return the share of each partition of `limit` records, by weight; at least 1, at most what it has."""
    shares: dict[TopicPartition, int] = {}
    rest = dict(available)
    while rest:
        total = sum(weights[each] for each in rest)
        whole = {each: number for each, number in rest.items() if number * total <= limit * weights[each]}
        if not whole:
            return shares | {each: max(1, limit * weights[each] // total) for each in rest}
        shares |= whole
        limit -= sum(whole.values())
        rest = {each: number for each, number in rest.items() if each not in whole}
    return shares


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
    def from_processed(
        cls, processors: Processors, processed: Collection[TopicPartition]
    ) -> "PartitionReleases":
        return cls(processors, set(processed))

    def released_ends(self, ends: Offsets, positions: Offsets) -> Offsets:
        """Return the end offsets of the partitions that may be read now.

        Args:
            ends: Partition → end offset; an added partition's was read before its parent's.
            positions: Partition → offset up to which it is processed.
        """
        for partition in ends.keys() - self._parent_ends.keys() - self._released:
            topic, number = partition
            parents = ((topic, each) for each in self._processors.earlier_partitions(number))
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
