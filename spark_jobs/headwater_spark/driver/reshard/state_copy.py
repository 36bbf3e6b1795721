"""Copy the state of a stopped application to topics with other names, after stores were renamed.

Old topics and their offsets do not change. So a copy is undone by starting the old version again, as long as
the new one has not started. The journal is committed for the partitions of the new topics: an incomplete copy
is repeated from its beginning, and a complete one is never overwritten.
"""

import time
from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from contextlib import closing
from functools import partial

import attrs
from confluent_kafka import KafkaException

from headwater.change import admin_client
from headwater.change.topics import await_failures, request_new_topics
from headwater.compiler.cluster_profiles import profile_problems
from headwater.kafka import Connection, KafkaClusterReader
from headwater.model.acls import Operation
from headwater.model.cluster import ClusterSnapshot, LiveTopic
from headwater.model.compiled import CompiledApplication
from headwater.model.offset_metadata import decode_mark
from headwater.model.policies import Policy
from headwater.model.problems import Problem, ProblemsError, errors
from headwater.model.topology import DocumentForm, TopologyDocument
from headwater.operations.observation import observe_application
from headwater.planner.acls import Purpose
from headwater.planner.policies import creation_violations
from headwater_spark.driver.processor_move.entry_copy import MoveProducer, Report
from headwater_spark.driver.processor_move.kafka_cluster import KafkaMoveCluster
from headwater_spark.driver.reshard import copy_plan, input_problems, problems
from headwater_spark.driver.reshard.checks import (
    SESSION_SECONDS,
    check_stopped,
    deleting_retention,
    errors_of_existing_topics,
    timestamp_problems,
)
from headwater_spark.driver.reshard.copy_plan import Renames, TopicCopy, copy_refused, plan_copies
from headwater_spark.driver.reshard.entry_move import EntryMove, ReshardCluster
from headwater_spark.driver.reshard.entry_totals import check_totals
from headwater_spark.driver.reshard.execution import expires_before
from headwater_spark.driver.reshard.journal import Journal, Phase
from headwater_spark.driver.reshard.request_failures import (
    copy_request_failed,
    denied_on_group,
    denied_on_topics,
    read_topic_operations,
)
from headwater_spark.engine.records import OffsetRanges, OutputRecord, TopicPartition
from headwater_spark.worker.interpreter import cheap_collections

_MAX_RECORDS = 200_000
_VISIBLE_SECONDS = 60.0
_POLL_SECONDS = 0.1


@attrs.frozen
class CopyResult:
    """`records` is the number of records that were copied; `copies` is (old topic, new topic)."""

    application: str
    copies: Renames
    records: int


def read_copies(
    connection: Connection, document: TopologyDocument, renames: Renames
) -> tuple[ClusterSnapshot, CompiledApplication, tuple[TopicCopy, ...], tuple[Problem, ...]]:
    """Read the cluster; return it, the compiled document, and what `plan_copies` returns.

    Raises:
        ProblemsError: Kafka does not answer, or the document has errors.
    """
    observed = observe_application(KafkaClusterReader(connection), document, purpose=Purpose.RESHARD)
    [compiled], snapshot = observed.compiled, observed.snapshot
    if wrong := errors_of_existing_topics(compiled.problems):
        raise ProblemsError(wrong)
    return (snapshot, compiled, *plan_copies(renames, compiled, snapshot.partitions))


def copy_state(
    document: TopologyDocument,
    connection: Connection,
    renames: Renames,
    report: Report,
    *,
    policies: Sequence[Policy] = (),
) -> CopyResult:
    """Copy the topics of an application that is stopped; create topics that do not exist.

    Raises:
        ProblemsError: The copy is refused, and nothing was changed; or it was interrupted, and can be run
            again.
    """
    application = document.application.id
    try:
        with (
            cheap_collections(),
            closing(KafkaMoveCluster(connection, application, copy_plan.copy_failed)) as cluster,
        ):
            if denied := denied_on_group(connection, application):
                raise ProblemsError(denied)
            check_stopped(connection, application, SESSION_SECONDS, report)
            snapshot, compiled, copies, refused = read_copies(connection, document, renames)
            existing = [each for each in copies if each.target.name in snapshot.partitions]
            check_permissions(connection, application, copies, existing)
            new = [each for each in copies if each not in existing]
            topics = [each.target.name for each in existing]
            found = [
                *refused,
                *timestamp_problems(application, snapshot, topics),
                *target_problems(existing, cluster),
                *source_problems(application, copies, cluster),
                *creation_problems(compiled, {each.target.name for each in new}, policies),
            ]
            if found:
                raise ProblemsError(found)
            create_topics(connection, new, cluster)
            stopped = partial(check_stopped, connection, application, 0, report, has_begun=True)
            execution = CopyExecution(application, copies, cluster, report, check_stopped=stopped)
            retentions = {each.source: shorter_retention(snapshot, each) for each in copies}
            execution.run(retentions)
            return CopyResult(application, renames, execution.written)
    except KafkaException as error:
        raise ProblemsError([copy_request_failed(application, error.args[0])]) from error
    except KeyboardInterrupt as error:
        raise ProblemsError([copy_plan.copy_interrupted(application)]) from error


def check_permissions(
    connection: Connection, application: str, copies: Sequence[TopicCopy], existing: Sequence[TopicCopy]
) -> None:
    """Raise `ProblemsError` if the user may not read the old topics, or not write to `existing` new ones."""
    targets = {each.target.name for each in existing}
    read = {each.source for each in copies} | targets
    known = read_topic_operations(connection, read)
    if denied := denied_on_topics(application, known, {Operation.READ: read, Operation.WRITE: targets}):
        raise ProblemsError(denied)


@attrs.define(eq=False)
class CopyExecution:
    """One execution of copies, from their beginning. `check_stopped` raises if the application runs."""

    _application: str
    _copies: Sequence[TopicCopy]
    _cluster: ReshardCluster
    _report: Report
    _check_stopped: Callable[[], None] = attrs.field(kw_only=True)
    written: int = attrs.field(default=0, init=False)

    def run(self, retentions: Mapping[str, int | None]) -> None:
        """Copy all topics; `retentions` is old topic → after how long records are deleted, None = never.

        Raises:
            ProblemsError: A copy is not complete, or the application has run meanwhile.
            KafkaException: Kafka fails, or the copy is executed somewhere else.
        """
        with self._cluster.producer(f"{self._application}-headwater-copy") as producer:
            journal = self._begin(producer)
            for copy in self._copies:
                if copy.is_changelog:
                    limit = expires_before(journal.started_ms, retentions[copy.source])
                    ends = journal.ends_of(copy.target.name)
                    move = EntryMove(copy.transfer, self._cluster, ends, limit, self._report)
                    move.delete_leftovers(producer)
                    expected = move.copy(producer)
                    check_totals(self._application, copy.transfer, expected, move.find_totals())
                    self.written += move.written
            self._check_unchanged(journal)
            self._copy_unprocessed(producer, journal)

    def _begin(self, producer: MoveProducer) -> Journal:
        """Commit that the copy is not complete."""
        ends = {
            (copy.target.name, partition): end
            for copy in self._copies
            for (_, partition), (_, end) in self._cluster.bounds(copy.source_partitions).items()
        }
        journal = Journal(
            {copy.target.name: (copy.partitions, copy.partitions) for copy in self._copies},
            ends,
            {copy.target.name: Phase.COPY for copy in self._copies if copy.is_changelog},
            started_ms=int(time.time() * 1000),
        )
        producer.commit(journal.all_commits)
        return journal

    def _check_unchanged(self, journal: Journal) -> None:
        """Check that the old version has not run since the copy began: no partition count prevents that."""
        self._check_stopped()
        for copy in self._copies:
            bounds = self._cluster.bounds(copy.source_partitions)
            if any(end != journal.ends[copy.target.name, each] for (_, each), (_, end) in bounds.items()):
                raise ProblemsError([copy_plan.has_run(self._application, copy.source)])

    def _copy_unprocessed(self, producer: MoveProducer, journal: Journal) -> None:
        """Copy unprocessed records, and commit with them that the copy is complete.

        The offsets of repartition topics are committed before, behind all that they have: without the
        records, they mean nothing, and the copy can be repeated. They are in a transaction first, which fails
        if another execution has begun, and again with texts that Kafka Streams can read.
        """
        completed: dict[TopicPartition, tuple[int, str]] = {}
        offsets: dict[TopicPartition, tuple[int, str]] = {}
        records: list[OutputRecord] = []
        for copy in self._copies:
            if copy.is_changelog:
                completed |= {each: (journal.ends[each], "") for each in copy.target_partitions}
                continue
            starts = self._cluster.bounds(copy.target_partitions)
            committed = self._cluster.committed(copy.source_partitions)
            for (_, partition), found in committed.items():
                target = copy.target.name, partition
                records += unprocessed_records(self._cluster, copy, partition, found.offset)
                if found.offset is not None:
                    offsets[target] = starts[target][1], found.text
        if offsets:
            producer.commit(offsets)
            self._cluster.commit_offsets(offsets)
        self.written += producer.send(records)
        producer.commit(completed)


def unprocessed_records(
    cluster: ReshardCluster, copy: TopicCopy, partition: int, committed: int | None
) -> Iterable[OutputRecord]:
    """Yield the unprocessed records of a partition, for the topic with the new name."""
    [(first, end)] = cluster.bounds([(copy.source, partition)]).values()
    start = first if committed is None else max(first, committed)
    for chunk in cluster.read_range(copy.source, partition, start, end) if start < end else ():
        for _, _, _, timestamp, key, value, headers in chunk.records:
            yield copy.target.name, partition, key, value, timestamp, headers


def creation_problems(
    compiled: CompiledApplication, topics: Collection[str], policies: Sequence[Policy]
) -> list[Problem]:
    """Return why topics must not be created: settings that the cluster does not accept, and policies.

    Settings of other topics, such as sinks that exist, do not matter.
    """
    if not topics:
        return []
    created = [topic for topic in compiled.internal_topics if topic.name in topics]
    form = compiled.document.form if compiled.document is not None else DocumentForm.CALLS
    refused = profile_problems(compiled.application, created, (), form)
    return [*errors(refused), *errors(creation_violations(compiled, set(topics), policies))]


def shorter_retention(snapshot: ClusterSnapshot, copy: TopicCopy) -> int | None:
    """Return the shorter `retention.ms` of the old topic and the new one, which may not exist yet."""
    name = copy.target.name
    created = LiveTopic(name, "", copy.partitions, 1, copy.target.config)
    both = attrs.evolve(snapshot, topics={name: created, **snapshot.topics})
    found = (deleting_retention(both, topic) for topic in (copy.source, name))
    return min((retention for retention in found if retention is not None), default=None)


def source_problems(
    application: str, copies: Sequence[TopicCopy], cluster: ReshardCluster
) -> Iterable[Problem]:
    """Yield transactions and reshards that are not complete, and too many unprocessed records."""
    for copy in copies:
        for topic, partition in cluster.open_transactions(copy.source_partitions):
            yield problems.open_transaction(application, topic, partition)
        committed = cluster.committed(copy.source_partitions, stable=False)
        if any(decode_mark(each.text) is not None for each in committed.values()):
            yield copy_refused(
                copy.target.name,
                f"a reshard, a move or a copy to {copy.source} is not complete",
                "an old topic with all of its entries",
                "Complete it with the document of the old version: run the same command again.",
            )
        if not copy.is_changelog:
            bounds = cluster.bounds(copy.source_partitions)
            waiting = sum(
                max(0, end - max(first, committed[each].offset or 0)) for each, (first, end) in bounds.items()
            )
            if waiting > _MAX_RECORDS:
                yield input_problems.many_unprocessed(application, waiting, _MAX_RECORDS)


def incomplete_copies(copies: Sequence[TopicCopy], cluster: ReshardCluster) -> Collection[str]:
    """Return the new changelog topics to which a copy is not complete; raises `KafkaException`.

    Each topic has its own mark: the others of the copy may be deleted already, or not be named now. The mark
    of a reshard has different counts.
    """
    if not copies:
        return ()
    found = cluster.committed(((copy.target.name, 0) for copy in copies), stable=False)
    marks = {topic: decode_mark(each.text) for (topic, _), each in found.items()}
    return {topic for topic, mark in marks.items() if mark is not None and mark.before == mark.after}


def target_problems(copies: Sequence[TopicCopy], cluster: ReshardCluster) -> Iterable[Problem]:
    """Yield the new topics that have records which an incomplete copy has not written.

    A copy that was interrupted may have committed offsets of a repartition topic that never had a record.
    """
    incomplete = incomplete_copies(copies, cluster)
    for copy in copies:
        topic = copy.target.name
        bounds = cluster.bounds(copy.target_partitions)
        has_records = topic not in incomplete and any(
            chunk.records
            for (_, partition), (first, end) in bounds.items()
            for chunk in (cluster.read_range(topic, partition, first, end) if first < end else ())
        )
        if (
            not copy.is_changelog
            and (has_records or has_deleted_records(bounds))
            and any(
                found.offset is not None
                for found in cluster.committed(copy.target_partitions, stable=False).values()
            )
        ):
            yield copy_refused(
                topic,
                "the application has offsets for it already",
                "a topic that no copy and no application has used",
                f"It is copied already, unless the application has started with the new name. Omit {topic}.",
            )
        elif has_records:
            yield copy_refused(
                topic,
                "it has records already",
                "an empty topic, or none",
                copy_plan.delete_unless_started(topic),
            )


def has_deleted_records(bounds: OffsetRanges) -> bool:
    """Return whether records of a repartition topic were deleted: an application has processed them."""
    return any(first > 0 for first, _ in bounds.values())


def create_topics(connection: Connection, copies: Sequence[TopicCopy], cluster: ReshardCluster) -> None:
    """Create the new topics as Kafka Streams would; raises `ProblemsError`, `KafkaException`."""
    if not copies:
        return
    admin = admin_client(connection)
    if failed := tuple(await_failures(request_new_topics(admin, [copy.target for copy in copies]))):
        raise ProblemsError([copy_plan.creation_failed("; ".join(failed))])
    await_new_topics(copies, cluster)


def await_new_topics(copies: Sequence[TopicCopy], cluster: ReshardCluster) -> None:
    """Wait until the brokers return new topics with the partition counts of the old ones.

    Raises:
        ProblemsError: A topic keeps another count, as if another client had created it.
        KafkaException: A topic is not visible in time.
    """
    deadline = time.monotonic() + _VISIBLE_SECONDS
    for copy in copies:
        topic = copy.target.name
        while True:
            is_last = time.monotonic() > deadline
            try:
                found = cluster.counts([topic])[topic]
            except KafkaException:
                if is_last:
                    raise
            else:
                if found == copy.partitions:
                    break
                if is_last:
                    raise ProblemsError([copy_plan.other_count(topic, found, copy.partitions)])
            time.sleep(_POLL_SECONDS)
