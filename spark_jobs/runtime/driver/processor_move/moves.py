"""What a move of the state consists of, and what is done next, from what is committed. No effects.

A move is a series of steps. Each begins with what the cluster shows, so it can be killed and run again:

- MARK: each task commits its offsets again, with a mark in their metadata. No client processes records from
  then on.
- EXPAND: the changelog topics get a partition for each added processor.
- COPY: entries of the keys that move are copied to the new partitions. Then one transaction assigns the
  input partitions to their new processors, with a mark of the next phase.
- CLEAR: entries that were copied are deleted from the old partitions. Then one transaction removes the marks.

A running application announces a move first, and copies entries before it marks its tasks
(`processor_expansion`).
"""

from collections.abc import Iterable, Iterator, Mapping, Sequence
from enum import Enum
from functools import cached_property

import attrs

from spark_jobs.runtime.engine.records import TopicPartition
from spark_jobs.runtime.engine.scaling.marks import MoveMark, MovePhase
from spark_jobs.runtime.engine.scaling.moved_stores import MovedStore
from spark_jobs.runtime.engine.scaling.processors import Processors
from spark_jobs.runtime.engine.task_state import task_name_of
from spark_jobs.runtime.worker.offset_metadata import (
    LINEAGE_KEY,
    OffsetMetadata,
    decode,
    decode_mark,
    decode_positions,
    decode_time,
    latest_metadata,
)

_VERSIONS = 2
"""By how much the version of a state grows: a prepared batch that was not committed has the next one."""


@attrs.frozen
class Committed:
    """What is committed for an input partition; `offset` None = nothing."""

    offset: int | None = None
    text: str = ""


class MoveStep(Enum):
    MARK = "mark"
    EXPAND = "expand"
    COPY = "copy"
    CLEAR = "clear"
    DONE = "done"


@attrs.frozen
class MovedPart:
    """A sub-topology with state. `inputs` is topic → partition count."""

    subtopology: str
    inputs: Mapping[str, int]
    stores: tuple[MovedStore, ...]
    subscriptions: frozenset[str] = frozenset()
    """Inputs of foreign-key joins whose records may name processors: these must be processed before."""

    @property
    def partitions(self) -> Sequence[TopicPartition]:
        return [(topic, each) for topic, count in sorted(self.inputs.items()) for each in range(count)]

    def select(self, offsets: Mapping[TopicPartition, int]) -> Mapping[TopicPartition, int]:
        """Return the offsets of the input of this sub-topology."""
        return {each: offsets[each] for each in self.partitions}

    def partitions_of(self, processor: int, processors: Processors) -> Sequence[TopicPartition]:
        return [each for each in self.partitions if processors.owner(each[1]) == processor]


@attrs.frozen
class Move:
    """The state of an application moves from `before` to `after` processors.

    `is_live`: the application runs, and pauses only for the last steps. `known_initial` is the initial number
    of processors, or one that it was doubled to; None = `before` is. `lineage` is that of the local states
    that added processors may have before the cut (`warm_up`); None = they have none.
    """

    application: str
    before: int
    after: int
    parts: tuple[MovedPart, ...]
    is_live: bool = False
    known_initial: int | None = None
    lineage: int | None = None

    @cached_property
    def old(self) -> Processors:
        """The processors before the move."""
        return Processors.of(self.before, self.known_initial)

    @cached_property
    def new(self) -> Processors:
        """The processors after the move; the initial number is the same."""
        return Processors.of(self.after, self.old.initial)

    @property
    def partitions(self) -> Sequence[TopicPartition]:
        return [each for part in self.parts for each in part.partitions]

    @property
    def changelogs(self) -> Sequence[str]:
        return [store.changelog for part in self.parts for store in part.stores]

    @property
    def announcements(self) -> Sequence[TopicPartition]:
        """The partitions whose offset metadata announce the move. No task commits their offsets."""
        return announcements(self.changelogs)

    @property
    def announcement(self) -> str:
        """The metadata of `announcements`, from before the changelog topics are expanded until the end.

        They have the lineage: so another attempt is noticed (`attempts`).
        """
        clocks = {} if self.lineage is None else {LINEAGE_KEY: self.lineage}
        mark = MoveMark(MovePhase.CATCH_UP, self.before, self.after)
        return OffsetMetadata(clocks=clocks).encode(-1, mark=mark)

    @property
    def sources(self) -> Iterator[tuple[MovedStore, int]]:
        """Yield (store, partition of its changelog topic) for all entries that exist before the move."""
        for part in self.parts:
            for store in part.stores:
                for processor in range(self.before):
                    yield store, processor

    @property
    def producer_name(self) -> str:
        """The transactional id of a move: a second one fences the first."""
        return f"{self.application}-headwater-move"

    def task_name(self, part: MovedPart, processor: int) -> str:
        """Return the transactional id of a task (`BatchRequest.task_name`)."""
        return task_name_of(self.application, part.subtopology, processor)

    def next_step(self, committed: Mapping[TopicPartition, Committed], counts: Mapping[str, int]) -> MoveStep:
        """Return what is done next.

        `committed` has `partitions` and `announcements`, `counts` is changelog topic → its partition count.
        """
        marks = [decode_mark(committed[each].text) for each in self.partitions]
        is_expanded = all(counts[topic] >= self.after for topic in self.changelogs)
        if any(mark is not None and mark.phase is MovePhase.CLEAR for mark in marks):
            return MoveStep.CLEAR
        is_announced = any(decode_mark(committed[each].text) is not None for each in self.announcements)
        if is_expanded and not any(marks) and not is_announced:
            return MoveStep.DONE
        if not all(marks):
            return MoveStep.MARK
        return MoveStep.COPY if is_expanded else MoveStep.EXPAND

    def marked(self, partition: int, text: str) -> str:
        """Return the metadata of an input partition from MARK on; otherwise it stays as it is."""
        metadata = decode(text) or OffsetMetadata()
        mark = MoveMark(MovePhase.COPY, self.before, self.after)
        return _encoded(metadata, partition, text, self.old, mark)

    def assigned(self, committed: Mapping[TopicPartition, Committed]) -> Mapping[TopicPartition, str]:
        """Return the metadata with which the input partitions belong to their new processors.

        An added processor continues with the times of the one that it takes keys from. Clocks that count
        entries are omitted: their values are those of the entries that a task restores. So each task has to
        restore entries: the version is one that no local state has, and an added processor gets a lineage of
        its own.
        """
        found: dict[TopicPartition, str] = {}
        mark = MoveMark(MovePhase.CLEAR, self.before, self.after)
        for part in self.parts:
            counts = {name for store in part.stores for name in store.counts}
            for processor in range(self.before):
                partitions = part.partitions_of(processor, self.old)
                before = latest_metadata(committed[each].text for each in partitions) or OffsetMetadata()
                clocks = {name: time for name, time in before.clocks.items() if name not in counts}
                stays = OffsetMetadata(before.version + _VERSIONS, clocks)
                lineage = {} if self.lineage is None else {LINEAGE_KEY: self.lineage}
                times = {name: time for name, time in clocks.items() if name != LINEAGE_KEY}
                added = attrs.evolve(stays, clocks={**times, **lineage})
                for topic, partition in partitions:
                    metadata = stays if self.new.owner(partition) == processor else added
                    text = committed[topic, partition].text
                    found[topic, partition] = _encoded(metadata, partition, text, self.new, mark)
        return found

    def completed(self, committed: Mapping[TopicPartition, Committed]) -> Mapping[TopicPartition, str]:
        """Return the metadata without marks."""
        announced = {each: "" for each in self.announcements if committed[each].text}
        return announced | {
            each: _encoded(
                decode(committed[each].text) or OffsetMetadata(),
                each[1],
                committed[each].text,
                self.new,
                None,
            )
            for each in self.partitions
            if decode_mark(committed[each].text) is not None
        }


def announcements(changelogs: Iterable[str]) -> Sequence[TopicPartition]:
    """Return the partitions that announce a move of these changelog topics."""
    return [(topic, 0) for topic in sorted(set(changelogs))]


def _encoded(
    metadata: OffsetMetadata, partition: int, before: str, processors: Processors, mark: MoveMark | None
) -> str:
    """Return `metadata` for a partition, with the time and the read positions in the text `before`."""
    owner = processors.owner(partition)
    return metadata.encode(
        decode_time(before),
        decode_positions(before),
        None if owner == partition else owner,
        mark,
        processors.recorded_initial,
    )
