"""A cluster in memory with repeatable topic ids, and with groups."""

from collections.abc import Mapping

import attrs

from headwater.model.cluster import GroupFacts, LiveGroup, LiveTopic
from headwater.model.records import (
    OWNERSHIP_TOPIC,
    RECORD_TOPIC_SETTINGS,
    OwnershipChange,
    OwnershipTopic,
)
from tests.contract.fake_cluster import FakeCluster

_TOPIC_DEFAULTS = {
    "cleanup.policy": "delete",
    "compression.type": "producer",
    "max.message.bytes": "1048588",
}


@attrs.define
class AccidentCluster(FakeCluster):
    """A `FakeCluster` with topic ids that are equal in each run of a test."""

    created: int = 0

    def create(self, name: str, partitions: int, config: Mapping[str, str] | None = None) -> None:
        assert name not in self.topics
        self.created += 1
        self.topics[name] = LiveTopic(name, f"id-{self.created}", partitions, 1, dict(config or {}))

    def write_ownership(self, change: OwnershipChange) -> None:
        if OWNERSHIP_TOPIC not in self.topics:
            self.create(OWNERSHIP_TOPIC, 1, RECORD_TOPIC_SETTINGS)
        super().write_ownership(change)

    def ownership_topic(self) -> OwnershipTopic:
        topic = self.topics.get(OWNERSHIP_TOPIC)
        if topic is None:
            return OwnershipTopic()
        return attrs.evolve(super().ownership_topic(), settings={**_TOPIC_DEFAULTS, **topic.config})

    def replace_settings(self, name: str, config: Mapping[str, str]) -> None:
        self.topics[name] = attrs.evolve(self.topics[name], config=dict(config))

    def set_or_reset(self, name: str, config: Mapping[str, str | None]) -> None:
        """Change settings; None resets one to the default of the brokers."""
        changed = {**self.topics[name].config, **config}
        settings = {key: value for key, value in changed.items() if value is not None}
        self.replace_settings(name, settings)

    def expand(self, name: str, partitions: int) -> None:
        topic = self.topics[name]
        self.topics[name] = attrs.evolve(topic, partitions=max(partitions, topic.partitions))

    def read_as_member(self, group: str, topics: frozenset[str]) -> None:
        self.groups[group] = LiveGroup(group, "Stable", 1)
        self.readers[group] = GroupFacts(
            id=group, state="Stable", protocol_type="consumer", members=1, subscribed=topics
        )

    def stop(self, group: str) -> None:
        """Let all members leave. The committed offsets stay."""
        if group in self.groups:
            self.groups[group] = LiveGroup(group, "Empty", 0)
            self.readers[group] = GroupFacts(id=group, protocol_type="consumer")

    def forget(self, group: str) -> None:
        """Delete a group with its offsets."""
        self.groups.pop(group, None)
        self.readers.pop(group, None)
        self.committed.pop(group, None)

    def users(self, topic: str) -> frozenset[str]:
        """Return the groups with members that read the topic, or with committed offsets of it."""
        subscribed = {id_ for id_, facts in self.readers.items() if topic in facts.subscribed}
        committed = {id_ for id_, offsets in self.committed.items() for name, _ in offsets if name == topic}
        return frozenset(subscribed | committed)
