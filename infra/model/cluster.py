"""What was read from the live cluster, once, in batched admin calls."""

from collections.abc import Mapping

import attrs

from infra.model.acls import LiveAcls


@attrs.frozen
class LiveTopic:
    """A topic on the cluster.

    `config` holds only what was set on the topic (DYNAMIC_TOPIC_CONFIG), never broker defaults. `is_empty`
    None = not asked: it is asked only for topics whose id differs from the recorded one.
    """

    name: str
    topic_id: str
    partitions: int
    replication_factor: int
    config: Mapping[str, str] = attrs.field(factory=dict)
    is_empty: bool | None = None


@attrs.frozen
class LiveGroup:
    """A consumer group, `state` as the broker names it: Stable, Empty and so on."""

    id: str
    state: str
    members: int | None = 0
    """None = not known: the client library cannot describe groups of the streams protocol (KIP-1071)."""

    @property
    def is_active(self) -> bool:
        """Whether it has members, as far as is known."""
        return self.members is None or self.members > 0


@attrs.frozen
class ClusterSnapshot:
    """Topics and groups by name.

    `topics` covers all topics of the cluster (names and counts); configs, replication factor and ids are read
    for the topics that were asked for and are present in `described`.

    `topic_defaults` holds, for topic config keys, the value that applies where a topic sets none.
    """

    cluster_id: str
    brokers: int
    topics: Mapping[str, LiveTopic] = attrs.field(factory=dict)
    groups: Mapping[str, LiveGroup] = attrs.field(factory=dict)
    described: frozenset[str] = frozenset()
    default_replication_factor: int | None = None
    default_min_insync_replicas: int | None = None
    topic_defaults: Mapping[str, str] = attrs.field(factory=dict)
    acls: LiveAcls | None = None
    """None = not asked: nobody declares or holds any."""

    @property
    def partitions(self) -> Mapping[str, int]:
        """Topic name → partition count, of all topics."""
        return {name: topic.partitions for name, topic in self.topics.items()}
