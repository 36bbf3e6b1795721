"""Prepare and execute the move of one application's state, step by step (`moves`), and report where it is."""

from collections.abc import Iterator, Mapping, Sequence
from contextlib import closing, contextmanager, nullcontext
from functools import partial
from pathlib import Path

import attrs
from confluent_kafka import KafkaException

from headwater.kafka import Connection, KafkaClusterReader
from headwater.model.offset_metadata import decode_mark
from headwater.model.policies import Policy
from headwater.model.problems import ProblemCode, ProblemsError, errors
from headwater.model.topology import TopologyDocument
from headwater.operations.observation import observe_application
from headwater.operations.planning import plan_application
from headwater.planner.policies import expansion_violations
from headwater_spark.driver.layout import Programs
from headwater_spark.driver.preflight import check_runnable
from headwater_spark.driver.processor_move import problems
from headwater_spark.driver.processor_move.application_state import ApplicationState, ProcessorStatus
from headwater_spark.driver.processor_move.attempts import check_attempt
from headwater_spark.driver.processor_move.checks import check_entries, check_input
from headwater_spark.driver.processor_move.entry_copy import EntryCopy, MoveCluster, MoveProducer, Report
from headwater_spark.driver.processor_move.kafka_cluster import KafkaMoveCluster
from headwater_spark.driver.processor_move.moves import Committed, Move, MovedPart, MoveStep
from headwater_spark.driver.processor_move.problems import client_runs
from headwater_spark.engine.records import TopicPartition
from headwater_spark.worker.interpreter import cheap_collections


@attrs.define(eq=False)
class StateMove:
    """One execution of a move; `observed` is what was committed when the input was checked.

    `continued` has copied entries while the application ran; None = nothing is copied. A second execution
    fences this one: then `run` raises `KafkaException`.
    """

    _move: Move
    _cluster: MoveCluster
    _observed: Mapping[TopicPartition, Committed]
    _report: Report
    _continued: EntryCopy | None = None
    copy: EntryCopy = attrs.field(init=False)

    def __attrs_post_init__(self) -> None:
        self.copy = self._continued or EntryCopy(self._move, self._cluster, self._report)

    def run(self, opened: MoveProducer | None = None) -> None:
        """Execute all steps that are not done, with the `opened` producer of the move, if there is one.

        Raises:
            ProblemsError: A client runs, or the offset of a partition is missing.
            OtherAttemptError: Another client has deleted what `continued` has copied.
            KafkaException: Kafka fails, or the move is executed somewhere else.
        """
        partitions = (*self._move.partitions, *self._move.announcements)
        name = self._move.producer_name
        with self._cluster.producer(name) if opened is None else nullcontext(opened) as producer:
            if self._continued is not None:
                check_attempt(self._move, self._cluster)
            while True:
                counts = self._cluster.counts(self._move.changelogs)
                unstable = self._cluster.committed(partitions, stable=False)
                if self._move.next_step(unstable, counts) is MoveStep.MARK:
                    self._commit_mark()
                committed = self._cluster.committed(partitions)
                match self._move.next_step(committed, counts):
                    case MoveStep.EXPAND:
                        self._cluster.expand(dict.fromkeys(self._move.changelogs, self._move.after))
                    case MoveStep.COPY:
                        if not self._move.is_live and (
                            undeleted := self._move.undeleted_partitions(committed)
                        ):
                            self.copy.delete_misplaced(producer, undeleted)
                        self.copy.advance(producer, is_last=True)
                        self.copy.rewrite_outdated(producer)
                        self._commit(producer, committed, self._move.assigned_metadata(committed))
                    case MoveStep.CLEAR:
                        self.copy.clear(producer)
                        self._commit(producer, committed, self._move.completed(committed))
                    case MoveStep.DONE:
                        return
                    case MoveStep.MARK:
                        pass  # a partition was added to the input meanwhile

    def _commit_mark(self) -> None:
        tasks = [(part, each) for part in self._move.parts for each in range(self._move.before)]
        # Most of a mark is waiting for brokers, and an application that runs processes nothing meanwhile.
        self._cluster.at_once([partial(self._mark_task, *task) for task in tasks])

    def _mark_task(self, part: MovedPart, processor: int) -> None:
        """Mark the partitions of a task, as the task itself: so what a client commits is not overwritten."""
        with self._cluster.producer(self._move.task_name(part, processor)) as producer:
            found = self._cluster.committed(part.partitions_of(processor, self._move.old))
            if found and all(decode_mark(each.text) is not None for each in found.values()):
                return
            commits: dict[TopicPartition, tuple[int, str]] = {}
            for (topic, partition), each in found.items():
                is_marked = decode_mark(each.text) is not None
                if not is_marked and self._observed.get((topic, partition), each) != each:
                    raise ProblemsError([client_runs(self._move.application)])
                # Without a committed offset it had no record when the input was checked (`check_input`).
                offset = self._first_offset(topic, partition) if each.offset is None else each.offset
                commits[topic, partition] = offset, self._move.marked_metadata(partition, each.text)
            producer.commit(commits)

    def _first_offset(self, topic: str, partition: int) -> int:
        return self._cluster.bounds([(topic, partition)])[topic, partition][0]

    def _commit(
        self,
        producer: MoveProducer,
        committed: Mapping[TopicPartition, Committed],
        texts: Mapping[TopicPartition, str],
    ) -> None:
        producer.commit({each: (committed[each].offset or 0, text) for each, text in texts.items()})


@attrs.frozen
class MoveResult:
    """What a move did: the numbers of processors, the same if there was nothing to do, and copied entries."""

    application: str
    before: int
    after: int
    copied: int = 0


def move_state(
    document: TopologyDocument,
    connection: Connection,
    report: Report,
    policies: Sequence[Policy] = (),
) -> MoveResult:
    """Move the state of a document's application to its declared number of processors.

    Policies do not stop a move that was interrupted: until it is complete, the application does not start.

    Raises:
        ProblemsError: The move is refused, also by one of the `policies`, or Kafka failed. It can be run
            again.
    """
    application = document.application.id
    try:
        with cheap_collections(), open_application(document, connection) as (state, cluster, is_active):
            if is_active:
                raise ProblemsError([problems.client_runs(application)])
            if (move := state.move()) is None:
                return MoveResult(application, state.declared, state.declared)
            observed = cluster.committed_after_stop(move.partitions)
            if not any(decode_mark(each.text) for each in observed.values()):
                _check_policies(state, move, policies)
                check_input(move, cluster, observed, report)
                check_entries(move, cluster, observed, report)
                cluster.check_expansion(dict.fromkeys(move.changelogs, move.after))
            execution = StateMove(move, cluster, observed, report)
            execution.run()
            return MoveResult(application, move.before, move.after, execution.copy.copied)
    except KafkaException as error:
        raise ProblemsError([problems.kafka_failed(application, str(error.args[0]))]) from error


def _check_policies(state: ApplicationState, move: Move, policies: Sequence[Policy]) -> None:
    after = {topic: move.after for topic in move.changelogs if state.counts[topic] < move.after}
    if refused := errors(expansion_violations(state.compiled, state.counts, after, policies)):
        raise ProblemsError(refused)


def processor_status(document: TopologyDocument, connection: Connection) -> ProcessorStatus:
    """Return the processors of a document's application; raises `ProblemsError`."""
    try:
        with open_application(document, connection) as (state, _, _):
            return state.status()
    except KafkaException as error:
        raise ProblemsError([problems.kafka_failed(document.application.id, str(error.args[0]))]) from error


@contextmanager
def open_application(
    document: TopologyDocument, connection: Connection, programs: Programs | None = None
) -> Iterator[tuple[ApplicationState, KafkaMoveCluster, bool]]:
    """Yield the application, its cluster, and whether its consumer group has members.

    `programs` are given for an application that runs: its group is not read, and has no members then.

    Raises:
        ProblemsError: The document cannot run, the cluster cannot be read, or the planner finds errors other
            than the number of processors.
    """
    at = document.application.at
    programs_of = programs or check_runnable(document, Path(at.file).parent).programs
    reader = KafkaClusterReader(connection)
    observed = observe_application(reader, document, with_group=programs is None)
    found = errors(plan_application(observed).problems)
    if wrong := [each for each in found if each.code is not ProblemCode.PROCESSOR_COUNT]:
        raise ProblemsError(wrong)
    compiled, snapshot = observed.compiled[0], observed.snapshot
    with_state = tuple(program for program in programs_of(compiled) if program.has_state)
    if not with_state:
        raise ProblemsError([problems.without_state(document.application.id, at)])
    group = snapshot.groups.get(document.application.id)
    with closing(KafkaMoveCluster(connection, document.application.id)) as cluster:
        state = ApplicationState(document, compiled, with_state, snapshot.partitions, cluster)
        yield state, cluster, group is not None and group.is_active
