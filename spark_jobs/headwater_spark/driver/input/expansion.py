"""The input of a query whose processors have several partitions, once partitions are added (KIP-287)."""

import time
from collections.abc import Callable

import attrs
from confluent_kafka import KafkaException

from headwater.model.offset_metadata import MoveMark
from headwater.model.problems import Problem, ProblemCode, ProblemsError
from headwater_spark.driver.input.step_planner import PartitionReleases
from headwater_spark.driver.layout import Layout
from headwater_spark.driver.offsets import GroupOffsets
from headwater_spark.engine.records import Offsets, TopicPartition
from headwater_spark.engine.scaling.processors import Processors

_CHECK_SECONDS = 1.0
_STABLE_SECONDS = 1.0


@attrs.define(kw_only=True)
class InputExpansion:
    """Observes the partitions of one query, from one of its starts to the next.

    `layout` returns the current layout, `request_check` requests a topic check, which may update it.
    """

    _subtopology: str
    _processors: Processors
    _layout: Callable[[], Layout]
    _offsets: GroupOffsets
    _request_check: Callable[[], None]
    _releases: PartitionReleases | None = attrs.field(default=None, init=False)
    _check_requested_at: float = attrs.field(default=float("-inf"), init=False)

    def applies_to(self, ends: Offsets | None) -> bool:
        """Return whether a batch of Spark up to `ends` has to be read in steps, whatever rows it has.

        Spark reads a partition as soon as it exists, the layout may not have it yet. `ends` None: they are
        unknown, because the checkpoint is remote.
        """
        layout = self._layout()
        return ends is None or self._has_unknown(layout, ends) or layout.is_expanded(self._subtopology)

    def positions(self) -> Offsets:
        """Return the committed offsets of the input partitions."""
        return self._offsets.committed(self._layout().input_partitions(self._subtopology))

    def readable_ends(self, until: Offsets, positions: Offsets) -> Offsets:
        """Return the end offsets of the partitions that may be read now; raises `KafkaException`.

        `until` are the end offsets of Spark's batch, `positions` those up to which partitions are processed.
        """
        layout = self._layout()
        self._has_unknown(layout, until)
        if self._releases is None:
            partitions = layout.input_partitions(self._subtopology)
            self._releases = PartitionReleases.from_processed(
                self._processors, self._offsets.committed_processors(partitions)
            )
        return self._releases.released_ends(self._end_offsets(layout), positions)

    def _has_unknown(self, layout: Layout, ends: Offsets) -> bool:
        if ends.keys() <= set(layout.input_partitions(self._subtopology)):
            return False
        now = time.monotonic()
        if now - self._check_requested_at >= _CHECK_SECONDS:
            self._check_requested_at = now
            self._request_check()
        return True

    def _end_offsets(self, layout: Layout) -> Offsets:
        """Return the end offsets of all partitions; a parent's are read after its children's.

        So a record of a child that is read has all records before it, with the same key and by the same
        producer, in what is read of the parent.
        """
        partitions = layout.input_partitions(self._subtopology)
        depths = {each: len(tuple(self._processors.earlier_partitions(each[1]))) for each in partitions}
        ends = dict(self._offsets.end_offsets(partitions))
        for depth in reversed(range(max(depths.values(), default=0))):
            parents = [each for each in partitions if depths[each] <= depth]
            ends |= self._offsets.end_offsets(parents)
            # A writing task commits to parent and child at once; the parent may not show it yet.
            own = [each for each in parents if each[0] in layout.repartition_topics]
            try:
                ends |= self._offsets.stable_end_offsets(own, _STABLE_SECONDS) if own else {}
            except KafkaException:
                topics = {topic for topic, _ in own}
                ends = {each: end for each, end in ends.items() if each[0] not in topics or not depths[each]}
        return ends


def check_no_move(group: str, mark: MoveMark | None) -> None:
    """Raise `ProblemsError` if a move of the state to another number of processors is not complete."""
    if mark is None:
        return
    incomplete = Problem(
        code=ProblemCode.MOVE_INCOMPLETE,
        summary=f"The state of {group} is being moved from {mark.before} to {mark.after} processors.",
        application=group,
        expected="a move that is complete",
        found="a mark in the offset metadata",
        why="Some entries of the state are with the old processors, others with the new ones.",
        fix=f"Declare `processors: {mark.after}`, and run `headwater processors move --offline` with the "
        "document until it succeeds. Then start the application.",
    )
    raise ProblemsError([incomplete])


def check_processors(group: str, layout: Layout, subtopology: str, found: dict[TopicPartition, int]) -> None:
    """Check that each partition belongs to the processor that has processed it.

    Nothing is checked if the document accepts to lose state (`setup.allowUnsafeExpansion`). `found` is
    partition → processor. Raises `ProblemsError`.
    """
    if layout.programs[subtopology].application.setup.allow_unsafe_expansion:
        return
    processors = layout.processors.get(subtopology)
    for (topic, partition), processor in sorted(found.items()):
        if processor != (partition if processors is None else processors.owner(partition)):
            raise ProblemsError([_other_processor(group, topic, partition, processor, processors)])


def _other_processor(
    group: str, topic: str, partition: int, processor: int, processors: Processors | None
) -> Problem:
    number = partition if processors is None else processors.owner(partition)
    declared = "follow" if processors is None else str(processors.count)
    return Problem(
        code=ProblemCode.INVALID_CONFIG,
        summary=f"Partition {partition} of {topic} was processed by processor {processor}, not {number}.",
        application=group,
        topic=topic,
        expected=f"the number of processors with which processor {processor} reads the partition",
        found=f"`processors: {declared}`",
        why="The state of the partition's keys is with the processor that has processed it.",
        fix="If another client has expanded the changelog topics, such as an agent without `processors` in "
        "its document, run `headwater plan`: it says how to restore them. Otherwise declare the number of "
        "processors that the state has (`headwater processors status` shows it), and start the application "
        "again.",
    )
