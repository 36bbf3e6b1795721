"""Check, before anything changes, that keys are where a move expects them."""

from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from functools import cached_property, partial

import attrs

from headwater.model.offset_metadata import decode_processor
from headwater.model.problems import Problem, ProblemsError
from headwater_spark.driver.processor_move.entry_copy import Follower, MoveCluster, Report, bounded_keys
from headwater_spark.driver.processor_move.moves import Committed, Move
from headwater_spark.driver.processor_move.problems import (
    forgotten_offset,
    misplaced_entry,
    names_old_processor,
    other_owner,
    unprocessed_record,
)
from headwater_spark.engine.partitioners.hashing import linear_partition
from headwater_spark.engine.records import InputRecord, TopicPartition
from headwater_spark.engine.scaling.moved_stores import MovedStore
from headwater_spark.engine.scaling.processors import Processors
from headwater_spark.engine.scaling.transfers import entry_owners
from headwater_spark.engine.serdes.internal_topics import names_processor
from headwater_spark.worker.partition_reader import RecordChunk

_SAMPLE = 1_000
_MAX_KEYS_IN_MEMORY = 1_000_000


def check_entries(
    move: Move,
    cluster: MoveCluster,
    committed: Mapping[TopicPartition, Committed],
    report: Report,
    *,
    most_keys: int = _MAX_KEYS_IN_MEMORY,
) -> None:
    """Check that each entry of the state is with the processor of its key.

    Partitions that may have entries of keys which moved before were checked then, and are omitted. At most
    `most_keys` keys of other processors are kept in memory; with more, a partition is read again.

    Raises:
        ProblemsError: Entries are with another one; a problem for each store.
        KafkaException: A changelog topic cannot be read.
    """
    undeleted = move.undeleted_partitions(committed)
    sources = [
        (store, processor)
        for store, processor in move.sources
        if (store.changelog, processor) not in undeleted
    ]
    bounds = cluster.bounds((store.changelog, processor) for store, processor in sources)
    total, done = sum(end - first for first, end in bounds.values()), 0
    problems: dict[str, Problem] = {}

    def count_records(chunk: RecordChunk) -> RecordChunk:
        nonlocal done
        done += len(chunk)
        report("checking the state", done, max(done, total))
        return chunk

    for store, processor in sources:

        def read_chunks(topic: str = store.changelog, partition: int = processor) -> Iterator[RecordChunk]:
            return map(count_records, cluster.read(topic, partition))

        owners = partial(_find_owners, store, move.old)
        key = misplaced_key(owners, processor, read_chunks, most_keys)
        if key is not None and store.changelog not in problems:
            owner = store.processor(key, move.old)
            problems[store.changelog] = misplaced_entry(move, store, processor, owner)
    if problems:
        raise ProblemsError(list(problems.values()))


def _find_owners(store: MovedStore, processors: Processors, keys: Sequence[bytes | None]) -> Sequence[int]:
    [owners] = entry_owners(store, keys, processors)
    return owners


def misplaced_key(
    owners_of: Callable[[Sequence[bytes | None]], Sequence[int]],
    processor: int,
    read_chunks: Callable[[], Iterator[RecordChunk]],
    most_keys: int,
) -> bytes | None:
    """Return a key of another processor that has an entry in the partition of this one, if there is one.

    `owners_of` returns the processors of keys of entries.
    """
    for misplaced in bounded_keys(most_keys):
        for chunk in read_chunks():
            keys = chunk.keys
            owners = owners_of(keys)
            if not misplaced.found and set(owners) <= {processor}:
                continue
            for index, (key, owner) in enumerate(zip(keys, owners, strict=True)):
                if key is None or owner == processor:
                    continue
                if chunk.value(index) is None:
                    misplaced.remove(key)  # an earlier move has deleted it
                else:
                    misplaced.put(key, None)
        if misplaced.found:
            return min(misplaced.found)
    return None


def check_input(
    move: Move, cluster: MoveCluster, committed: Mapping[TopicPartition, Committed], report: Report
) -> None:
    """Check that each unprocessed record is in the partition of its key, at the present partition counts.

    Of partitions that were added last, some records that are processed are checked, too: they show whether
    the producers partition as declared.

    Raises:
        ProblemsError: A record is in another partition, or an offset is missing.
        KafkaException: The input cannot be read.
    """
    offsets, check = _find_offsets(move, cluster, committed), _RecordCheck(move)
    starts = {
        each: max(0, offset - _SAMPLE) if check.is_last_added(*each) else offset
        for each, offset in offsets.items()
    }
    bounds = cluster.bounds(starts)
    total = sum(max(0, end - max(first, starts[each])) for each, (first, end) in bounds.items())
    done = 0
    for (topic, partition), start in starts.items():
        for chunk in cluster.read(topic, partition, start):
            for record in chunk.records:
                if problem := check.find_problem(record, is_processed=record[2] < offsets[topic, partition]):
                    raise ProblemsError([problem])
            done += len(chunk)
            report("checking the input", done, max(done, total))


class InputCheck:
    """Checks whether unprocessed records are in the partition of their key, again and again.

    Each record is read once. So most are read before the cut of an expansion, and the cut reads the newest.
    """

    def __init__(self, move: Move, cluster: MoveCluster) -> None:
        self._move = move
        self._cluster = cluster
        self._check = _RecordCheck(move)
        self._follower: Follower | None = None
        self._firsts: dict[TopicPartition, int] = {}
        self._positions: dict[TopicPartition, int] = {}
        """Partition → the offset after the last read record; `_firsts`: offset of the first read record."""
        self._wrong: dict[TopicPartition, tuple[int, Problem]] = {}
        """Partition → offset of the last record with a problem."""

    def problems(self, committed: Mapping[TopicPartition, Committed]) -> Sequence[Problem]:
        """Return problems of unprocessed records, at most one for each partition; raises `KafkaException`."""
        try:
            offsets = _find_offsets(self._move, self._cluster, committed)
        except ProblemsError as error:
            return error.problems
        for each, offset in offsets.items():
            if offset < self._firsts.get(each, offset + 1):
                self._firsts[each] = self._positions[each] = offset
        if self._follower is None:
            self._follower = self._cluster.follower()
        for each, chunk in self._follower.read({each: self._positions[each] for each in offsets}):
            for record in chunk.records:
                if problem := self._check.find_problem(record, is_processed=False):
                    self._wrong[each] = record[2], problem
            self._positions[each] = chunk.next_offset
        return [problem for each, (at, problem) in self._wrong.items() if at >= offsets.get(each, 0)]


def count_unprocessed(move: Move, cluster: MoveCluster) -> int:
    """Return the number of records that were not processed yet."""
    committed = cluster.committed(move.partitions)
    bounds = cluster.bounds(committed)
    # Records that retention has deleted, or a purge, are not processed any more.
    return sum(max(0, end - max(first, committed[each].offset or 0)) for each, (first, end) in bounds.items())


def _find_offsets(
    move: Move, cluster: MoveCluster, committed: Mapping[TopicPartition, Committed]
) -> Mapping[TopicPartition, int]:
    """Return the committed offsets of the input; partitions without one have no records.

    Raises:
        ProblemsError: A partition belongs to another processor, or has records and no offset.
    """
    offsets: dict[TopicPartition, int] = {}
    for topic, partition in move.partitions:
        found = committed[topic, partition]
        owner = decode_processor(found.text, partition)
        if owner not in (None, move.old.owner(partition)):
            raise ProblemsError([other_owner(move, topic, partition, owner)])
        if found.offset is not None:
            offsets[topic, partition] = found.offset
    without = [each for each in move.partitions if each not in offsets]
    for each, (first, end) in cluster.bounds(without).items():
        if first < end:
            raise ProblemsError([forgotten_offset(move, *each)])
    return offsets


@attrs.frozen
class _RecordCheck:
    """Finds records that are in a wrong partition, or that must be processed before the move."""

    move: Move

    @cached_property
    def _counts(self) -> Mapping[str, int]:
        return {topic: count for part in self.move.parts for topic, count in part.inputs.items()}

    @cached_property
    def _subscriptions(self) -> Collection[str]:
        return {topic for part in self.move.parts for topic in part.subscriptions}

    def find_problem(self, record: InputRecord, *, is_processed: bool) -> Problem | None:
        topic, partition, at, _, key, value, _ = record
        is_waiting = not is_processed and topic in self._subscriptions
        if is_waiting and value is not None and names_processor(value):
            return names_old_processor(self.move, topic, partition)
        count = self._counts[topic]
        if key is not None and linear_partition(key, self.move.old.initial, count) != partition:
            return unprocessed_record(self.move, topic, partition, at)
        return None

    def is_last_added(self, topic: str, partition: int) -> bool:
        """Return whether a partition was added last, and was not one of a processor before."""
        return partition >= self.move.before and partition >= self._counts[topic] // 2
