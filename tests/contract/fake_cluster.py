"""A cluster in memory and its reader. The contract tests of this folder run on it and on a real broker."""

import re
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from uuid import uuid4

import attrs

from headwater.kafka import SnapshotRequest
from headwater.kafka.reader import GroupsRead
from headwater.model.cluster import ClusterSnapshot, GroupFacts, LiveGroup, LiveTopic
from headwater.model.expansions import AgentExpansions
from headwater.model.records import (
    OWNERSHIP_TOPIC,
    OwnershipChange,
    OwnershipLog,
    OwnershipRecord,
    OwnershipTopic,
)
from headwater.model.untrusted import UnreadReason, UnreadRecord

BROKER_DEFAULTS = {
    "cleanup.policy": "delete",
    "message.timestamp.type": "CreateTime",
    "retention.ms": "604800000",
}

COMPACTED = {"cleanup.policy": "compact", "message.timestamp.type": "CreateTime"}
"""The settings of a changelog topic that Kafka Streams has created."""


@attrs.define
class FakeCluster:
    """Topics and groups; `written` is topic name → number of records, `purged` how many are deleted."""

    topics: dict[str, LiveTopic] = attrs.field(factory=dict)
    groups: dict[str, LiveGroup] = attrs.field(factory=dict)
    written: Counter[str] = attrs.field(factory=Counter)
    purged: Counter[str] = attrs.field(factory=Counter)
    ownership: dict[tuple[str, str], OwnershipRecord] = attrs.field(factory=dict)
    unreadable: dict[tuple[str, str], UnreadRecord] = attrs.field(factory=dict)
    """Keys of ownership records → records of other programs that have replaced them."""
    committed: dict[str, dict[tuple[str, int], str]] = attrs.field(factory=dict)
    """Group → topic partition → offset metadata."""
    readers: dict[str, GroupFacts] = attrs.field(factory=dict)
    """Groups with what they read, by their ids."""
    expansions: AgentExpansions = AgentExpansions()  # noqa: RUF009 - immutable
    """What the journals of agents contain, if there is one."""
    cluster_id: str = "fake-cluster"

    def create(self, name: str, partitions: int, config: Mapping[str, str] | None = None) -> None:
        assert name not in self.topics
        self.topics[name] = LiveTopic(name, uuid4().hex, partitions, 1, dict(config or {}))

    def delete(self, name: str) -> None:
        del self.topics[name]
        del self.written[name], self.purged[name]

    def configure(self, name: str, config: Mapping[str, str]) -> None:
        topic = self.topics[name]
        self.topics[name] = attrs.evolve(topic, config={**topic.config, **config})

    def write(self, name: str, records: int = 1) -> None:
        self.written[name] += records

    def purge(self, name: str) -> None:
        """Delete all records."""
        self.purged[name] = self.written[name]

    def commit(self, group: str, topic: str, texts: Mapping[int, str]) -> None:
        """Commit an offset with each text, of these partitions."""
        self.committed.setdefault(group, {}).update({(topic, at): text for at, text in texts.items()})

    def write_ownership(self, change: OwnershipChange) -> None:
        if OWNERSHIP_TOPIC not in self.topics:
            self.create(OWNERSHIP_TOPIC, 1, {"cleanup.policy": "compact"})
        for key in (*change.deleted, *(record.key for record in change.written)):
            self.ownership.pop(key, None)
            self.unreadable.pop(key, None)
        self.ownership.update({record.key: record for record in change.written})

    def write_unreadable_ownership(self, key: tuple[str, str]) -> None:
        """Write a record that is not in the format of Headwater over the record with this key."""
        self.write_ownership(OwnershipChange((), (key,)))
        self.unreadable[key] = UnreadRecord(
            topic=OWNERSHIP_TOPIC,
            partition=0,
            offset=0,
            last_offset=0,
            reason=UnreadReason.NOT_OURS,
            key=key,
        )

    def ownership_topic(self) -> OwnershipTopic:
        """Return the topic of the ownership records as a user sees it who may not read its settings."""
        return OwnershipTopic(unread=tuple(record for _, record in sorted(self.unreadable.items())))

    @contextmanager
    def member(self, group: str, topic: str) -> Iterator[None]:
        """A member of `group` that reads `topic`, for as long as the context lasts."""
        assert topic in self.topics
        self.groups[group] = LiveGroup(group, "Stable", 1)
        self.readers[group] = GroupFacts(
            id=group, state="Stable", protocol_type="consumer", members=1, subscribed=frozenset({topic})
        )
        yield
        self.groups[group] = LiveGroup(group, "Empty", 0)
        self.readers[group] = GroupFacts(id=group, protocol_type="consumer")

    def reader(self) -> "FakeClusterReader":
        return FakeClusterReader(self)


@attrs.frozen
class ReadSnapshot:
    """A `SnapshotReading` of a snapshot that was read at once."""

    found: ClusterSnapshot

    @property
    def partitions(self) -> Mapping[str, int]:
        return self.found.partitions

    def snapshot(self) -> ClusterSnapshot:
        return self.found


@attrs.frozen
class FakeClusterReader:
    """A `ClusterReader` of a `FakeCluster`."""

    cluster: FakeCluster

    def begin(self, request: SnapshotRequest) -> ReadSnapshot:
        return ReadSnapshot(self.read(request))

    def read(self, request: SnapshotRequest) -> ClusterSnapshot:
        topics = self.cluster.topics
        described = {name for name in topics if _is_wanted(name, request)}
        return ClusterSnapshot(
            cluster_id=self.cluster.cluster_id,
            brokers=1,
            topics={
                name: self._described(topic, request)
                if name in described
                else LiveTopic(name, "", topic.partitions, 0)
                for name, topic in topics.items()
            },
            groups={id_: self.cluster.groups[id_] for id_ in request.groups if id_ in self.cluster.groups},
            described=frozenset(described),
            default_replication_factor=1,
            default_min_insync_replicas=1,
            topic_defaults=BROKER_DEFAULTS if described else {},
            ownership=self.read_ownership().records if request.with_ownership else None,
            ownership_topic=self.cluster.ownership_topic(),
        )

    def topic_ids(self, names: Sequence[str]) -> Mapping[str, str]:
        return {name: self.cluster.topics[name].topic_id for name in names if name in self.cluster.topics}

    def read_ownership(self) -> OwnershipLog:
        records = tuple(record for _, record in sorted(self.cluster.ownership.items()))
        return OwnershipLog(records, self.cluster.ownership_topic().unread)

    def partition_counts(self, names: Sequence[str]) -> Mapping[str, int]:
        return {name: self.cluster.topics[name].partitions for name in names if name in self.cluster.topics}

    def record_counts(self, partitions: Mapping[str, int]) -> Mapping[str, int]:
        written, purged = self.cluster.written, self.cluster.purged
        return {name: written[name] - purged[name] for name in partitions if name in self.cluster.topics}

    def offset_metadata(self, group: str, partitions: Mapping[str, int]) -> Sequence[str]:
        committed = self.cluster.committed.get(group, {})
        return [text for (topic, at), text in committed.items() if text and at < partitions.get(topic, 0)]

    def group_facts(self, offsets_of: frozenset[str] | None) -> GroupsRead:
        committed = self.cluster.committed
        ids = self.cluster.readers.keys() | committed.keys() | self.cluster.groups.keys()
        groups = {}
        for id_ in sorted(ids):
            live = self.cluster.groups.get(id_)
            state = live.state if live else "Empty"
            known = self.cluster.readers.get(id_, GroupFacts(id=id_, state=state))
            topics = frozenset(topic for topic, _ in committed.get(id_, {}))
            is_read = offsets_of is None or id_ in offsets_of
            groups[id_] = attrs.evolve(known, committed=topics if is_read else frozenset())
        return groups, ()

    def agent_expansions(self, journals: Sequence[str]) -> AgentExpansions:
        return attrs.evolve(self.cluster.expansions, read=tuple(journals)) if journals else AgentExpansions()

    def cleanup_policy(self, topic: str) -> str:
        live = self.cluster.topics.get(topic)
        return live.config.get("cleanup.policy", "delete") if live else "compact"

    def _described(self, topic: LiveTopic, request: SnapshotRequest) -> LiveTopic:
        if topic.name in request.sources:
            topic = attrs.evolve(topic, config={})
        recorded = request.recorded.get(topic.name)
        if not recorded or recorded == topic.topic_id:
            return topic
        return attrs.evolve(topic, is_empty=not self.cluster.written[topic.name])


def _is_wanted(name: str, request: SnapshotRequest) -> bool:
    return (
        name in request.names
        or name in request.recorded
        or name.startswith(request.prefixes)
        or any(re.fullmatch(pattern, name) for pattern in request.patterns)
    )
