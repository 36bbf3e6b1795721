"""What a cluster shows of applications without a document: consumer groups and internal topics."""

from collections.abc import Mapping
from enum import Enum

import attrs

from infra.model.cluster import LiveTopic


class GroupType(Enum):
    """The protocol that a group speaks. Kafka Streams forms classic and streams groups."""

    CLASSIC = "classic"
    CONSUMER = "consumer"
    STREAMS = "streams"


@attrs.frozen(kw_only=True)
class GroupFacts:
    """A consumer group; the assignor and the subscribed topics are known only while it has members.

    `protocol_type` is `consumer` for groups that read topics, otherwise for example `connect`. `committed`
    are the topics with committed offsets.
    """

    id: str
    type: GroupType = GroupType.CLASSIC
    state: str = "Empty"
    protocol_type: str = ""
    assignor: str = ""
    members: int = 0
    subscribed: frozenset[str] = frozenset()
    committed: frozenset[str] = frozenset()

    @property
    def read(self) -> frozenset[str]:
        """Return the topics that the group reads: the subscription, else the topics with offsets."""
        return self.subscribed or self.committed


@attrs.frozen
class Survey:
    """All topics and groups of a cluster; topics with names of internal topics have configs."""

    cluster_id: str
    topics: Mapping[str, LiveTopic]
    groups: Mapping[str, GroupFacts]
