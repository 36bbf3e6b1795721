"""Check, before anything changes, that keys are where a move expects them."""

from collections.abc import Callable, Iterator, Mapping, Sequence

from infra.model.offset_metadata import decode_processor
from infra.model.problems import Problem, ProblemsError
from spark_jobs.runtime.driver.processor_move.bounded_keys import bounded_keys
from spark_jobs.runtime.driver.processor_move.entry_copy import MoveCluster, Report
from spark_jobs.runtime.driver.processor_move.moves import Committed, Move
from spark_jobs.runtime.driver.processor_move.problems import (
    forgotten_offset,
    misplaced_entry,
    names_old_processor,
    other_owner,
    unprocessed_record,
)
from spark_jobs.runtime.engine.partitioners.linear import linear_partition
from spark_jobs.runtime.engine.records import TopicPartition
from spark_jobs.runtime.engine.scaling.entry_owners import entry_owners
from spark_jobs.runtime.engine.scaling.moved_stores import MovedStore, names_processor
from spark_jobs.runtime.engine.scaling.processors import Processors
from spark_jobs.runtime.worker.restore import RecordChunk

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
    undeleted = move.undeleted(committed)
    sources = [each for each in move.sources if (each[0].changelog, each[1]) not in undeleted]
    bounds = [cluster.bounds(store.changelog, each) for store, each in sources]
    total, done = sum(end - first for first, end in bounds), 0
    problems: dict[str, Problem] = {}

    def checked(chunk: RecordChunk) -> RecordChunk:
        nonlocal done
        done += len(chunk)
        report("checking the state", done, max(done, total))
        return chunk

    for store, processor in sources:

        def chunks(topic: str = store.changelog, partition: int = processor) -> Iterator[RecordChunk]:
            return map(checked, cluster.read(topic, partition))

        key = _misplaced_key(move.old, store, processor, chunks, most_keys)
        if key is not None and store.changelog not in problems:
            owner = store.processor(key, move.old)
            problems[store.changelog] = misplaced_entry(move, store, processor, owner)
    if problems:
        raise ProblemsError(list(problems.values()))


def _misplaced_key(
    processors: Processors,
    store: MovedStore,
    processor: int,
    chunks: Callable[[], Iterator[RecordChunk]],
    most_keys: int,
) -> bytes | None:
    """Return a key of another processor that has an entry in the partition of this one, if there is one."""
    for misplaced in bounded_keys(most_keys):
        for chunk in chunks():
            keys = chunk.keys
            [owners] = entry_owners(store, keys, processors)
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
    move: Move,
    cluster: MoveCluster,
    committed: Mapping[TopicPartition, Committed],
    report: Report,
    *,
    samples: int = _SAMPLE,
) -> None:
    """Check that each unprocessed record is in the partition of its key, at the present partition counts.

    Of partitions that were added last, so many records that are processed are checked, too: they show whether
    the producers partition as declared.

    Raises:
        ProblemsError: A record is in another partition, or an offset is missing.
        KafkaException: The input cannot be read.
    """
    partitions = [(part, *each) for part in move.parts for each in part.partitions]
    for number, (part, topic, partition) in enumerate(partitions):
        report("checking the input", number, len(partitions))
        offset, count = committed[topic, partition].offset, part.inputs[topic]
        owner = decode_processor(committed[topic, partition].text, partition)
        if owner not in (None, move.old.owner(partition)):
            raise ProblemsError([other_owner(move, topic, partition, owner)])
        if offset is None:
            first, end = cluster.bounds(topic, partition)
            if first < end:
                raise ProblemsError([forgotten_offset(move, topic, partition)])
            continue
        is_newest = partition >= move.before and partition >= count // 2
        start = max(0, offset - samples) if is_newest else offset
        for chunk in cluster.read(topic, partition, start):
            for _, _, at, _, key, value, _ in chunk.records:
                if at >= offset and topic in part.subscriptions and value and names_processor(value):
                    raise ProblemsError([names_old_processor(move, topic, partition)])
                if key is not None and linear_partition(key, move.old.initial, count) != partition:
                    raise ProblemsError([unprocessed_record(move, topic, partition, at)])


def misplaced_records(
    move: Move, cluster: MoveCluster, observed: Mapping[TopicPartition, Committed]
) -> Sequence[Problem]:
    """Return the problem of unprocessed records that are not in the partition of their key."""
    try:
        # Reading a sample of each partition would take longer than the rest of the cut.
        check_input(move, cluster, observed, lambda *_: None, samples=0)
    except ProblemsError as error:
        return error.problems
    return ()


def unprocessed(move: Move, cluster: MoveCluster) -> int:
    """Return the number of records that were not processed yet."""
    committed = cluster.committed(move.partitions)
    ends = {each: cluster.bounds(*each)[1] for each in committed}
    return sum(max(0, ends[each] - (found.offset or 0)) for each, found in committed.items())
