"""Read a cluster by the Kafka admin client, in a handful of batched requests."""

from collections.abc import Mapping, Sequence

from confluent_kafka.admin import TopicDescription  # type: ignore[attr-defined]  # public there all the same

from infra.model.cluster import ClusterSnapshot
from infra.model.problems import Problem, ProblemsError
from infra.observe.admin import Admin, Opening
from infra.observe.connection import Connection
from infra.observe.reader import SnapshotRequest
from infra.observe.reading import Reading, successes


class KafkaClusterReader:
    """A `ClusterReader`; `requests` counts the admin requests sent so far, chunk by chunk."""

    def __init__(self, connection: Connection, timeout_seconds: float = 15.0) -> None:
        """Connect when first asked; raises `ProblemsError` (InvalidConfig) for unfit settings."""
        self._admin = Admin(connection, timeout_seconds)
        self._opening: Opening | None = None

    @property
    def requests(self) -> int:
        return self._admin.requests

    def open(self) -> None:
        """Begin to connect and to ask what no request decides: the caller's own work goes on meanwhile."""
        self._opening = self._admin.open()

    def read(self, request: SnapshotRequest) -> ClusterSnapshot:
        """Return what was asked for; raises `ProblemsError` as `ClusterReader` says."""
        return self.ask(request).snapshot()

    def ask(self, request: SnapshotRequest) -> Reading:
        """Send the questions of a snapshot; raises `ProblemsError` when the cluster does not answer."""
        opening, self._opening = self._opening or self._admin.open(), None
        cluster_id = self._admin.connect(opening)
        return Reading(self._admin, request, cluster_id, self._admin.metadata(opening))

    def topic_ids(self, names: Sequence[str]) -> Mapping[str, str]:
        """Return name → id of those that exist; raises `ProblemsError`."""
        return {name: str(topic.topic_id) for name, topic in self._described(names)}

    def partition_counts(self, names: Sequence[str]) -> Mapping[str, int]:
        """Return name → partition count of those that exist; raises `ProblemsError`."""
        return {name: len(topic.partitions) for name, topic in self._described(names)}

    def _described(self, names: Sequence[str]) -> Sequence[tuple[str, TopicDescription]]:
        self._admin.connect()
        denied: list[Problem] = []
        answers = self._admin.answers(self._admin.ask_topics(names))
        found = tuple(successes(answers, "see topic", denied))
        if denied:
            raise ProblemsError(denied)
        return found
