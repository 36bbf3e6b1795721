"""Prepare and execute the reshard of one application, from its document and what is on the cluster."""

from collections.abc import Callable, Iterator, Mapping, Sequence
from collections.abc import Set as AbstractSet
from contextlib import AbstractContextManager, closing, contextmanager
from functools import partial

import attrs
from attrs.validators import and_, ge, le, optional
from confluent_kafka import KafkaException

from headwater.compiler import build_nodes
from headwater.kafka import ClusterReader, Connection, KafkaClusterReader, SnapshotRequest
from headwater.model.acls import Operation
from headwater.model.cluster import ClusterSnapshot
from headwater.model.compiled import CompiledApplication
from headwater.model.policies import Policy
from headwater.model.problems import Problem, ProblemsError
from headwater.model.topology import TopologyDocument
from headwater.operations.observation import Observation, observe_application
from headwater.operations.planning import compile_with_counts, external_counts
from headwater.planner.acls import Purpose
from headwater_spark.driver.processor_move.entry_copy import Report
from headwater_spark.driver.processor_move.kafka_cluster import KafkaMoveCluster
from headwater_spark.driver.reshard import input_problems, problems
from headwater_spark.driver.reshard.checks import (
    SESSION_SECONDS,
    autoscaling_problems,
    check_reshard,
    check_stopped,
    deleted_topics,
    deleting_retention,
    errors_of_existing_topics,
    expansion_problems,
    find_journal,
    forgotten_offsets,
    has_members,
    timestamp_problems,
    unchecked_partitioners,
    withdraw_if_unchanged,
)
from headwater_spark.driver.reshard.entry_checks import find_store_layout
from headwater_spark.driver.reshard.entry_move import ReshardCluster
from headwater_spark.driver.reshard.entry_passes import OwnProcess, PassExecutor
from headwater_spark.driver.reshard.entry_workers import EntryWorkers, useful_processes
from headwater_spark.driver.reshard.execution import ReshardExecution
from headwater_spark.driver.reshard.journal import Journal
from headwater_spark.driver.reshard.plan import WRITERS, Request, Reshard, plan_reshard
from headwater_spark.driver.reshard.request_failures import (
    TopicOperations,
    denied_on_group,
    denied_on_topics,
    kafka_problem,
    read_topic_operations,
)
from headwater_spark.engine.partitioners.hashing import PartitionerError, UserPartitioner
from headwater_spark.engine.program import build_programs
from headwater_spark.engine.scaling.entry_layouts import LAYOUTS, EntryLayout
from headwater_spark.worker.interpreter import cheap_collections

OpenExecutor = Callable[[Reshard, Connection, Report], AbstractContextManager[PassExecutor]]


@attrs.frozen(kw_only=True)
class ReshardOptions:
    """What a user requests: source topic → partition count, and how to decide what the document does not say.

    `rewritten` are source topics whose unprocessed records are written again. `layouts` is store → layout of
    its keys. `partitioners` is input topic → its partitioner, if it is not Kafka's default one. A partitioner
    of an `unchecked` topic is used although entries of one partition cannot show that it is right. `policies`
    limit the partition counts. `checks_only`: nothing is changed. `wait_seconds` is how long to wait for
    members of the group. `processes` is how many processes move the entries, 1 to 4; None =
    `useful_processes`. `open_executor` opens what moves the entries instead of processes.
    """

    partitions: Mapping[str, int] = attrs.field(factory=dict)
    rewritten: frozenset[str] = frozenset()
    layouts: Mapping[str, EntryLayout] = attrs.field(factory=dict)
    partitioners: Mapping[str, UserPartitioner] = attrs.field(factory=dict)
    unchecked: frozenset[str] = frozenset()
    policies: Sequence[Policy] = ()
    checks_only: bool = False
    wait_seconds: float = SESSION_SECONDS
    processes: int | None = attrs.field(default=None, validator=optional(and_(ge(1), le(WRITERS))))
    open_executor: OpenExecutor | None = None


@attrs.frozen
class ReshardResult:
    """`counts` is topic → (before, after), empty if nothing had to move; `written` is a number of records.

    `is_running`: a check found members of the group, so it has not checked what the application changes.
    `join_buffers` are changelog topics that Kafka Streams does not restore.
    """

    application: str
    counts: Mapping[str, tuple[int, int]]
    written: int = 0
    is_running: bool = False
    join_buffers: Sequence[str] = ()


def reshard_application(
    document: TopologyDocument, connection: Connection, options: ReshardOptions, report: Report
) -> ReshardResult:
    """Give an application that is stopped more partitions, and each key its state.

    Raises:
        ProblemsError: The reshard is refused, and nothing was changed; or it was interrupted, and can be run
            again.
    """
    application = document.application.id
    run = _ReshardRun(document, connection, options, report)
    try:
        with (
            cheap_collections(),
            closing(KafkaMoveCluster(connection, application, run.failed_request)) as cluster,
        ):
            return run.move_state(cluster)
    except PartitionerError as error:
        failed = input_problems.partitioner_failed(
            application, error.name, error.reason, has_begun=run.has_begun
        )
        raise ProblemsError([failed]) from error
    except KafkaException as error:
        raise ProblemsError([kafka_problem(application, error, has_begun=run.has_begun)]) from error
    except KeyboardInterrupt as error:
        if not run.has_begun:
            raise
        raise ProblemsError([problems.reshard_interrupted(application)]) from error


@attrs.define
class _ReshardRun:
    """One call of `reshard_application`. It knows whether the reshard has begun: problems depend on it."""

    document: TopologyDocument
    connection: Connection
    options: ReshardOptions
    report: Report
    journal: Journal | None = None
    """What an earlier run has begun."""
    execution: ReshardExecution | None = None

    @property
    def application(self) -> str:
        return self.document.application.id

    @property
    def has_begun(self) -> bool:
        return self.journal is not None or (self.execution is not None and self.execution.has_begun)

    def failed_request(self, name: str, reason: str) -> Problem:
        return (problems.kafka_failed if self.has_begun else problems.expansion_failed)(name, reason)

    def move_state(self, cluster: KafkaMoveCluster) -> ReshardResult:
        """Plan, check and execute the reshard; with `checks_only`, stop before the first change."""
        options = self.options
        if denied := denied_on_group(self.connection, self.application):
            raise ProblemsError(denied)
        is_running = options.checks_only and has_members(self.connection, self.application)
        if not is_running:
            check_stopped(self.connection, self.application, options.wait_seconds, self.report)
        reader = KafkaClusterReader(self.connection)
        observed = observe_application(reader, self.document, purpose=Purpose.RESHARD)
        [self.document], snapshot = observed.documents, observed.snapshot
        allowed = self._check_readable(observed, snapshot)
        self._read_journal(cluster, observed)
        reshard = plan_from_cluster(self.document, snapshot.partitions, options, self.journal, cluster)
        if not reshard.transfers:
            if self.journal is None and (
                forgotten := forgotten_offsets(self.document, snapshot.partitions, cluster)
            ):
                raise ProblemsError(forgotten)
            return ReshardResult(self.application, {})
        self._check_permissions(reshard, allowed, snapshot)
        if self.journal is None:
            snapshot = _with_settings(reader, snapshot, reshard.rewritten_topics.keys())
            self._check_topics(reshard, cluster, snapshot, is_running=is_running)
        elif options.checks_only:
            raise ProblemsError([problems.not_complete(self.application, self.journal.counts)])
        with _open_executor(reshard, cluster, self.connection, options, self.report) as executor:
            if self.journal is None and (found := list(executor.check_entries(reshard))):
                raise ProblemsError(found)
            written = 0 if options.checks_only else self._execute(reshard, cluster, snapshot, executor)
        return ReshardResult(
            self.application,
            reshard.counts,
            written,
            is_running=is_running,
            join_buffers=reshard.join_buffers,
        )

    def _check_readable(self, observed: Observation, snapshot: ClusterSnapshot) -> TopicOperations:
        """Return what the user may do with the topics; raise `ProblemsError` if it may not read one."""
        [compiled] = observed.compiled
        names = {topic.name for topic in compiled.internal_topics} | set(compiled.external_sources)
        known = read_topic_operations(self.connection, names & snapshot.partitions.keys())
        read = known.keys() - set(compiled.global_topics)  # global tables have no offsets and do not move
        if denied := denied_on_topics(self.application, known, {Operation.READ: read}):
            raise ProblemsError(denied)
        return known

    def _check_permissions(
        self, reshard: Reshard, allowed: TopicOperations, snapshot: ClusterSnapshot
    ) -> None:
        """Raise `ProblemsError` if the user may not write to topics, or not expand them."""
        written = {each.source for each in reshard.transfers} | reshard.rewritten_topics.keys()
        expanded = {
            topic for topic, count in reshard.expansions.items() if count > snapshot.partitions[topic]
        }
        needs = {Operation.WRITE: written, Operation.ALTER: expanded}
        if denied := denied_on_topics(self.application, allowed, needs, has_begun=self.journal is not None):
            raise ProblemsError(denied)

    def _read_journal(self, cluster: KafkaMoveCluster, observed: Observation) -> None:
        partitions, [compiled] = observed.snapshot.partitions, observed.compiled
        self.journal = find_journal(self.document, partitions, cluster)
        if self.journal is not None:
            if deleted := deleted_topics(compiled, self.journal, partitions):
                raise ProblemsError(deleted)
            self.journal = withdraw_if_unchanged(
                self.application,
                self.journal,
                partitions,
                cluster,
                is_removed=not self.options.checks_only,
            )

    def _check_topics(
        self, reshard: Reshard, cluster: KafkaMoveCluster, snapshot: ClusterSnapshot, *, is_running: bool
    ) -> None:
        """Raise `ProblemsError` if topics or committed offsets prevent the reshard; nothing has begun."""
        written = sorted({each.source for each in reshard.transfers} | reshard.rewritten_topics.keys())
        found = [
            *autoscaling_problems(reshard, self.document),
            *timestamp_problems(self.application, snapshot, written),
            *expansion_problems(reshard, self.document, snapshot.partitions, self.options.policies),
            *unchecked_partitioners(reshard, cluster, self.options.unchecked),
            *(() if is_running else check_reshard(reshard, cluster)),
        ]
        if found:
            raise ProblemsError(found)
        cluster.check_expansion(reshard.expansions)

    def _execute(
        self, reshard: Reshard, cluster: KafkaMoveCluster, snapshot: ClusterSnapshot, executor: PassExecutor
    ) -> int:
        """Execute the reshard, or the rest of it; return how many records were written."""
        stopped = partial(check_stopped, self.connection, self.application)
        self.execution = ReshardExecution(
            reshard,
            cluster,
            {each.source: deleting_retention(snapshot, each.source) for each in reshard.transfers},
            self.journal,
            self.report,
            check_stopped=partial(stopped, self.options.wait_seconds, self.report, has_begun=True),
            executor=executor,
        )
        stopped(0, self.report)
        self.execution.run()
        return self.execution.written


@contextmanager
def _open_executor(
    reshard: Reshard,
    cluster: ReshardCluster,
    connection: Connection,
    options: ReshardOptions,
    report: Report,
) -> Iterator[PassExecutor]:
    """Open what moves the entries: jobs of Spark, several processes, or this process.

    This process also moves them if the system cannot start others.
    """
    if options.open_executor is not None:
        with options.open_executor(reshard, connection, report) as opened:
            yield opened
        return
    number = options.processes
    if number is not None and any(each.partitioner is not None for each in reshard.transfers):
        number = 1  # its function may not be importable in other processes
    if number is None:
        bounds = cluster.bounds(reshard.changelog_partitions)
        number = useful_processes(reshard, sum(end - first for first, end in bounds.values()))
    if number == 1:
        yield OwnProcess(cluster, report)
        return
    try:
        workers = EntryWorkers(connection, reshard.application, number, report)
    except OSError as error:
        report(f"{error}: one process moves the entries", 0, 0)
        yield OwnProcess(cluster, report)
        return
    with closing(workers):
        yield workers


def plan_from_cluster(
    document: TopologyDocument,
    partitions: Mapping[str, int],
    options: ReshardOptions,
    journal: Journal | None,
    cluster: ReshardCluster,
) -> Reshard:
    """Return the reshard, or the rest of a reshard that has begun; raises `ProblemsError`.

    `partitions` is topic → partition count on the cluster. Layouts that the document does not show are found
    in the entries.
    """
    counts = external_counts(document, partitions)
    compiled = compile_with_counts(document, partitions, options.partitions)
    _check_sources(compiled, counts, options)
    if journal is not None:
        compiled = _resume_reshard(document, counts, options, journal)
    if wrong := errors_of_existing_topics(compiled.problems):
        raise ProblemsError(wrong)
    before = {} if journal is None else {topic: old for topic, (old, _) in journal.counts.items()}
    request = Request(
        document=document,
        compiled=compiled,
        programs=build_programs(document, build_nodes(document), compiled),
        before={**partitions, **before},
        present=partitions,
        rewritten=options.rewritten,
        layouts=options.layouts,
        partitioners=options.partitioners,
        known_layouts={}
        if journal is None
        else {topic: LAYOUTS[layout] for topic, layout in journal.layouts.items()},
    )
    reshard, wrong = plan_reshard(request, partial(find_store_layout, cluster))
    if wrong:
        raise ProblemsError(wrong)
    if journal is not None:
        _check_partitioners(reshard, journal)
    return reshard


def _check_sources(compiled: CompiledApplication, counts: Mapping[str, int], options: ReshardOptions) -> None:
    """Raise `ProblemsError` if `options` name topics that are not sources, or fewer partitions than now."""
    application = compiled.application.id
    sources = set(compiled.external_sources) & counts.keys()
    if unknown := sorted({*options.partitions, *options.rewritten} - sources):
        raise ProblemsError(
            [problems.unknown_source(application, topic, sorted(sources)) for topic in unknown]
        )
    if fewer := [topic for topic, count in options.partitions.items() if count < counts.get(topic, count)]:
        raise ProblemsError(
            [
                problems.fewer_partitions(application, topic, counts[topic], options.partitions[topic])
                for topic in fewer
            ]
        )


def _check_partitioners(reshard: Reshard, journal: Journal) -> None:
    """Raise `ProblemsError` if the reshard has begun with other partitioners."""
    named = {each.topic: each.partitioner.checksum for each in reshard.inputs if each.partitioner is not None}
    if named != journal.partitioners:
        topics = sorted({*named, *journal.partitioners})
        raise ProblemsError([input_problems.other_partitioners(reshard.application, topics)])


def _with_settings(
    reader: ClusterReader, snapshot: ClusterSnapshot, topics: AbstractSet[str]
) -> ClusterSnapshot:
    """Return the snapshot with the settings of source topics that are written, too.

    An observation reads no settings of topics that the application only reads.
    """
    if not topics:
        return snapshot
    request = SnapshotRequest(names=frozenset(topics), with_ids=False, purpose=Purpose.RESHARD)
    read = reader.read(request)
    return attrs.evolve(snapshot, topics={**snapshot.topics, **{name: read.topics[name] for name in topics}})


def _resume_reshard(
    document: TopologyDocument, counts: Mapping[str, int], options: ReshardOptions, journal: Journal
) -> CompiledApplication:
    """Return the application with the counts of a reshard that has begun; raises `ProblemsError`."""
    known = {topic: after for topic, (_, after) in journal.counts.items()}
    application = document.application.id
    if any(known.get(topic, counts.get(topic)) != count for topic, count in options.partitions.items()):
        raise ProblemsError([problems.other_target(application, journal.counts)])
    sources = {topic: max(count, known.get(topic, 0)) for topic, count in counts.items()}
    compiled = compile_with_counts(document, counts, sources)
    targets = {topic.name: topic.partitions for topic in compiled.internal_topics}
    if any(targets.get(topic, after) != after for topic, after in known.items()):
        raise ProblemsError([problems.other_target(application, journal.counts)])
    return compiled
