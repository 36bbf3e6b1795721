"""Offsets of an application's consumer group: committed, start and end offsets, lag; and purged records."""

import time
from collections.abc import Collection, Iterable, Mapping, Sequence

import attrs
import structlog
from confluent_kafka import Consumer, KafkaError, KafkaException
from confluent_kafka import TopicPartition as KafkaTopicPartition
from confluent_kafka.admin import AdminClient

from headwater.kafka import Connection
from headwater.model.offset_metadata import MoveMark, decode_mark, decode_processor
from headwater.model.problems import Problem, ProblemCode, ProblemsError
from headwater_spark.driver.layout import OffsetReset, ResetKind
from headwater_spark.engine.records import Commits, Offsets, TopicPartition
from headwater_spark.worker import clients

_log = structlog.get_logger(__name__)
_TIMED_OUT = KafkaError._TIMED_OUT  # noqa: SLF001 - the library's own codes begin with an underscore
_STABLE_TIMEOUT_SECONDS = 5.0
_COMMIT_SECONDS = 5.0
_POLL_SECONDS = 0.005


@attrs.frozen(kw_only=True)
class Backlog:
    """How far a consumer group has read.

    `lag` is the number of records still to be read, `committed` the sum of the committed offsets.
    """

    lag: int | None
    committed: int


class GroupOffsets:
    """The offsets of one consumer group. All methods raise `KafkaException`.

    Everything is read by a consumer: librdkafka's admin client (2.16) crashes the process when the group's
    coordinator is not available yet, and when brokers disappear while it looks up partition leaders.
    """

    def __init__(self, connection: Connection, group: str) -> None:
        self._group = group
        self._consumer = clients.create_consumer(connection, group)
        self._uncommitted_reader = clients.create_consumer(
            connection, group, {"isolation.level": "read_uncommitted"}
        )

    def committed(self, partitions: Iterable[TopicPartition]) -> Offsets:
        """Return the committed offsets; partitions without one are missing. Wait for open transactions."""
        return self._read_committed(self._consumer, partitions)

    def last_committed(self, partitions: Iterable[TopicPartition]) -> Offsets:
        """Return the offsets that were committed last, without offsets of open transactions.

        The transaction of a killed client stays open for up to a minute, or until its tasks run again.
        """
        return self._read_committed(self._uncommitted_reader, partitions)

    def committed_processors(self, partitions: Iterable[TopicPartition]) -> dict[TopicPartition, int]:
        """Return partition → the processor that has processed it; unprocessed partitions are missing."""
        found = clients.read_committed(self._uncommitted_reader, partitions)
        owners = {
            (each.topic, each.partition): decode_processor(each.metadata or "", each.partition)
            for each in found
        }
        return {partition: owner for partition, owner in owners.items() if owner is not None}

    def committed_metadata(self, partitions: Iterable[TopicPartition]) -> Sequence[str]:
        """Return the texts that were committed with the offsets; empty ones where none is."""
        return [each.metadata or "" for each in clients.read_committed(self._uncommitted_reader, partitions)]

    def commits(self, partitions: Sequence[TopicPartition], seconds: float = _COMMIT_SECONDS) -> Commits:
        """Return partition → committed offset and its metadata; partitions without an offset are missing.

        Offsets of open transactions are not returned (`last_committed`). Waits `seconds` at most.
        """
        reader = self._uncommitted_reader
        found = clients.read_committed(reader, partitions, seconds) if partitions else ()
        return {
            (each.topic, each.partition): (each.offset, each.metadata or "")
            for each in found
            if each.offset >= 0
        }

    def commit_again(self, commits: Commits) -> None:
        """Commit offsets with their metadata, as tasks have committed them before."""
        partitions = [
            KafkaTopicPartition(*partition, offset, text) for partition, (offset, text) in commits.items()
        ]
        if partitions:
            clients.commit_offsets(self._consumer, partitions, _COMMIT_SECONDS, "commit offsets again")

    def move_mark(self, partitions: Iterable[TopicPartition]) -> MoveMark | None:
        """Return the mark of a move of the state that is not complete."""
        found = clients.read_committed(self._uncommitted_reader, partitions)
        marks = (decode_mark(each.metadata or "") for each in found)
        return next((mark for mark in marks if mark is not None), None)

    def end_offsets(self, partitions: Sequence[TopicPartition]) -> Offsets:
        """Return the end offsets of committed records (the last stable offsets)."""
        return self._list_offsets(dict.fromkeys(partitions, clients.LATEST))

    def written_end_offsets(self, partitions: Sequence[TopicPartition]) -> Offsets:
        """Return the end offsets of all records, also of those in open transactions."""
        return self._list_offsets(dict.fromkeys(partitions, clients.LATEST), self._uncommitted_reader)

    def first_offsets(self, partitions: Sequence[TopicPartition]) -> Offsets:
        """Return the offsets of the first records that exist."""
        return self._list_offsets(dict.fromkeys(partitions, clients.EARLIEST))

    def stable_end_offsets(
        self, partitions: Sequence[TopicPartition], timeout_seconds: float = _STABLE_TIMEOUT_SECONDS
    ) -> Offsets:
        """Return the end offsets when everything that has been written until now is committed.

        The coordinator answers a commit before the partitions know of it. Until then their end offsets
        exclude the transaction's records. Raises `KafkaException` after `timeout_seconds`.
        """
        written = self.written_end_offsets(partitions)
        deadline = time.monotonic() + timeout_seconds
        ends = self.end_offsets(partitions)
        while any(ends[partition] < end for partition, end in written.items()):
            if time.monotonic() > deadline:
                text = f"transactions are open after {timeout_seconds:g} s"
                raise KafkaException(KafkaError(_TIMED_OUT, text))
            time.sleep(_POLL_SECONDS)
            ends = self.end_offsets(partitions)
        return ends

    def read_backlogs(
        self, partitions: Mapping[str, Sequence[TopicPartition]], read: Offsets
    ) -> Mapping[str, Backlog]:
        """Return name → what is still to be read of its partitions; raises at once for a deleted partition.

        One request each reads the committed offsets and the ends of all. `read` are the offsets after the
        last batches: tasks without records commit later, while there are more records to read.
        """
        all_partitions = [each for some in partitions.values() for each in some]
        committed = self.last_committed(all_partitions)  # first: that raises while no broker answers
        ends = clients.list_offsets_once(self._consumer, dict.fromkeys(all_partitions, clients.LATEST))
        done = {each: max(committed.get(each, 0), read.get(each, 0)) for each in all_partitions}
        return {
            name: Backlog(
                lag=sum(max(0, ends[each] - done[each]) for each in some),
                committed=sum(committed.get(each, 0) for each in some),
            )
            for name, some in partitions.items()
        }

    def start_offsets(
        self,
        resets: Mapping[TopicPartition, OffsetReset],
        now_ms: int,
        forgotten: Offsets,
        committed: Offsets,
    ) -> Offsets:
        """Return where each partition is read from; commit the offsets that are not committed.

        `committed` are the offsets that were committed last (`commits`). Without one, that is the offset in
        `forgotten`, else the offset of the reset policy.

        Records that retention has deleted since the last commit are skipped, with a warning in the log.

        Raises:
            ProblemsError: A partition without a committed offset has the policy `none` (InvalidConfig).
        """
        # A killed client may have a transaction open. The tasks end it, and skip what it has committed.
        recalled = {each: forgotten[each] for each in resets.keys() & forgotten.keys() - committed.keys()}
        self._commit(recalled)
        known = {**committed, **recalled}
        new = {partition: reset for partition, reset in resets.items() if partition not in known}
        if refused := [partition for partition, reset in new.items() if reset.kind is ResetKind.NONE]:
            raise ProblemsError([_no_start_offset(self._group, *partition) for partition in refused])
        chosen = self._list_offsets(
            {partition: _reset_timestamp(reset, now_ms) for partition, reset in new.items()}
        )
        no_newer_record = [partition for partition, offset in chosen.items() if offset < 0]
        chosen = {**chosen, **self.end_offsets(no_newer_record)}
        self._commit(chosen)
        return self._skip_deleted({**known, **chosen})

    def reset_to_earliest(self, partitions: Sequence[TopicPartition]) -> None:
        """Commit the first offsets, without metadata: the committed ones belong to deleted topics."""
        self._commit(self.first_offsets(partitions))

    def close(self) -> None:
        self._consumer.close()
        self._uncommitted_reader.close()

    def _skip_deleted(self, offsets: Offsets) -> Offsets:
        """Return `offsets`, or the first ones that exist; log a warning where records were lost."""
        first = self.first_offsets([*offsets])
        for (topic, partition), offset in offsets.items():
            if first[topic, partition] > offset:
                _log.warning(
                    "records were deleted before they were processed",
                    topic=topic,
                    partition=partition,
                    first=offset,
                    last=first[topic, partition] - 1,
                )
        return {partition: max(offset, first[partition]) for partition, offset in offsets.items()}

    @staticmethod
    def _read_committed(reader: Consumer, partitions: Iterable[TopicPartition]) -> Offsets:
        found = clients.read_committed(reader, partitions)
        return {(each.topic, each.partition): each.offset for each in found if each.offset >= 0}

    def _commit(self, offsets: Offsets) -> None:
        if offsets:
            partitions = [KafkaTopicPartition(*partition, offset) for partition, offset in offsets.items()]
            self._consumer.commit(offsets=partitions, asynchronous=False)

    def _list_offsets(
        self, timestamps: Mapping[TopicPartition, int], consumer: Consumer | None = None
    ) -> Offsets:
        return clients.list_offsets(consumer or self._consumer, timestamps)


class RecordPurger:
    """Deletes records of repartition topics that were processed (`TaskManager#maybePurgeCommittedRecords`).

    A failed request is not an error: the next call tries again. Pass committed offsets that a consumer has
    just read: librdkafka's admin client (2.16) has aborted processes whose brokers disappeared while it
    looked up partition leaders. Brokers may still disappear between the two requests; 8,000 such requests to
    a broker that was killed, paused and restarted did no harm. Requesting a topic's metadata first would
    reduce the risk, but may create a topic that was deleted.
    """

    def __init__(self, connection: Connection) -> None:
        self._admin = AdminClient(clients.client_settings(connection), logger=clients.client_logger())
        self._purged: dict[TopicPartition, int] = {}

    def forget_topics(self, topics: Collection[str]) -> None:
        """Forget what was purged of `topics`: they were re-created."""
        self._purged = {
            partition: offset for partition, offset in self._purged.items() if partition[0] not in topics
        }

    def purge_records(self, committed: Offsets) -> None:
        """Delete the records below `committed`."""
        due = {
            partition: offset
            for partition, offset in committed.items()
            if offset > self._purged.get(partition, 0)
        }
        if not due:
            return
        futures = self._admin.delete_records(
            [KafkaTopicPartition(*partition, offset) for partition, offset in due.items()],
            request_timeout=clients.REQUEST_SECONDS,
        )
        for requested, future in futures.items():
            try:
                future.result()
            except KafkaException:
                continue
            partition = requested.topic, requested.partition
            self._purged[partition] = due[partition]


def _reset_timestamp(reset: OffsetReset, now_ms: int) -> int:
    """Return the timestamp for the protocol's ListOffsets request."""
    match reset.kind:
        case ResetKind.LATEST:
            return clients.LATEST
        case ResetKind.BY_DURATION:
            return now_ms - reset.duration_ms
        case _:
            return clients.EARLIEST


def _no_start_offset(group: str, topic: str, partition: int) -> Problem:
    return Problem(
        code=ProblemCode.INVALID_CONFIG,
        summary=f"Partition {partition} of {topic} has no start offset.",
        application=group,
        topic=topic,
        expected=f"an offset committed by group {group}, or a reset policy",
        found="no committed offset; the policy is none",
        why="With auto.offset.reset none an application does not choose which records it skips or repeats.",
        fix="Commit the offset with kafka-consumer-groups.sh, or set earliest or latest.",
    )
