"""Records that were written for tasks and not processed yet: check them, or write them again."""

from collections.abc import Iterator, Mapping, Sequence
from heapq import merge

import attrs

from headwater.model.problems import Problem
from headwater_spark.driver.processor_move.moves import Committed
from headwater_spark.driver.reshard import input_problems, problems
from headwater_spark.driver.reshard.entry_move import ReshardCluster
from headwater_spark.driver.reshard.input_changes import InputChange
from headwater_spark.driver.reshard.plan import Reshard
from headwater_spark.engine.partitioners.hashing import default_partition
from headwater_spark.engine.records import Commits, InputRecord, OffsetRanges, OutputRecord, TopicPartition
from headwater_spark.engine.serdes.internal_topics import (
    left_key_of,
    named_partition,
    names_processor,
    subscription_to,
)
from headwater_spark.worker.partition_reader import RecordChunk

_MAX_RECORDS = 200_000
_MAX_PROBLEMS = 10


@attrs.frozen
class UnprocessedRange:
    """The records of a partition from `first` up to and excluding `end`."""

    partition: int
    first: int
    end: int


@attrs.define(eq=False)
class UnprocessedRecords:
    """The unprocessed records of the inputs of a reshard, as they are committed now."""

    _reshard: Reshard
    _cluster: ReshardCluster
    _committed: Mapping[TopicPartition, Committed]
    _bounds: OffsetRanges = attrs.field(init=False)

    def __attrs_post_init__(self) -> None:
        self._bounds = self._cluster.bounds(self._reshard.input_partitions)

    def problems(self, *, has_begun: bool = False) -> Sequence[Problem]:
        """Return why the application would process records without their state, at most ten.

        If the reshard has begun, records without an offset are new, and their number is not limited: the
        application cannot process them before.
        """
        found: list[Problem] = []
        total = 0
        for change in self._reshard.inputs:
            committed = self._committed_of(change.topic)
            if problem := change.problem(self._reshard.application, committed):
                found.append(problem)
            if not has_begun:
                found.extend(self._without_offset(change, committed))
            if change.is_rewritten:
                total += sum(each.end - each.first for each in self._unprocessed_ranges(change))
            found.extend(self._find_misplaced(change, has_begun=has_begun))
        if total > _MAX_RECORDS and not has_begun:
            found.append(input_problems.many_unprocessed(self._reshard.application, total, _MAX_RECORDS))
        return found[:_MAX_PROBLEMS]

    def rewritten_records(self) -> Iterator[OutputRecord]:
        """Yield the records of topics that are rewritten, for their new partitions, in the order of time."""
        for change in self._reshard.inputs:
            if change.is_rewritten:
                parts = [
                    [record for chunk in self._read_chunks(change, each) for record in chunk.records]
                    for each in self._unprocessed_ranges(change)
                ]
                # Records of one partition keep their order: only the partitions are merged.
                records = list(merge(*parts, key=lambda each: each[3]))
                [targets] = change.partitions(
                    [key for *_, key, _, _ in records if key is not None], change.after
                )
                remaining = iter(targets)
                for record in records:
                    target = record[1] if record[4] is None else next(remaining)
                    yield self._move_record(change, record, target)

    def commits(self, *, added: bool) -> Commits:
        """Return the offsets to commit: of all partitions that exist, or of source partitions without one.

        Without a committed offset, `auto.offset.reset` would decide where an added partition is read. Topics
        that are rewritten have all partitions before: their offsets are committed with the records.
        """
        found: dict[TopicPartition, tuple[int, str]] = {}
        for change in self._reshard.inputs:
            committed = self._committed_of(change.topic)
            if not change.is_rewritten and all(each.offset is None for each in committed.values()):
                continue  # the application has read nothing of the topic
            for number in range(change.after):
                if added and (change.is_rewritten or committed.get(number, Committed()).offset is not None):
                    continue
                if not added and number >= change.present and not change.is_rewritten:
                    continue
                offset = self._offset_to_commit(change, number, committed)
                found[change.topic, number] = offset, change.text(number, committed)
        return found

    def _committed_of(self, topic: str) -> Mapping[int, Committed]:
        return {number: each for (name, number), each in self._committed.items() if name == topic}

    def _without_offset(self, change: InputChange, committed: Mapping[int, Committed]) -> Iterator[Problem]:
        """Yield the partitions of a source topic that have records and no offset, although others have one.

        `auto.offset.reset` decides which of their records are processed.
        """
        if change.is_internal or all(each.offset is None for each in committed.values()):
            return
        for number in range(min(change.before, change.present)):
            first, end = self._bounds[change.topic, number]
            if first < end and committed.get(number, Committed()).offset is None:
                yield input_problems.missing_offset(self._reshard.application, change.topic, number)

    def _offset_to_commit(self, change: InputChange, number: int, committed: Mapping[int, Committed]) -> int:
        first, end = self._bounds.get((change.topic, number), (0, 0))
        if change.is_rewritten:
            return end
        offset = committed[number].offset if number in committed else None
        return first if offset is None else offset

    def _unprocessed_ranges(self, change: InputChange) -> Iterator[UnprocessedRange]:
        for number in range(change.present):
            first, end = self._bounds[change.topic, number]
            committed = self._committed.get((change.topic, number), Committed()).offset
            start = first if committed is None else max(first, committed)
            if start < end:
                yield UnprocessedRange(number, start, end)

    def _read_chunks(self, change: InputChange, part: UnprocessedRange) -> Iterator[RecordChunk]:
        return self._cluster.read_range(change.topic, part.partition, part.first, part.end)

    def _find_misplaced(self, change: InputChange, *, has_begun: bool) -> Iterator[Problem]:
        """Yield the first record of each partition that must not be where it is."""
        for part in self._unprocessed_ranges(change):
            found = (
                self._problem_of(change, chunk, has_begun=has_begun)
                for chunk in self._read_chunks(change, part)
            )
            if problem := next(filter(None, found), None):
                yield problem

    def _problem_of(self, change: InputChange, chunk: RecordChunk, *, has_begun: bool) -> Problem | None:
        """Return the problem of the first record of a chunk that must not be where it is."""
        application, topic = self._reshard.application, change.topic
        records = [record for record in chunk.records if record[4] is not None]
        keys = [key for *_, key, _, _ in records if key is not None]
        before, after = change.partitions(keys, change.before, change.after)
        for record, old, new in zip(records, before, after, strict=True):
            _, partition, offset, _, _, value, _ = record
            if change.left is not None and value is not None and names_processor(value):
                named = default_partition(left_key_of(value), change.left.before)
                if named_partition(value) != named:
                    return problems.misdirected_subscription(application, topic, has_begun=has_begun)
            allowed = {old if change.is_rewritten else new}
            if change.is_rewritten and not change.is_internal:
                allowed.add(new)
            if partition not in allowed:
                if has_begun:
                    return input_problems.written_since_the_start(application, topic, partition, offset)
                return input_problems.unprocessed_record(application, topic, partition, offset, new)
        return None

    @staticmethod
    def _move_record(change: InputChange, record: InputRecord, target: int) -> OutputRecord:
        topic, _, _, timestamp, key, value, headers = record
        if change.left is not None and value is not None and names_processor(value):
            left = default_partition(left_key_of(value), change.left.after)
            value = subscription_to(value, left)
        return topic, target, key, value, timestamp, headers
