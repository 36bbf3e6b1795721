"""Undo a copy of state: delete the new topics, as long as they have nothing but the copy.

The new version of an application writes to them, or processes their records, as soon as it has started. Then
the old state is out of date, and the copy cannot be undone any more.
"""

import time
from collections.abc import Mapping, Sequence
from contextlib import closing

from confluent_kafka import KafkaException

from headwater.change.topics import delete_topics
from headwater.kafka import Connection
from headwater.model.problems import ProblemsError
from headwater.model.topology import TopologyDocument
from headwater_spark.driver.processor_move.entry_copy import Report
from headwater_spark.driver.processor_move.kafka_cluster import KafkaMoveCluster
from headwater_spark.driver.reshard import copy_plan
from headwater_spark.driver.reshard.checks import SESSION_SECONDS, check_stopped
from headwater_spark.driver.reshard.copy_plan import Renames, TopicCopy
from headwater_spark.driver.reshard.entry_move import EntryMove, ReshardCluster
from headwater_spark.driver.reshard.execution import expires_before
from headwater_spark.driver.reshard.state_copy import (
    has_deleted_records,
    incomplete_copies,
    read_copies,
    shorter_retention,
    unprocessed_records,
)
from headwater_spark.engine.scaling.transfers import Transfer
from headwater_spark.worker.interpreter import cheap_collections


def undo_copy(
    document: TopologyDocument,
    connection: Connection,
    renames: Renames,
    report: Report,
) -> Sequence[str]:
    """Delete the new topics of a copy, and return their names. Topics that are deleted already are omitted.

    Brokers remove the offsets of deleted topics from the application's group.

    Raises:
        ProblemsError: A topic has more than the copy, and nothing was deleted; or Kafka failed, and the
            command can be run again.
    """
    application = document.application.id
    try:
        with (
            cheap_collections(),
            closing(KafkaMoveCluster(connection, application, copy_plan.undo_failed)) as cluster,
        ):
            check_stopped(connection, application, SESSION_SECONDS, report)
            snapshot, _, copies, refused = read_copies(connection, document, renames)
            if refused:
                raise ProblemsError(refused)
            existing = [each for each in copies if each.target.name in snapshot.partitions]
            retentions = {each.source: shorter_retention(snapshot, each) for each in existing}
            if used := used_topics(existing, retentions, cluster, report):
                raise ProblemsError([copy_plan.not_undone(application, topic) for topic in used])
            ids = {each.target.name: snapshot.topics[each.target.name].topic_id for each in existing}
            check_stopped(connection, application, 0, report)
            if remaining := delete_topics(connection, ids):
                reasons = "; ".join(f"{topic}: {reason}" for topic, reason in remaining.items())
                raise ProblemsError([copy_plan.undo_failed(application, reasons)])
            return sorted(ids)
    except (KafkaException, OSError) as error:
        reason = error.args[0].str() if isinstance(error, KafkaException) else str(error)
        raise ProblemsError([copy_plan.undo_failed(application, reason)]) from error


def used_topics(
    copies: Sequence[TopicCopy],
    retentions: Mapping[str, int | None],
    cluster: ReshardCluster,
    report: Report,
) -> Sequence[str]:
    """Return the new topics that have other records than their copy, or whose records were processed.

    Raises `KafkaException`. `retentions` is old topic → after how long records are deleted, None = never.
    """
    incomplete = incomplete_copies(copies, cluster)
    used = []
    for copy in copies:
        is_copy = (
            _has_entries_of_copy(
                copy, retentions[copy.source], cluster, report, is_complete=copy.target.name not in incomplete
            )
            if copy.is_changelog
            else _has_unprocessed_records(copy, cluster)
        )
        if not is_copy:
            used.append(copy.target.name)
    return used


def _has_entries_of_copy(
    copy: TopicCopy, retention: int | None, cluster: ReshardCluster, report: Report, *, is_complete: bool
) -> bool:
    """Return whether a changelog topic has the entries of its original; if incomplete, no other ones.

    Retention may have deleted entries of either topic, so totals do not show what replaced or deleted them.
    """
    limit = expires_before(int(time.time() * 1000), retention)
    old, new = (
        EntryMove(Transfer(name, name, copy.partitions, copy.partitions), cluster, {}, limit, report)
        for name in (copy.source, copy.target.name)
    )
    found = new.last_records()
    if not any(map(len, found)):
        return True  # created, and the copy has not begun
    original = old.last_records()
    for partition in range(copy.partitions):
        if found[partition].has_others_than(original[partition]):
            return False
        if not is_complete:
            continue
        if found[partition].has_deleted(original[partition]):
            return False
        expected = original[partition].totals().get(partition)
        actual = found[partition].totals().get(partition)
        if expected is None or actual is None:
            if expected is not actual:
                return False
        elif not expected.is_complete(actual):
            return False
    return True


def _has_unprocessed_records(copy: TopicCopy, cluster: ReshardCluster) -> bool:
    """Return whether a repartition topic has exactly the unprocessed records of its original, or none yet."""
    offsets = cluster.committed(copy.source_partitions)
    committed = cluster.committed(copy.target_partitions)
    for each, (first, end) in cluster.bounds(copy.target_partitions).items():
        offset = committed[each].offset
        chunks = cluster.read_range(*each, first, end) if first < end else ()
        written = [record for chunk in chunks for record in chunk.records]
        if not written and not has_deleted_records({each: (first, end)}):
            continue  # not copied yet
        if any(record[2] < (offset or 0) for record in written):
            return False  # processed
        original = unprocessed_records(cluster, copy, each[1], offsets[copy.source, each[1]].offset)
        expected = [(time_, key, value, headers) for _, _, key, value, time_, headers in original]
        if [record[3:] for record in written] != expected:
            return False
    return True
