"""The offsets that the tasks of a query have committed: commits to repair, and commits that are missing.

With at least once, brokers accept the commit of any process. A worker that is stopped between its last check
and its commit (`worker.state_proof`) commits when it continues, after another host has processed its task:
the offset goes back. If the application started there, it would process records again. So while no task
runs, the driver compares what is committed with what its tasks have committed, and commits that again.

A task commits with its records, so without any it would commit nothing: tools would show a lag for ever, and
each restart would read the records again. Spark SQL drops records in its filters, and a batch may have
nothing but transaction markers, or records of transactions that were aborted. Or retention has deleted all
records since the last commit. So the driver lets tasks without records commit the end of what the query has
read for them (`UncommittedInput`). Kafka Streams commits the position of its consumer.
"""

from collections.abc import Iterable, Mapping
from threading import Event
from types import MappingProxyType
from typing import Protocol

import attrs
import structlog
from confluent_kafka import KafkaException

from headwater.model.offset_metadata import LINEAGE_KEY, decode
from headwater_spark.driver.active_client.membership import ActiveClient
from headwater_spark.driver.captured_failures import failure_reason
from headwater_spark.driver.offsets import GroupOffsets
from headwater_spark.engine.records import TopicPartition
from headwater_spark.worker.messages import BatchRequest, BatchResult
from headwater_spark.worker.state_proof import PROOF_SECONDS, boot_seconds

_log = structlog.get_logger(__name__)
_CHECK_SECONDS = 5.0

Commit = tuple[int, str]
"""An offset and its metadata."""
Commits = Mapping[TopicPartition, Commit]


class KnownCommits:
    """The last commits of a query's tasks; they are known as long as no other process may change them."""

    def __init__(self) -> None:
        self._commits: dict[TopicPartition, Commit] = {}

    @property
    def commits(self) -> Commits:
        return dict(self._commits)

    @property
    def partitions(self) -> tuple[TopicPartition, ...]:
        return tuple(self._commits)

    def add(self, results: Iterable[BatchResult]) -> None:
        """Keep what the tasks of a batch have committed."""
        for result in results:
            for topic, partition, offset, text in result.committed:
                self._commits[topic, partition] = offset, text

    def learn(self, found: Commits) -> None:
        """Keep what was committed when a query started: a task without records commits nothing afterwards."""
        self._commits = {**found, **self._commits}

    def forget(self) -> None:
        """Know no commit any more: others may have committed."""
        self._commits = {}

    def replaced(self, found: Commits) -> Commits:
        """Return the commits that outdated ones of the same tasks have replaced; `found` is committed now.

        An offset that was deleted, or set by hand, is not the commit of a task.
        """
        return {
            partition: commit
            for partition, commit in self._commits.items()
            if partition in found and _is_outdated(found[partition][1], commit[1])
        }

    def repair(self, offsets: GroupOffsets) -> tuple[TopicPartition, ...]:
        """Commit again what older commits have replaced; return where. Raises `KafkaException`."""
        replaced = self.replaced(offsets.commits(self.partitions))
        offsets.commit_again(replaced)
        return tuple(sorted(replaced))


def _is_outdated(found: str, known: str) -> bool:
    """Return whether `found` has the same lineage of states, and an older version or another batch."""
    before, after = decode(found), decode(known)
    if before is None or after is None:
        return False
    lineage = before.clocks.get(LINEAGE_KEY)
    return (
        lineage is not None
        and lineage == after.clocks.get(LINEAGE_KEY)
        and before.version <= after.version
        and before.state_version != after.state_version
    )


class RepairedQuery(Protocol):
    """A query of the application (`SubtopologyQuery`)."""

    def repair_commits(self, offsets: GroupOffsets) -> tuple[TopicPartition, ...]:
        """Commit again what outdated workers have replaced; return where. Raises `KafkaException`."""
        ...


@attrs.frozen(eq=False)
class CommitCheck:
    """Compares the committed offsets every five seconds, while no task runs, and repairs them.

    Only a client does so that was the active one for certain just now. It does not check that itself: the
    thread that renews the record finds other clients, and reports them.
    """

    _queries: Mapping[str, RepairedQuery]
    _offsets: GroupOffsets
    _client: ActiveClient

    def run(self, stopping: Event) -> None:
        """Check until `stopping` is set."""
        while not stopping.wait(_CHECK_SECONDS):
            try:
                self.check()
            except KafkaException as error:  # no broker answers: others report it
                _log.debug("committed offsets not checked", reason=failure_reason(error))

    def check(self) -> None:
        """Check once; raises `KafkaException`."""
        for name, query in tuple(self._queries.items()):
            if boot_seconds() - self._client.proved_at > PROOF_SECONDS:
                return
            if repaired := query.repair_commits(self._offsets):
                _log.warning(
                    "offsets repaired: an outdated worker had committed",
                    subtopology=name,
                    partitions=repaired,
                )


Offsets = Mapping[TopicPartition, int]
_SECONDS = 1.0
"""How long tasks without records commit nothing while the query has more records to read."""


class UncommittedInput:
    """The offsets up to which a query has processed its input, and up to which its tasks have committed.

    Args:
        positions: The offsets with which the query starts.
        committed: The committed offsets that are before these: records between them do not exist any more.
    """

    def __init__(self, positions: Offsets, committed: Offsets = MappingProxyType({})) -> None:
        self._processed = dict(positions)
        self._committed = {**positions, **committed}
        self._renewed = dict(self._committed)
        self._requested_at = float("-inf")

    @property
    def ends(self) -> Offsets:
        """Topic partition → the offset before which all records are processed, or reach no task."""
        return dict(self._processed)

    @property
    def pending(self) -> Offsets:
        """Topic partition → the offset that its task has to commit."""
        return {each: end for each, end in self._processed.items() if end > self._committed.get(each, 0)}

    def take_idle(self) -> frozenset[TopicPartition]:
        """Return the partitions whose committed offset is the same as at the last call, or at the start."""
        before, self._renewed = self._renewed, dict(self._committed)
        return frozenset(each for each, offset in self._renewed.items() if before.get(each) == offset)

    def count_new(self, ends: Offsets) -> int:
        """Return about how many records a batch up to `ends` has."""
        return sum(end - self._processed.get(each, 0) for each, end in ends.items())

    def new_ranges(self, ends: Offsets) -> Mapping[TopicPartition, tuple[int, int]]:
        """Return about which offset ranges a batch up to `ends` has."""
        return {each: (self._processed.get(each, 0), end) for each, end in ends.items()}

    def skip_to(self, starts: Offsets) -> None:
        """Skip records that do not exist any more; `starts` are the first offsets of partitions."""
        for each, start in starts.items():
            if start > self._processed.get(each, 0):
                self._processed[each] = start

    def add(self, request: BatchRequest, results: Iterable[BatchResult]) -> None:
        """Add a batch or step that has not failed.

        Tasks that have committed did so up to what was read for them, or to the first record that was held
        back. Records that were held back are read again.
        """
        ends = dict(request.end_offsets)
        for result in results:
            held_back = result.first_held_back
            if result.read > 0 or not (result.held_back or result.skipped):
                ends |= held_back
                own = request.input_partitions(result.partition)
                self._committed.update({each: ends[each] for each in own if each in ends})
            else:
                ends = {each: end for each, end in ends.items() if each not in held_back}
        self._processed.update(ends)

    def tasks(self, request: BatchRequest) -> tuple[int, ...]:
        """Return the tasks that have to commit something."""
        pending = self.pending
        if not pending:
            return ()
        partitions = {task: request.input_partitions(task) for task in range(request.tasks)}
        return tuple(task for task, own in partitions.items() if not pending.keys().isdisjoint(own))

    def is_due(self, ends: Offsets, now: float) -> bool:
        """Return whether the tasks commit now, or with a later batch.

        Args:
            ends: The present end offsets of the input.
            now: Seconds of a monotonic clock.
        """
        has_more = any(end > self._processed.get(each, 0) for each, end in ends.items())
        if has_more and now - self._requested_at < _SECONDS:
            return False
        self._requested_at = now
        return True
