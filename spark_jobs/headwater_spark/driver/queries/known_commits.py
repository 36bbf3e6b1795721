"""The offsets that the tasks of a query have committed last, and which of them an older commit has replaced.

With at least once, brokers accept the commit of any process. A worker that is stopped between its last check
and its commit (`worker.state_proof`) commits when it continues, after another host has processed its task:
the offset goes back. If the application started there, it would process records again. So while no task
runs, the driver compares what is committed with what its tasks have committed, and commits that again.
"""

from collections.abc import Iterable, Mapping

from headwater.model.offset_metadata import LINEAGE_KEY, decode
from headwater_spark.engine.records import TopicPartition
from headwater_spark.worker.messages import BatchResult

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
