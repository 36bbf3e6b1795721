"""Prepare and execute the move of one application's state, from its document; and report where it is."""

from collections.abc import Iterator, Sequence
from contextlib import closing, contextmanager
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
from headwater_spark.driver.processor_move.checks import check_entries, check_input
from headwater_spark.driver.processor_move.entry_copy import Report
from headwater_spark.driver.processor_move.kafka_cluster import KafkaMoveCluster
from headwater_spark.driver.processor_move.moves import Move
from headwater_spark.driver.processor_move.state_move import StateMove
from headwater_spark.worker.interpreter import cheap_collections


@attrs.frozen
class MoveResult:
    """`before` = `after`: there was nothing to do. `copied` is the number of entries that were copied."""

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
        with cheap_collections(), opened(document, connection) as (state, cluster, is_active):
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
            return MoveResult(application, move.before, move.after, execution.copied)
    except KafkaException as error:
        raise ProblemsError([problems.kafka_failed(application, str(error.args[0]))]) from error


def _check_policies(state: ApplicationState, move: Move, policies: Sequence[Policy]) -> None:
    after = {topic: move.after for topic in move.changelogs if state.counts[topic] < move.after}
    if refused := errors(expansion_violations(state.compiled, state.counts, after, policies)):
        raise ProblemsError(refused)


def processor_status(document: TopologyDocument, connection: Connection) -> ProcessorStatus:
    """Return the processors of a document's application; raises `ProblemsError`."""
    try:
        with opened(document, connection) as (state, _, _):
            return state.status()
    except KafkaException as error:
        raise ProblemsError([problems.kafka_failed(document.application.id, str(error.args[0]))]) from error


@contextmanager
def opened(
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
