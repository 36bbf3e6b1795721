"""Check on the cluster whether a reshard may begin, or has begun."""

import time
from collections.abc import Iterable, Mapping, Sequence
from collections.abc import Set as AbstractSet

from headwater.compiler.streams_config import StreamsConfig, has_library
from headwater.kafka import Connection
from headwater.kafka.group_admin import GroupAdmin
from headwater.model.cluster import ClusterSnapshot
from headwater.model.compiled import CompiledApplication
from headwater.model.policies import Policy
from headwater.model.problems import Problem, ProblemCode, ProblemsError, errors
from headwater.model.topology import TopologyDocument
from headwater.operations.planning import compile_with_counts
from headwater.planner.policies import expansion_violations
from headwater_spark.driver.processor_move.entry_copy import Report
from headwater_spark.driver.reshard import copy_plan, input_problems, problems
from headwater_spark.driver.reshard.entry_move import ReshardCluster
from headwater_spark.driver.reshard.journal import Journal, Phase, journal_partitions, read_journal
from headwater_spark.driver.reshard.plan import Reshard, producer_name
from headwater_spark.driver.reshard.unprocessed_records import UnprocessedRecords

_WITHOUT_MEMBERS = ("Empty", "Dead")
_ADMIN_SECONDS = 30.0
_POLL_SECONDS = 1.0
SESSION_SECONDS = 60.0
"""Longer than the default of `session.timeout.ms`, 45 s."""


def has_members(connection: Connection, application: str) -> bool:
    """Return whether the application's group has members, of any group protocol."""
    return GroupAdmin(connection, _ADMIN_SECONDS).group_state(application) not in _WITHOUT_MEMBERS


def check_stopped(
    connection: Connection, application: str, wait_seconds: float, report: Report, *, has_begun: bool = False
) -> None:
    """Raise `ProblemsError` if the application's group has members, of any group protocol.

    Kafka Streams does not leave its group when it stops: its members are removed when their session times
    out. So wait for that.
    """
    admin = GroupAdmin(connection, _ADMIN_SECONDS)
    deadline = time.monotonic() + wait_seconds
    while (state := admin.group_state(application)) not in _WITHOUT_MEMBERS:
        if time.monotonic() > deadline:
            raise ProblemsError(
                [problems.group_active(application, state, wait_seconds, has_begun=has_begun)]
            )
        report("waiting until the members of the group have timed out", 0, 0)
        time.sleep(_POLL_SECONDS)


def find_journal(
    document: TopologyDocument, partitions: Mapping[str, int], cluster: ReshardCluster
) -> Journal | None:
    """Return the journal of a reshard that is not complete; raises `KafkaException`.

    `partitions` is topic → partition count on the cluster.
    """
    changelogs = _count_changelogs(compile_with_counts(document, partitions, {}), partitions)
    application = document.application.id
    try:
        journal = read_journal(cluster.committed(journal_partitions(changelogs), stable=False))
    except ValueError as error:
        raise ProblemsError([problems.unreadable_journal(application, str(error))]) from None
    if journal is not None and all(before == after for before, after in journal.counts.values()):
        raise ProblemsError([copy_plan.copy_incomplete(application, sorted(journal.phases))])
    return journal


def deleted_topics(
    compiled: CompiledApplication, journal: Journal, partitions: Mapping[str, int]
) -> Sequence[Problem]:
    """Return the problems of topics that were deleted after a reshard had begun.

    `partitions` is topic → partition count on the cluster.
    """
    application, lost = compiled.application.id, sorted(journal.counts.keys() - partitions.keys())
    internal = {
        topic
        for part in compiled.subtopologies
        for topic in (*part.changelog_topics, *part.repartition_topics)
    }
    if own := [topic for topic in lost if topic in internal]:
        return [input_problems.deleted_topics(application, own)]
    return [input_problems.deleted_source(application, topic, journal.counts[topic][0]) for topic in lost]


def withdraw_if_unchanged(
    application: str,
    journal: Journal,
    counts: Mapping[str, int],
    cluster: ReshardCluster,
    *,
    is_removed: bool = True,
) -> Journal | None:
    """Return None if nothing but the journal was written, and remove it; otherwise return the journal.

    Until a topic is expanded, the application can start again and write: then the ends that the journal has
    are not the ends of the old parts any more. `counts` is topic → partition count on the cluster.
    """
    if journal.has_offsets or set(journal.phases.values()) != {Phase.COPY}:
        return journal
    changed = {topic for topic in journal.phases if journal.counts[topic][0] < journal.counts[topic][1]}
    if not changed or any(counts[topic] != journal.counts[topic][0] for topic in changed):
        return journal
    kept = {each: end for each, end in journal.ends.items() if each[0] not in changed}
    if kept and any(end != kept[each] for each, (_, end) in cluster.bounds(kept).items()):
        return journal
    if is_removed:
        with cluster.producer(producer_name(application)) as producer:
            producer.commit(journal.removal)
    return None


def forgotten_offsets(
    document: TopologyDocument, partitions: Mapping[str, int], cluster: ReshardCluster
) -> Sequence[Problem]:
    """Return a problem if there are entries, but no offsets: brokers would have forgotten a journal, too.

    Raises `KafkaException`.
    """
    compiled = compile_with_counts(document, partitions, {})
    read = {
        topic: partitions[topic]
        for part in compiled.subtopologies
        if not part.is_global
        for topic in part.sources
        if topic in partitions
    }
    committed = cluster.committed(journal_partitions(read), stable=False)
    entries = cluster.bounds(journal_partitions(_count_changelogs(compiled, partitions)))
    if any(each.offset is not None for each in committed.values()) or not any(
        first < end for first, end in entries.values()
    ):
        return []
    return [input_problems.no_offsets(document.application.id, document.application.protocol)]


def check_reshard(reshard: Reshard, cluster: ReshardCluster) -> Sequence[Problem]:
    """Return why a reshard must not begin, apart from the entries; raises `KafkaException`."""
    read = reshard.input_partitions
    if unfinished := cluster.open_transactions([*reshard.changelog_partitions, *read]):
        return [problems.open_transaction(reshard.application, *each) for each in unfinished]
    committed = cluster.committed(read)
    has_offsets = any(each.offset is not None for each in committed.values())
    if not has_offsets and all(
        any(first < end for first, end in cluster.bounds(each).values())
        for each in (reshard.changelog_partitions, read)
    ):
        return [input_problems.no_offsets(reshard.application, reshard.protocol)]
    return UnprocessedRecords(reshard, cluster, committed).problems()


def unchecked_partitioners(
    reshard: Reshard, cluster: ReshardCluster, confirmed: AbstractSet[str]
) -> Sequence[Problem]:
    """Return a problem for each input topic whose partitioner the entries cannot show to be right.

    With one partition, any partitioner places all entries in it, also a partitioner that reads keys wrongly.
    `confirmed` are input topics whose partitioner may be used nevertheless. Raises `KafkaException`.
    """
    found = []
    for each in reshard.inputs:
        if each.partitioner is None or each.before > 1 or each.topic in confirmed:
            continue
        moved = [(store.changelog, 0) for store in each.part.stores]
        moved += [(each.topic, 0)] if each.is_rewritten else []  # its unprocessed records move, too
        if any(first < end for first, end in cluster.bounds(moved).values()):
            name = each.partitioner.name
            found.append(input_problems.unchecked_partitioner(reshard.application, each.topic, name))
    return found


def expansion_problems(
    reshard: Reshard,
    document: TopologyDocument,
    partitions: Mapping[str, int],
    policies: Sequence[Policy],
) -> Sequence[Problem]:
    """Return the policies that the new partition counts violate."""
    after = {topic: count for topic, count in reshard.expansions.items() if count > partitions[topic]}
    compiled = compile_with_counts(document, partitions, reshard.sources)
    return errors(expansion_violations(compiled, partitions, after, policies))


def autoscaling_problems(reshard: Reshard, document: TopologyDocument) -> Iterable[Problem]:
    """Yield the problem of an application whose topics another client would expand during the reshard.

    The library for Kafka Streams does, whatever state there is; agents and `pulumi up` only if that is
    declared to be safe. None can while the source topics have the old counts: then changelog topics have too
    many partitions.
    """
    application = document.application
    config = StreamsConfig.from_application(application)
    is_declared_safe = config.is_statically_partitioned or application.setup.allow_unsafe_expansion
    early = sorted(
        each.topic
        for each in reshard.inputs
        if not each.is_internal
        and each.after > each.before
        and (each.present >= each.after or each.is_rewritten)
    )
    if early and config.autoscaling and (has_library(application.config) or is_declared_safe):
        yield problems.expands_its_topics(
            application.id, early, application.locate_config(problems.AUTOSCALING)
        )


def check_sources(reshard: Reshard, cluster: ReshardCluster) -> None:
    """Raise `ProblemsError` if another client has added more partitions to source topics meanwhile."""
    expected = {each.topic: each.after for each in reshard.inputs if not each.is_internal}
    found = cluster.counts(expected)
    if more := {topic: count for topic, count in found.items() if count > expected[topic]}:
        raise ProblemsError([input_problems.expanded_meanwhile(reshard.application, more)])


def errors_of_existing_topics(found: Iterable[Problem]) -> tuple[Problem, ...]:
    """Return the errors without the settings that a kind of cluster does not accept of new topics.

    No topic is created here, and a reshard that was interrupted must be completed on every cluster.
    """
    return tuple(problem for problem in errors(found) if problem.code is not ProblemCode.NOT_ON_CLUSTER)


def timestamp_problems(
    application: str, snapshot: ClusterSnapshot, topics: Iterable[str]
) -> Sequence[Problem]:
    """Return a problem for each topic whose records would get other timestamps."""
    return [
        input_problems.replaced_timestamps(application, topic)
        for topic in topics
        if {**snapshot.topic_defaults, **snapshot.topics[topic].config}.get("message.timestamp.type")
        == "LogAppendTime"
    ]


def deleting_retention(snapshot: ClusterSnapshot, topic: str) -> int | None:
    """Return the `retention.ms` of a topic; None = brokers do not delete its records by time."""
    config = {**snapshot.topic_defaults, **snapshot.topics[topic].config}
    retention = int(config.get("retention.ms", -1))
    return retention if "delete" in config.get("cleanup.policy", "delete") and retention >= 0 else None


def _count_changelogs(compiled: CompiledApplication, partitions: Mapping[str, int]) -> Mapping[str, int]:
    """Return changelog topic → partition count, of the topics that exist."""
    # Internal topics have no count if a source topic is missing.
    names = {topic for part in compiled.subtopologies for topic in part.changelog_topics}
    return {topic: partitions[topic] for topic in names & partitions.keys()}
