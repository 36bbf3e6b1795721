"""Repartition topics are read round by round: a reader's batch ends where a batch of the writing query ends.

A round is one batch of a writing query; its tasks commit one after the other. A reader that took only the
records that the first task has committed would see that task's range of times, and find the others' records
late. So it waits for the rest of the round and reads it in the same batch; then
`headwater_spark.worker.interleaving` merges the records by time.
"""

import threading
from bisect import bisect_left
from collections import deque
from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from contextlib import contextmanager

import attrs
import structlog
from confluent_kafka import KafkaException

from headwater.model.compiled import CompiledApplication
from headwater.model.nodes import TopicKind
from headwater_spark.driver.captured_failures import failure_reason
from headwater_spark.engine.records import OffsetRanges, Offsets, TopicPartition

_log = structlog.get_logger(__name__)
_MAX_ROUNDS = 1000
_ROUND_TIMEOUT_SECONDS = 60.0


class RoundEnds:
    """The end offsets of each query's latest rounds; any thread may call any method."""

    def __init__(self) -> None:
        self._ends: dict[str, deque[Offsets]] = {}
        self._running: set[str] = set()
        self._resets = 0
        self._changed = threading.Condition()

    @contextmanager
    def running(self, writer: str) -> Iterator[None]:
        """Mark a batch of `writer` as running: readers wait for its end. A failed batch ends no round."""
        with self._changed:
            self._running.add(writer)
        try:
            yield
        finally:
            with self._changed:
                self._running.discard(writer)
                self._changed.notify_all()

    def record(self, writer: str, ends: Offsets) -> None:
        """Record that a round of `writer` ended at `ends`."""
        with self._changed:
            self._ends.setdefault(writer, deque(maxlen=_MAX_ROUNDS)).append(ends)
            self._changed.notify_all()

    def reset(self) -> None:
        """Forget all rounds; readers stop waiting."""
        with self._changed:
            self._ends.clear()
            self._resets += 1
            self._changed.notify_all()

    def ends_covering(self, writer: str, offsets: Offsets, timeout_seconds: float) -> Offsets:
        """Return the end offset of the round that contains the offset of each partition.

        Partitions may be in different rounds: the tasks that read them advance differently. Waits while a
        batch of `writer` is running, up to `timeout_seconds`. Partitions whose round is unknown are missing.
        """
        with self._changed:
            resets = self._resets
            self._changed.wait_for(
                lambda: (
                    self._is_covered(writer, offsets) or writer not in self._running or self._resets != resets
                ),
                timeout_seconds,
            )
            rounds = list(self._ends.get(writer, ()))
        return {
            partition: rounds[at][partition]
            for partition, offset in offsets.items()
            if (at := _first_covering(rounds, partition, offset)) < len(rounds)
        }

    def _is_covered(self, writer: str, offsets: Offsets) -> bool:
        rounds = self._ends.get(writer)
        return rounds is not None and all(
            rounds[-1].get(each, 0) >= offset for each, offset in offsets.items()
        )


@attrs.define(eq=False)
class RepartitionRounds:
    """The rounds of an application's queries; the queries' threads share it.

    `end_offsets` reads where partitions end, `stable_end_offsets` does so when all that was committed is
    visible. Both may raise `KafkaException`: then the round is not recorded, and its readers do not wait for
    it. Foreign-key joins write in cycles and are excluded: their messages are correct in any order.
    """

    _end_offsets: Callable[[list[TopicPartition]], Offsets]
    _stable_end_offsets: Callable[[list[TopicPartition]], Offsets]
    _max_records: int
    shared_topics: frozenset[str] = attrs.field(default=frozenset(), init=False)
    """Repartition topics that more than one task writes to."""
    _round_ends: RoundEnds = attrs.field(factory=RoundEnds, init=False)
    _written: Mapping[str, list[TopicPartition]] = attrs.field(factory=dict, init=False)

    def update(self, compiled: CompiledApplication, partition_counts: Mapping[str, int]) -> None:
        """Use the application as it is now."""
        repartitions = {
            topic.name for topic in compiled.internal_topics if topic.kind is TopicKind.REPARTITION
        }
        parts = [part for part in compiled.subtopologies if not part.is_global]
        self.shared_topics = frozenset(
            topic for topic in repartitions if sum(part.tasks for part in parts if topic in part.sinks) > 1
        )
        self._written = {
            str(part.id): [
                (topic, each)
                for topic in sorted(repartitions.intersection(part.sinks))
                for each in range(partition_counts.get(topic, 0))
            ]
            for part in parts
        }

    def start(self) -> None:
        """Record the end of earlier rounds, before the first query starts."""
        for writer in self._written:
            self._record_end(writer, self._end_offsets)

    def reset(self) -> None:
        """Forget all rounds: a topic was re-created, so their end offsets are invalid."""
        self._round_ends.reset()

    @contextmanager
    def round(self, writer: str) -> Iterator[None]:
        """Run one batch of the query `writer`, inside the block; record the end of its round."""
        with self._round_ends.running(writer):
            yield
            self._record_end(writer, self._stable_end_offsets)

    def extra_ranges(self, topics: Collection[str], ends: Offsets) -> OffsetRanges:
        """Return the ranges of `topics` that complete the rounds in which a batch up to `ends` ends.

        Waits for rounds that are running. Empty if the ranges have more records than one batch may have.
        """
        extra: dict[TopicPartition, tuple[int, int]] = {}
        for writer, partitions in self._written.items():
            offsets = {each: ends[each] for each in partitions if each[0] in topics and each in ends}
            if offsets:
                round_ends = self._round_ends.ends_covering(writer, offsets, _ROUND_TIMEOUT_SECONDS)
                extra |= {each: (ends[each], end) for each, end in round_ends.items() if ends[each] < end}
        return extra if sum(end - first for first, end in extra.values()) <= self._max_records else {}

    def _record_end(self, writer: str, read_ends: Callable[[list[TopicPartition]], Offsets]) -> None:
        partitions = self._written.get(writer)
        if not partitions:
            return
        try:
            self._round_ends.record(writer, read_ends(partitions))
        except KafkaException as error:
            _log.debug("end of a round is unknown", query=writer, reason=failure_reason(error))


def _first_covering(rounds: Sequence[Offsets], partition: TopicPartition, offset: int) -> int:
    """Return the index of the first round that ends at `offset` or later; ends never decrease."""
    return bisect_left(rounds, offset, key=lambda ends: ends.get(partition, -1))
