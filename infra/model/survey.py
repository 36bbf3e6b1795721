"""What a cluster shows of applications that nobody declared: groups, and topics named like internal ones."""

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
    """A group as a survey finds it. Without members nobody knows its assignor and what it subscribes to.

    `protocol_type` is `consumer` for all that read topics, and the name of something else (`connect`) for
    others; `committed` are the topics that it has offsets of.
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
        """Topics that it reads; offsets may be left from earlier, so a subscription goes before them."""
        return self.subscribed or self.committed


@attrs.frozen
class Survey:
    """`topics` are all of the cluster; those named like internal ones are described. `groups` are by id."""

    cluster_id: str
    topics: Mapping[str, LiveTopic]
    groups: Mapping[str, GroupFacts]
