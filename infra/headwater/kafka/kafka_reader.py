"""Reads a cluster's snapshot with librdkafka, and surveys all of its topics and groups."""

from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from functools import partial
from typing import TYPE_CHECKING

import attrs
from confluent_kafka import KafkaError, TopicPartition
from confluent_kafka.admin import TopicDescription  # type: ignore[attr-defined]  # public in the library

from headwater.kafka.connection import Connection
from headwater.kafka.evidence import (
    group_facts,
    read_cleanup_policy,
    read_group_facts,
    read_streams_groups,
    streams_facts,
)
from headwater.kafka.expansion_journal import read_agent_expansions
from headwater.kafka.group_admin import GroupAdmin
from headwater.kafka.group_offsets import read_metadata
from headwater.kafka.ownership import read_ownership
from headwater.kafka.pending_snapshot import PendingSnapshot, successful_answers
from headwater.kafka.reader import ClusterReader, GroupsRead, SnapshotRequest
from headwater.model.cluster import ClusterSnapshot, Survey
from headwater.model.compiled import CompiledApplication
from headwater.model.expansions import AgentExpansions
from headwater.model.problems import Problem, ProblemsError
from headwater.model.records import OwnershipLog
from headwater.model.topology import name_beginnings

if TYPE_CHECKING:
    from headwater.kafka.admin import FirstRequest


def check_visible(
    reader: ClusterReader, snapshot: ClusterSnapshot, compiled: Iterable[CompiledApplication]
) -> None:
    """Request by name the internal topics that are not in the snapshot, if there are any.

    Their names are known only after the counts. Raises `ProblemsError` (NotAuthorized).
    """
    names = {topic.name for application in compiled for topic in application.internal_topics}
    if unseen := sorted(names - snapshot.topics.keys()):
        reader.topic_ids(unseen)


_TIMEOUT_SECONDS = 15.0


class KafkaClusterReader:
    """A `ClusterReader`; `requests` counts the admin requests sent so far, each chunk as one."""

    def __init__(self, connection: Connection, timeout_seconds: float = _TIMEOUT_SECONDS) -> None:
        """Connect on the first request; raises `ProblemsError` (InvalidConfig) for wrong settings."""
        self.connection = connection
        self._timeout = timeout_seconds
        self._admin = GroupAdmin(connection, timeout_seconds)
        self._read_ownership = partial(read_ownership, connection, timeout_seconds)
        self._first_request: FirstRequest | None = None

    @property
    def requests(self) -> int:
        return self._admin.requests

    def open(self) -> None:
        """Begin to connect and send the first request, while the caller continues with other work."""
        self._first_request = self._admin.open()

    def read(self, request: SnapshotRequest) -> ClusterSnapshot:
        """Return the snapshot; raises `ProblemsError` as `ClusterReader` says."""
        return self.begin(request).snapshot()

    def begin(self, request: SnapshotRequest) -> PendingSnapshot:
        """Send the requests of a snapshot; raises `ProblemsError` if the cluster does not answer."""
        first_request, self._first_request = self._first_request or self._admin.open(), None
        metadata = self._admin.metadata(first_request)
        return PendingSnapshot(self._admin, request, metadata, self._read_ownership)

    def settle(self) -> None:
        """Wait for pending answers before the reader is dropped, at most until they time out."""
        self._admin.settle()

    def topic_ids(self, names: Sequence[str]) -> Mapping[str, str]:
        """Return name → id of the topics that exist; raises `ProblemsError`."""
        return {name: str(topic.topic_id) for name, topic in self._describe_topics(names)}

    def topic_ids_and_counts(self, names: Sequence[str]) -> tuple[Mapping[str, str], Mapping[str, int]]:
        """Return name → id and name → partition count of the topics that exist; raises `ProblemsError`."""
        found = self._describe_topics(names)
        ids = {name: str(topic.topic_id) for name, topic in found}
        return ids, {name: len(topic.partitions) for name, topic in found}

    def read_ownership(self) -> OwnershipLog:
        """Return the ownership records; raises `ProblemsError`."""
        return self._read_ownership()

    def partition_counts(self, names: Sequence[str]) -> Mapping[str, int]:
        """Return name → partition count of the topics that exist; raises `ProblemsError`."""
        return {name: len(topic.partitions) for name, topic in self._describe_topics(names)}

    def record_counts(self, partitions: Mapping[str, int]) -> Mapping[str, int]:
        """Return name → number of offsets of the topics that can be read; raises `ProblemsError`."""
        requested = [
            TopicPartition(name, number) for name, count in partitions.items() for number in range(count)
        ]
        counts: Counter[str] = Counter(dict.fromkeys(partitions, 0))
        unread: set[str] = set()
        for request, sign in (
            (self._admin.request_first_offsets, -1),
            (self._admin.request_end_offsets, 1),
        ):
            for partition, answer in self._admin.answers(request(requested)):
                if isinstance(answer, KafkaError):
                    unread.add(partition.topic)
                else:
                    counts[partition.topic] += sign * answer.offset
        return {name: count for name, count in counts.items() if name not in unread}

    def offset_metadata(self, group: str, partitions: Mapping[str, int]) -> Sequence[str]:
        """Return the texts that a group has committed; raises `ProblemsError`."""
        return read_metadata(self.connection, group, partitions, self._timeout)

    def group_facts(self, offsets_of: frozenset[str] | None) -> GroupsRead:
        """Return the facts of all groups; raises `ProblemsError`."""
        return read_group_facts(self._admin, offsets_of)

    def agent_expansions(self, journals: Sequence[str]) -> AgentExpansions:
        """Return the expansions in the journals of agents; raises nothing."""
        return read_agent_expansions(self.connection, journals, self._timeout)

    def cleanup_policy(self, topic: str) -> str:
        """Return the policy, empty if it may not be read; raises `ProblemsError`."""
        return read_cleanup_policy(self._admin, topic)

    def _describe_topics(self, names: Sequence[str]) -> Sequence[tuple[str, TopicDescription]]:
        denied: list[Problem] = []
        answers = self._admin.answers(self._admin.request_topics(names))
        found = tuple(successful_answers(answers, "see topic", denied))
        if denied:
            raise ProblemsError(denied)
        return found


def survey_cluster(connection: Connection, patterns: Sequence[str], named: Sequence[str] = ()) -> Survey:
    """Return all topics, with settings where names match `patterns` (Python `re`), and all groups.

    Requests offsets only of groups whose id is the beginning of such a topic name. `named` are groups that
    must be visible if they exist.

    Raises:
        ProblemsError: ClusterUnreachable, RequestNotAnswered, AuthenticationRefused, NotAuthorized.
    """
    request = SnapshotRequest(patterns=tuple(patterns), groups=tuple(named), with_ids=False)
    snapshot = KafkaClusterReader(connection, _TIMEOUT_SECONDS).read(request)
    admin = GroupAdmin(connection, _TIMEOUT_SECONDS)
    groups = {group.id: group_facts(group) for group in admin.listed_groups()}
    streams_groups = read_streams_groups(admin, groups, with_nodes=True)
    groups |= {id_: streams_facts(groups[id_], group) for id_, group in streams_groups.items()}
    asked = sorted(groups.keys() & {id_ for name in snapshot.described for id_ in name_beginnings(name)})
    denied: list[Problem] = []
    committed = admin.committed_topics(asked).items()
    for id_, topics in successful_answers(committed, "read the offsets of consumer group", denied):
        groups[id_] = attrs.evolve(groups[id_], committed=topics)
    if denied:
        raise ProblemsError(denied)
    return Survey(snapshot.cluster_id, snapshot.topics, groups, streams_groups)
