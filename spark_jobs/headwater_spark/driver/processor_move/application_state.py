"""An application whose state may move: its declared processors, its topics and what it has committed."""

from collections.abc import Iterable, Iterator, Mapping, Sequence

import attrs

from headwater.compiler import StreamsConfig
from headwater.model.compiled import CompiledApplication
from headwater.model.linear_hashing import is_doubled, round_start
from headwater.model.nodes import SourceNode
from headwater.model.offset_metadata import (
    MoveMark,
    MovePhase,
    announcement_partitions,
    decode_initial,
    decode_mark,
    decode_number,
)
from headwater.model.problems import ProblemsError
from headwater.model.topology import TopologyDocument
from headwater_spark.driver.processor_move import problems
from headwater_spark.driver.processor_move.entry_copy import MoveCluster
from headwater_spark.driver.processor_move.moves import Move, MovedPart
from headwater_spark.engine.program import SubtopologyProgram
from headwater_spark.engine.records import TopicPartition
from headwater_spark.engine.scaling.moved_stores import moved_stores
from headwater_spark.engine.scaling.processors import DEFAULT_PARTITIONERS, processors_of


@attrs.frozen
class AddedProcessor:
    """A processor that the state has not yet (KIP-287).

    It will process `partitions` of each input (S1). It gets some keys of processor `source`, so its state is
    in the partitions of `source` in the changelog topics.
    """

    number: int
    source: int
    partitions: tuple[int, ...]


@attrs.frozen
class PartStatus:
    """The processors of a sub-topology with state; None = its changelog topics do not exist yet.

    `added` are missing for the declared number, or for the number of an incomplete move, if each input has
    enough partitions.
    """

    subtopology: str
    processors: int | None
    inputs: Mapping[str, int]
    added: tuple[AddedProcessor, ...] = ()


@attrs.frozen
class ProcessorStatus:
    """The processors of an application: declared, and what its state has. `move` = one is not complete."""

    application: str
    declared: int
    parts: tuple[PartStatus, ...]
    move: MoveMark | None = None

    @property
    def needs_move(self) -> bool:
        return self.move is not None or any(
            part.processors not in (None, self.declared) for part in self.parts
        )


@attrs.frozen
class ApplicationState:
    """An application that declares a number of processors. Methods raise `KafkaException`.

    `programs` are the programs of sub-topologies with state. `counts` is topic → partition count.
    """

    document: TopologyDocument
    compiled: CompiledApplication
    programs: tuple[SubtopologyProgram, ...]
    counts: Mapping[str, int]
    cluster: MoveCluster

    @property
    def declared(self) -> int:
        return self.document.application.processors or 0

    def status(self) -> ProcessorStatus:
        mark = self._committed_mark()
        number, parts = self._committed_number(mark), []
        for program in self.programs:
            found = [self.counts[topic] for topic in program.changelogs.values() if topic in self.counts]
            known = found if number is None else [*found, number]
            processors = min(known) if found else None
            target = self.declared if mark is None else mark.after
            added = tuple(self._added_processors(program, processors, target)) if processors else ()
            parts.append(PartStatus(program.name, processors, self._input_counts(program), added))
        return ProcessorStatus(self.document.application.id, self.declared, tuple(parts), mark)

    def move(self) -> Move | None:
        """Return the move to the declared number; None = the state has it. Raises `ProblemsError`."""
        application, at = self.document.application, self.document.application.at
        partitioner = StreamsConfig.from_application(application).static_partitioner
        if partitioner not in DEFAULT_PARTITIONERS:
            raise ProblemsError([problems.other_partitioner(application.id, str(partitioner), at)])
        mark, changelogs = self._committed_mark(), self._changelog_counts()
        if mark is not None and mark.after != self.declared:
            raise ProblemsError(
                [problems.other_target(application.id, mark.before, mark.after, self.declared, at)]
            )
        number = self._committed_number(mark)
        counts = set(changelogs.values())
        if mark is None and (len(counts) != 1 if number is None else min(counts) < number):
            found = [f"{topic}: {count or 'does not exist'}" for topic, count in changelogs.items()]
            raise ProblemsError([problems.different_changelogs(application.id, found)])
        before = mark.before if mark is not None else number or counts.pop()
        if before == self.declared:
            return None
        self._check_stores()
        parts = tuple(map(self._moved_part, self.programs))
        move = Move(
            application.id,
            before,
            self.declared,
            parts,
            known_initial=self._initial_number(before, parts),
            widest=max(changelogs.values(), default=0),
        )
        if not move.is_possible:
            raise ProblemsError([problems.fewer_than_initial(move, move.old.initial, at)])
        self._check_counts(move)
        return move

    def _added_processors(
        self, program: SubtopologyProgram, before: int, after: int
    ) -> Iterator[AddedProcessor]:
        """Yield the processors that are missing for the number `after`; none if an input is too narrow."""
        application, part = (
            self.document.application,
            MovedPart(program.name, self._input_counts(program), ()),
        )
        can_move = StreamsConfig.from_application(application).static_partitioner in DEFAULT_PARTITIONERS
        if not can_move or min(part.inputs.values(), default=0) < after:
            return
        initial = self._initial_number(before, [part])
        move = Move(application.id, before, after, (part,), known_initial=initial)
        for number in range(before, after):
            partitions = {each for _, each in part.partitions_of(number, move.new)}
            yield AddedProcessor(number, move.old.owner(number), tuple(sorted(partitions)))

    def _committed_number(self, mark: MoveMark | None) -> int | None:
        """Return the committed number of processors; None = the partition count of the changelog topics."""
        if mark is not None and mark.phase is not MovePhase.CLEAR:
            return mark.before
        committed = self.cluster.committed(self._input_partitions(), stable=False)
        widest = max(self._changelog_counts().values(), default=0)
        return decode_number((each.text for each in committed.values()), widest)

    def _initial_number(self, before: int, parts: Iterable[MovedPart]) -> int:
        """Return the committed initial number of processors, else the partition count of the inputs."""
        partitions = [each for part in parts for each in part.partitions]
        committed = self.cluster.committed(partitions, stable=False)
        found = decode_initial((each.text for each in committed.values()), before)
        if found is not None:
            return found
        present = attrs.evolve(self.document.application, processors=before)
        return processors_of(present, [count for part in parts for count in part.inputs.values()]).initial

    def _check_counts(self, move: Move) -> None:
        """Check that keys are with their processors at the partition counts of the inputs."""
        application = self.document.application
        initial, linear = move.old.initial, StreamsConfig.from_application(application).linear_initial
        if linear is not None:
            if round_start(linear, move.before) != initial:
                raise ProblemsError([problems.other_initial(move, initial, linear, application.at)])
            return
        counts = {topic: count for part in move.parts for topic, count in part.inputs.items()}
        if wrong := [topic for topic, count in counts.items() if not is_doubled(count, initial)]:
            found = [f"{topic}: {counts[topic]}" for topic in wrong]
            raise ProblemsError([problems.moved_keys(move, initial, found, application.at)])

    def _check_stores(self) -> None:
        """Check that the entries of all stores can move; all that cannot are reported together."""
        found = [
            problems.store_not_movable(self.document.application.id, store.name, reason, store.at)
            for program in self.programs
            for store, reason in moved_stores(program)[1]
        ]
        if found:
            raise ProblemsError(found)

    def _moved_part(self, program: SubtopologyProgram) -> MovedPart:
        application, inputs = self.document.application, self._input_counts(program)
        if narrow := [f"{topic}: {count}" for topic, count in inputs.items() if count < self.declared]:
            raise ProblemsError(
                [problems.inputs_too_narrow(application.id, self.declared, narrow, application.at)]
            )
        stores, _ = moved_stores(program)
        subscriptions = {
            node.name
            for node in program.nodes
            if isinstance(node, SourceNode) and node.reads and node.reads.foreign_key == "subscription"
        }
        topics = frozenset(topic for topic, node in program.sources.items() if node in subscriptions)
        return MovedPart(program.name, inputs, stores, topics)

    def _input_counts(self, program: SubtopologyProgram) -> Mapping[str, int]:
        """Return source topic → its present partition count, also of topics that match a pattern."""
        part = next(part for part in self.compiled.subtopologies if str(part.id) == program.name)
        return {topic: self.counts.get(topic, 0) for topic in part.sources}

    def _input_partitions(self) -> Sequence[TopicPartition]:
        return [
            (topic, each)
            for program in self.programs
            for topic, count in self._input_counts(program).items()
            for each in range(count)
        ]

    def _changelog_counts(self) -> Mapping[str, int]:
        topics = [topic for program in self.programs for topic in program.changelogs.values()]
        return {topic: self.counts.get(topic, 0) for topic in topics}

    def _committed_mark(self) -> MoveMark | None:
        announced = announcement_partitions(
            topic for topic, count in self._changelog_counts().items() if count
        )
        for each in (self._input_partitions(), announced):
            committed = self.cluster.committed(each, stable=False)
            marks = (decode_mark(found.text) for found in committed.values())
            if mark := next((mark for mark in marks if mark is not None), None):
                return mark
        return None
