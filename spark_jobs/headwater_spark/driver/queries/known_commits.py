"""The offsets that the tasks of a query have committed, and repairs of commits that outdated ones replaced.

With at least once, brokers accept the commit of any process. A worker that is stopped between its last check
and its commit (`worker.state_proof`) commits when it continues, after another host has processed its task:
the offset goes back. If the application started there, it would process records again. So while no task
runs, the driver compares what is committed with what its tasks have committed, and commits that again.
"""

from collections.abc import Iterable, Mapping
from threading import Event
from typing import Protocol

import attrs
import structlog
from confluent_kafka import KafkaException

from headwater.model.offset_metadata import LINEAGE_KEY, decode_metadata
from headwater_spark.driver.active_client.membership import ActiveClient
from headwater_spark.driver.captured_failures import failure_reason
from headwater_spark.driver.offsets import GroupOffsets
from headwater_spark.engine.records import Commits, TopicPartition
from headwater_spark.worker.messages import BatchResult
from headwater_spark.worker.state_proof import PROOF_SECONDS, boot_seconds

_log = structlog.get_logger(__name__)
_CHECK_SECONDS = 5.0

Commit = tuple[int, str]
"""An offset and its metadata."""


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
    before, after = decode_metadata(found), decode_metadata(known)
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
