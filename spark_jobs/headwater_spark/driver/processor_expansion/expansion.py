"""Add processors while the application runs.

An expansion copies the entries of the keys that move to new partitions of the changelog topics, and lets the
added processors restore their local state from them (`warm_up`), again and again, until few are left. Then it
holds the queries with state between two batches, and executes the steps of an offline move
(`processor_move`), most of which are done already. A mark in the offset metadata of the changelog topics
announces the expansion from its beginning to its end, so the next start continues or completes it.
"""

import secrets
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from functools import partial
from threading import Event, Lock
from typing import TypeVar

import attrs
import structlog
from confluent_kafka import KafkaException

from headwater.kafka import Connection
from headwater.model.offset_metadata import decode_mark
from headwater.model.problems import Problem, ProblemsError
from headwater_spark.driver.captured_failures import failure_reason
from headwater_spark.driver.layout import Programs
from headwater_spark.driver.processor_expansion import expansion_status, problems
from headwater_spark.driver.processor_expansion.held_queries import (
    BatchRunsError,
    HeldQuery,
    OlderBatches,
    StoppedError,
    UnprocessedRecords,
    all_held,
)
from headwater_spark.driver.processor_expansion.warm_up import WarmUp, WarmUpJobs, is_behind
from headwater_spark.driver.processor_move import attempts
from headwater_spark.driver.processor_move.checks import InputCheck, check_entries, check_input
from headwater_spark.driver.processor_move.entry_copy import EntryCopy, report_no_progress
from headwater_spark.driver.processor_move.kafka_cluster import KafkaMoveCluster
from headwater_spark.driver.processor_move.moves import Move
from headwater_spark.driver.processor_move.problems import kafka_failed
from headwater_spark.driver.processor_move.state_move import StateMove, open_application
from headwater_spark.driver.queries.specs import QuerySpecs
from headwater_spark.driver.states import ClientState
from headwater_spark.driver.topics.application_topics import ApplicationTopics
from headwater_spark.driver.topics.present_processors import with_processors
from headwater_spark.engine.program import SubtopologyProgram
from headwater_spark.engine.program.settings import acceptable_recovery_lag
from headwater_spark.engine.records import Commits, TopicPartition
from headwater_spark.engine.scaling.moved_stores import can_delete_later
from headwater_spark.stream_threads import ExpansionPhase, ProcessorsStatus
from headwater_spark.worker.interpreter import cheap_collections, short_switch_interval
from headwater_spark.worker.warm_up import WarmUpRequest

_Result = TypeVar("_Result")
_log = structlog.get_logger(__name__)
_POLL_SECONDS = 0.2
_BATCH_SECONDS = 60.0
"""How long the cut waits for a batch or step that is being processed; it is tried again later."""
_CUT_SECONDS = 300.0
"""How long the queries are held at most, if Kafka fails meanwhile."""


class _InputGrownError(Exception):
    """Partitions were added to the input, or topics that match a pattern: the move does not have them."""


def _no_records() -> int:
    return 0


@attrs.define(kw_only=True, eq=False)
class ProcessorExpansion:
    """The expansions of one application. `run` executes them in its own thread; other threads may `request`.

    `queries` is name → query. `layout_changes` is held while the layout changes. `on_errors` gets the
    problems that stop the application.
    """

    _topics: ApplicationTopics
    _connection: Connection
    _programs: Programs
    _specs: QuerySpecs
    _queries: Mapping[str, HeldQuery]
    _layout_changes: Lock
    _on_errors: Callable[[Sequence[Problem]], None]
    _warm_up_jobs: WarmUpJobs
    _awaiting: Callable[[], int] = attrs.field(default=_no_records, init=False)
    """Returns how many copied records the added processors have still to restore."""
    _known_before: frozenset[TopicPartition] = attrs.field(default=frozenset(), init=False)
    """The input partitions that the application knew before the move was read from the cluster."""
    _status: expansion_status.ExpansionStatus = attrs.field(init=False)
    _stopping: Event = attrs.field(factory=Event, init=False)

    def __attrs_post_init__(self) -> None:
        self._status = expansion_status.ExpansionStatus(topics=self._topics)

    @property
    def status(self) -> ProcessorsStatus:
        return self._status.current

    def request(self, processors: int, state: ClientState) -> None:
        """Request an expansion to this number; nothing happens if it runs already, or has been done.

        Raises:
            ProblemsError: The application is not in a state that allows it, or cannot have this number.
        """
        self._status.request(processors, state)

    def complete_interrupted(self) -> bool:
        """Complete an expansion that was killed after its cut began; return whether there was one.

        Call it before the queries start. One that was killed before its cut is continued by `run`.

        Raises:
            ProblemsError: Kafka fails.
        """
        target = self._topics.target_processors
        if target is None:
            return False
        application = self._topics.document.application.id
        try:
            with self._open_move(target) as (move, cluster, _):
                observed = cluster.committed(move.partitions, stable=False)
                if not any(decode_mark(each.text) for each in observed.values()):
                    return False
                _log.warning("completing an expansion of processors", target=target)
                StateMove(move, cluster, observed, report_no_progress).run()
                self._topics.use_processors(target)
                return True
        except KafkaException as error:
            raise ProblemsError([kafka_failed(application, str(error.args[0]))]) from error

    def started(self) -> None:
        """Note the number of processors with which the queries start.

        Then `run` continues what was interrupted, or adds the processors that the document declares.
        """
        if (target := self._topics.target_processors) is None:
            self._status.end()
        else:
            self._status.continue_interrupted(target)

    def run(self, stopping: Event) -> None:
        """Execute expansions until `stopping` is set."""
        self._stopping = stopping
        lost = 0
        while not stopping.wait(_POLL_SECONDS):
            if (target := self.status.target) is None:
                continue
            try:
                self._expand(target)
                lost = 0
            except StoppedError:
                return
            except _InputGrownError:
                _log.warning("expansion of processors begins again: partitions were added", target=target)
            except attempts.ExpandedElsewhereError as error:
                self._on_errors(error.problems)
                return
            except ProblemsError as error:
                stopping.wait(self._status.note_failure(error.problems))
            except (attempts.OtherAttemptError, KafkaException) as error:
                failure = attempts.describe_failure(self._topics.document.application.id, error)
                stopping.wait(self._status.note_failure([failure]))
                if attempts.has_other_attempt(error):
                    stopping.wait(attempts.pause_seconds(expansion_status.RETRY_SECONDS, lost := lost + 1))

    def _expand(self, target: int) -> None:
        _log.info("expansion of processors", target=target, phase=self.status.phase.value)
        layout = self._specs.layout
        self._known_before = frozenset(
            each for name in self._queries for each in layout.input_partitions(name)
        )
        with (
            short_switch_interval(),
            cheap_collections(),
            self._open_move(target) as (move, cluster, programs),
        ):
            if self._topics.target_processors is None:
                self._check(move, cluster)
            self._await_older_batches(move)
            self._announce_expansion(move, cluster)
            self._status.begin(ExpansionPhase.CATCH_UP)
            cluster.expand(dict.fromkeys(move.changelogs, move.after))
            copy = EntryCopy(move, cluster, self._note_copied)
            check, warm_up = InputCheck(move, cluster), self._warm_up(move, programs)
            self._awaiting = lambda: max(0, copy.copied - warm_up.restored)
            while True:
                self._catch_up(move, cluster, copy, warm_up)
                try:
                    if self._assign_processors(move, cluster, copy, check):
                        return
                except BatchRunsError as error:
                    delay = problems.batch_takes_long(move, error.query, _BATCH_SECONDS)
                    self._status.begin(ExpansionPhase.CATCH_UP, [delay])
                if self._stopping.wait(expansion_status.RETRY_SECONDS):
                    raise StoppedError

    def _check(self, move: Move, cluster: KafkaMoveCluster) -> None:
        """Check all that an offline move checks, and that the topics can be checked during the cut."""
        with self._layout_changes:
            self._topics.check()
            self._topics.check_expansion(dict.fromkeys(move.changelogs, move.after))
        observed = cluster.committed(move.partitions)
        check_input(move, cluster, observed, self._note_checked)
        check_entries(move, cluster, observed, self._note_checked)
        cluster.check_expansion(dict.fromkeys(move.changelogs, move.after))

    def _await_older_batches(self, move: Move) -> None:
        with_state = {part.subtopology for part in move.parts}
        OlderBatches(
            move=move,
            known_counts=lambda: self._specs.layout.partition_counts,
            queries={name: query for name, query in self._queries.items() if name not in with_state},
            stopping=self._stopping,
            delayed=self._status.note_delay,
        ).wait()

    def _announce_expansion(self, move: Move, cluster: KafkaMoveCluster) -> None:
        """Announce the expansion, again at each start: from here on, it is not canceled."""
        with self._layout_changes:
            attempts.announce_attempt(move, cluster)
            self._topics.target_processors = move.after

    def _warm_up(self, move: Move, programs: Sequence[SubtopologyProgram]) -> WarmUp:
        added = range(move.before, move.after)
        request = WarmUpRequest(
            application=move.application,
            connection=self._connection,
            state_folder=self._warm_up_jobs.state_folder,
            tasks=tuple((program, each) for program in programs for each in added),
            lineage=move.lineage or 0,
        )
        return WarmUp(request, self._warm_up_jobs, self._note_restored)

    def _catch_up(self, move: Move, cluster: KafkaMoveCluster, copy: EntryCopy, warm_up: WarmUp) -> None:
        """Copy and restore entries until few are left, or no fewer than in the round before."""
        limit = acceptable_recovery_lag(self._topics.document.application.config)
        before: int | None = None
        while True:
            self._copy(move, cluster, copy, limit)
            if before is None:
                warm_up.start_workers(len(move.parts) * move.after, self._stopping)
            restored = warm_up.advance(self._stopping)
            if not is_behind(restored, before, limit):
                break
            before = restored
        self._copy(move, cluster, copy, limit)

    def _copy(self, move: Move, cluster: KafkaMoveCluster, copy: EntryCopy, limit: int) -> None:
        """Copy entries until few are left, or no fewer than in the round before."""
        before: int | None = None
        waiting = UnprocessedRecords(move, cluster, self._status.note_delay)
        # Before the producer is opened, too: it would fence the other client for nothing.
        attempts.check_attempt(move, cluster)
        with cluster.producer(move.producer_name) as producer:
            attempts.check_attempt(move, cluster)
            while True:
                copy.advance(producer)
                remaining = copy.remaining()
                is_close = remaining <= limit or (before is not None and remaining >= before)
                if is_close and waiting.are_few():
                    return
                before = remaining
                if is_close and self._stopping.wait(_POLL_SECONDS):
                    raise StoppedError

    def _assign_processors(
        self, move: Move, cluster: KafkaMoveCluster, copy: EntryCopy, check: InputCheck
    ) -> bool:
        """Assign the input partitions to their new processors; return False if that has to wait.

        The queries with state process no batch meanwhile. If Kafka fails so long that they cannot continue,
        the application stops: its next start completes the expansion. Raises `BatchRunsError`, and
        `_InputGrownError` if the application knows partitions that would stay with their old processors.
        """
        started = time.monotonic()
        queries = {part.subtopology: self._queries[part.subtopology] for part in move.parts}
        with self._layout_changes, cluster.producer(move.producer_name) as producer:
            self._check_input_partitions(move)
            # Most unprocessed records are read before the queries are held.
            if found := check.problems(cluster.committed(move.partitions, stable=False)):
                self._status.begin(ExpansionPhase.CATCH_UP, found)
                return False
            cluster.prepare_producers(move.task_names)
            self._status.begin(ExpansionPhase.CUT)
            with all_held(queries, _BATCH_SECONDS, self._stopping) as held:
                observed = cluster.committed(move.partitions)
                if found := check.problems(observed):
                    self._status.begin(ExpansionPhase.CATCH_UP, found)
                    return False
                first = partial(StateMove(move, cluster, observed, report_no_progress, copy).run, producer)
                self._move(first, move, cluster)
                self._topics.use_processors(move.after)
                committed = self._use_layout(move, cluster)
                held.update({part.subtopology: part.select(committed) for part in move.parts})
        self._status.end(copied=self.status.copied)
        _log.info(
            "processors were added",
            processors=move.after,
            entries=copy.copied,
            paused_seconds=round(time.monotonic() - started, 1),
        )
        return True

    def _check_input_partitions(self, move: Move) -> None:
        """Raise `_InputGrownError` if tasks may have committed offsets that the move does not assign.

        They only read partitions of the layout, which does not change in the cut. A partition that is added
        later belongs to the present processors.
        """
        assigned = self._known_before.union(move.partitions)
        layout = self._specs.layout
        if any(not assigned.issuperset(layout.input_partitions(part.subtopology)) for part in move.parts):
            raise _InputGrownError

    def _move(self, first: Callable[[], None], move: Move, cluster: KafkaMoveCluster) -> None:
        """Execute the steps of the move, from what is committed if Kafka has failed."""
        executions = [first]

        def execute() -> None:
            # What a failed one has copied may not be committed: the next one copies again.
            if not executions:
                observed = cluster.committed(move.partitions, stable=False)
                executions.append(StateMove(move, cluster, observed, report_no_progress).run)
            executions.pop()()

        self._repeat_step(execute, move)

    def _use_layout(self, move: Move, cluster: KafkaMoveCluster) -> Commits:
        """Let the queries use the added processors; return what is committed for their input."""

        def use() -> Commits:
            committed = cluster.committed(move.partitions)
            check = self._topics.check()
            self._specs.update(check)
            self._topics.remember_topics(check)
            return {each: (found.offset or 0, found.text) for each, found in committed.items()}

        return self._repeat_step(use, move)

    def _repeat_step(self, step: Callable[[], _Result], move: Move) -> _Result:
        """Execute a step until Kafka does not fail; stop the application if that takes too long."""
        deadline = time.monotonic() + _CUT_SECONDS
        while True:
            try:
                return step()
            except (KafkaException, ProblemsError) as error:
                reason = failure_reason(error)
            _log.warning("expansion of processors is repeated", reason=reason)
            self._status.begin(ExpansionPhase.CUT, [kafka_failed(move.application, reason)])
            if time.monotonic() > deadline or self._stopping.wait(expansion_status.RETRY_SECONDS):
                self._on_errors([problems.expansion_incomplete(move, reason)])
                raise StoppedError

    @contextmanager
    def _open_move(
        self, target: int
    ) -> Iterator[tuple[Move, KafkaMoveCluster, tuple[SubtopologyProgram, ...]]]:
        """Yield the move to `target` processors, its cluster, and the programs; raises `ProblemsError`."""
        document = with_processors(self._topics.document, target)
        application = document.application
        with open_application(document, self._connection, self._programs) as (state, cluster, _):
            found = state.move()
            if found is None and self._topics.target_processors is not None:
                raise attempts.expanded_elsewhere(application.id)
            if found is None:
                raise ProblemsError([problems.already_expanded(application.id, target)])
            move = attrs.evolve(
                found,
                is_live=True,
                lineage=secrets.randbits(62) | 1,
                deletes_later=all(map(can_delete_later, state.programs)),
            )
            try:
                yield move, cluster, state.programs
            finally:
                self._awaiting = _no_records  # it has the copy, which has the keys that moved

    def _note_copied(self, _: str, done: int, total: int) -> None:
        if self._stopping.is_set():
            raise StoppedError
        awaiting = self._awaiting() if self.status.phase is ExpansionPhase.CATCH_UP else 0
        self._status.note_remaining(total - done + awaiting, done)

    def _note_restored(self) -> None:
        self._status.note_remaining(self._awaiting())

    def _note_checked(self, _: str, done: int, total: int) -> None:
        if self._stopping.is_set():
            raise StoppedError
        self._status.note_remaining(total - done)
