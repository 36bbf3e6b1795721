"""The steps that move state to more or fewer processors, and which one is next (KIP-287). No effects.

A move is a series of steps. Each begins with what the cluster shows, so it can be killed and run again:

- MARK: each task commits its offsets again, with a mark in their metadata. No client processes records from
  then on.
- EXPAND: the changelog topics get a partition for each added processor. They never lose one.
- COPY: entries of the keys that move are copied to the partitions of their new processors. Then one
  transaction assigns the input partitions to these, with a mark of the next phase.
- CLEAR: entries that were copied are deleted from the old partitions. Then one transaction removes the
  marks.

If processors are removed, or were removed before, the changelog topics have more partitions than the state
has processors. Then the number is committed with the offsets of the input (`decode_number`).

A running application announces a move first, and copies entries before it marks its tasks
(`processor_expansion`). If nothing reads the old entries, it has no step CLEAR: the old processors delete
them later, some with each batch (`MovedEntries`).
"""

from collections.abc import Iterator, Mapping, Sequence
from enum import Enum
from functools import cached_property
from typing import TypeVar

import attrs

from headwater.model.linear_hashing import round_start
from headwater.model.offset_metadata import (
    DELETING_KEY,
    LINEAGE_KEY,
    MoveMark,
    MovePhase,
    OffsetMetadata,
    announcement_partitions,
    decode_mark,
    decode_metadata,
    decode_number,
    decode_positions,
    decode_time,
    latest_metadata,
)
from headwater_spark.engine.records import TopicPartition
from headwater_spark.engine.scaling.moved_stores import MovedStore
from headwater_spark.engine.scaling.processors import Processors
from headwater_spark.engine.task_state import task_name_of

_VERSIONS = 2
"""By how much the version of a state grows: a prepared batch that was not committed has the next one."""

_Found = TypeVar("_Found")


@attrs.frozen
class Committed:
    """What is committed for an input partition; `offset` None = nothing."""

    offset: int | None = None
    text: str = ""


class MoveStep(Enum):
    """The steps of a move, in their order; `Move.next_step` returns which one is next."""

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

    def select(self, committed: Mapping[TopicPartition, _Found]) -> Mapping[TopicPartition, _Found]:
        """Return what is committed for the input of this sub-topology."""
        return {each: committed[each] for each in self.partitions}

    def partitions_of(self, processor: int, processors: Processors) -> Sequence[TopicPartition]:
        return [each for each in self.partitions if processors.owner(each[1]) == processor]


@attrs.frozen
class Move:
    """The state of an application moves from `before` to `after` processors, more or fewer.

    `is_live`: the application runs, and pauses only for the last steps. `known_initial` is the initial number
    of processors, or a doubling of it; None = `before` is. Local states that added processors may have before
    the cut (`warm_up`) have `lineage`; None = they have none. `widest` is the largest partition count of the
    changelog topics before the move.
    """

    application: str
    before: int
    after: int
    parts: tuple[MovedPart, ...]
    is_live: bool = False
    known_initial: int | None = None
    lineage: int | None = None
    widest: int = 0
    deletes_later: bool = False
    """The old processors delete the entries of keys that move, after the move."""

    @cached_property
    def old(self) -> Processors:
        """The processors before the move."""
        return Processors.from_count(self.before, self.known_initial, is_recorded=self.widest > self.before)

    @cached_property
    def new(self) -> Processors:
        """The processors after the move; the initial number is the same, or what was doubled to it."""
        return Processors.from_count(self.after, self.old.initial, is_recorded=self.widest > self.after)

    @property
    def is_possible(self) -> bool:
        """Whether the initial number allows so few processors."""
        return round_start(self.old.initial, self.after) is not None

    def sources_of(self, processor: int) -> Sequence[int]:
        """Return the old processors whose keys a new one gets; an added one gets a part of them."""
        merged = [each for each in range(self.before) if self.new.owner(each) == processor]
        return merged if processor < self.before else [self.old.owner(processor)]

    @property
    def partitions(self) -> Sequence[TopicPartition]:
        return [each for part in self.parts for each in part.partitions]

    @property
    def changelogs(self) -> Sequence[str]:
        return [store.changelog for part in self.parts for store in part.stores]

    @property
    def announcements(self) -> Sequence[TopicPartition]:
        """The partitions whose offset metadata announce the move. No task commits their offsets."""
        return announcement_partitions(self.changelogs)

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

    def undeleted_partitions(
        self, committed: Mapping[TopicPartition, Committed]
    ) -> frozenset[TopicPartition]:
        """Return the changelog partitions that may have entries of keys that moved before this move."""
        return frozenset(
            (store.changelog, processor)
            for part in self.parts
            for processor in range(self.before)
            if DELETING_KEY in self._old_metadata(part, committed, processor).clocks
            for store in part.stores
        )

    @property
    def producer_name(self) -> str:
        """The transactional id of a move: a second one fences the first."""
        return f"{self.application}-headwater-move"

    def task_name(self, part: MovedPart, processor: int) -> str:
        """Return the transactional id of a task (`BatchRequest.task_name`)."""
        return task_name_of(self.application, part.subtopology, processor)

    @property
    def task_names(self) -> Sequence[str]:
        """The transactional ids of the tasks that exist before the move."""
        return [self.task_name(part, each) for part in self.parts for each in range(self.before)]

    def next_step(self, committed: Mapping[TopicPartition, Committed], counts: Mapping[str, int]) -> MoveStep:
        """Return what is done next.

        `committed` has `partitions` and `announcements`, `counts` is changelog topic → its partition count.
        """
        texts = [committed[each].text for each in self.partitions]
        marks = [decode_mark(text) for text in texts]
        is_expanded = all(counts[topic] >= self.after for topic in self.changelogs)
        recorded = decode_number(texts, max((counts[topic] for topic in self.changelogs), default=0))
        is_done = recorded == self.after or (
            recorded is None and all(counts[topic] == self.after for topic in self.changelogs)
        )
        if any(mark is not None and mark.phase is MovePhase.CLEAR for mark in marks):
            return MoveStep.CLEAR
        is_announced = any(decode_mark(committed[each].text) is not None for each in self.announcements)
        if is_done and not any(marks) and not is_announced:
            return MoveStep.DONE
        if not all(marks):
            return MoveStep.MARK
        return MoveStep.COPY if is_expanded else MoveStep.EXPAND

    def marked_metadata(self, partition: int, text: str) -> str:
        """Return the metadata of an input partition from MARK on; otherwise it stays as it is."""
        metadata = decode_metadata(text) or OffsetMetadata()
        mark = MoveMark(MovePhase.COPY, self.before, self.after)
        return _encode_metadata(metadata, partition, text, self.old, mark)

    def assigned_metadata(
        self, committed: Mapping[TopicPartition, Committed]
    ) -> Mapping[TopicPartition, str]:
        """Return the metadata with which the input partitions belong to their new processors.

        An added processor starts with the times of its source. A processor that gets the keys of removed
        processors starts with merged times (`merged_times`). Clocks that count entries are omitted, because
        the restored entries decide their values. So each task has to restore entries: no local state has the
        new version. A processor that gets keys has another lineage: its local state may have entries that
        were deleted at another processor.

        With `deletes_later` the move is complete then, and a task that was there before restores nothing.
        """
        found: dict[TopicPartition, str] = {}
        if self.deletes_later:
            mark, found = None, self._without_announcement(committed)
        else:
            mark = MoveMark(MovePhase.CLEAR, self.before, self.after)
        for part in self.parts:
            states = [self._old_metadata(part, committed, each) for each in range(self.before)]
            for processor in range(self.after):
                metadata = self._merge_metadata(part, states, processor)
                for topic, partition in part.partitions_of(processor, self.new):
                    text = committed[topic, partition].text
                    found[topic, partition] = _encode_metadata(metadata, partition, text, self.new, mark)
        return found

    def _old_metadata(
        self, part: MovedPart, committed: Mapping[TopicPartition, Committed], processor: int
    ) -> OffsetMetadata:
        """Return the metadata of an old processor."""
        partitions = part.partitions_of(processor, self.old)
        return latest_metadata(committed[each].text for each in partitions) or OffsetMetadata()

    def _merge_metadata(
        self, part: MovedPart, states: Sequence[OffsetMetadata], processor: int
    ) -> OffsetMetadata:
        """Return the metadata of a new processor, merged from the metadata of the old processors."""
        sources = [states[each] for each in self.sources_of(processor)]
        counts = {name for store in part.stores for name in store.counts}
        times = {name: time for name, time in merged_times(sources, part).items() if name not in counts}
        lineage = self.lineage if processor >= self.before else None
        if len(sources) == 1 and processor < self.before:
            lineage = sources[0].clocks.get(LINEAGE_KEY)
        own = {} if lineage is None else {LINEAGE_KEY: lineage}
        deleting = {DELETING_KEY: 1} if self._has_moved_entries(states, processor) else {}
        restores = not self.deletes_later or processor >= self.before
        version = max(each.version for each in sources) + (_VERSIONS if restores else 0)
        return OffsetMetadata(version, {**times, **own, **deleting})

    def _has_moved_entries(self, states: Sequence[OffsetMetadata], processor: int) -> bool:
        """Return whether a new processor has entries of keys that moved, in this move or an earlier one."""
        if not self.is_live or processor >= self.before:
            return False
        split = {self.old.owner(each) for each in range(self.before, self.after)}
        return DELETING_KEY in states[processor].clocks or (self.deletes_later and processor in split)

    def completed(self, committed: Mapping[TopicPartition, Committed]) -> Mapping[TopicPartition, str]:
        """Return the metadata without marks."""
        return self._without_announcement(committed) | {
            each: _encode_metadata(
                decode_metadata(committed[each].text) or OffsetMetadata(),
                each[1],
                committed[each].text,
                self.new,
                None,
            )
            for each in self.partitions
            if decode_mark(committed[each].text) is not None
        }

    def _without_announcement(
        self, committed: Mapping[TopicPartition, Committed]
    ) -> dict[TopicPartition, str]:
        return {each: "" for each in self.announcements if committed[each].text}


def merged_times(states: Sequence[OffsetMetadata], part: MovedPart) -> Mapping[str, int]:
    """Return the clocks with which a processor continues that has the keys of all of `states`.

    Time does not run backwards, and sequence numbers of entries stay unique: so it is the largest one. What
    waits for a time must not be skipped: so the next time of a punctuation, the time up to which closed
    windows were emitted, and the bound for records without a partner are the smallest ones. If one of the
    processors has emitted none, nothing counts as emitted.
    """
    emitted = {store.name for store in part.stores}
    active = [state.clocks for state in states if state.clocks]
    merged: dict[str, int] = {}
    for clocks in active:
        for name, time in clocks.items():
            is_awaited = "/schedule/" in name or name.endswith("/earliest") or name in emitted
            merged[name] = (min if is_awaited else max)(merged.get(name, time), time)
    return {
        name: time
        for name, time in merged.items()
        if name not in (LINEAGE_KEY, DELETING_KEY)
        and (name not in emitted or all(name in clocks for clocks in active))
    }


def _encode_metadata(
    metadata: OffsetMetadata, partition: int, before: str, processors: Processors, mark: MoveMark | None
) -> str:
    """Return `metadata` for a partition, with the time and the read positions in the text `before`."""
    owner = processors.owner(partition)
    return metadata.encode(
        decode_time(before),
        decode_positions(before),
        None if owner == partition else owner,
        mark,
        initial=processors.recorded_initial,
        count=processors.recorded_count,
        declared=processors.count,
    )
