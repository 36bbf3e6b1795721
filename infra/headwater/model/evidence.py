"""What a cluster shows about the owner of a topic: consumer groups, and ownership records of stacks."""

from collections.abc import Mapping
from enum import Enum

import attrs

from headwater.model.ownership import OwnershipRecord


class GroupType(Enum):
    """The protocol that a group speaks. Kafka Streams forms classic and streams groups."""

    CLASSIC = "classic"
    CONSUMER = "consumer"
    STREAMS = "streams"


@attrs.frozen(kw_only=True)
class GroupFacts:
    """A consumer group; the assignor and the subscribed topics are known only while it has members.

    `protocol_type` is `consumer` for groups that read topics, otherwise for example `connect`. `subscribed`
    are the topics that its members subscribe to or are assigned. `committed` are the topics with committed
    offsets.
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

    @property
    def text(self) -> str:
        """The group with its state, as a phrase: `group audit (Stable)`."""
        return f"group {self.id} ({self.state})"


@attrs.frozen(kw_only=True)
class ClusterEvidence:
    """Everything that is read of a cluster only if the owner of a topic is in question.

    `unread` says what could not be read, in phrases: without it, no group can be excluded. `ownership` are
    the ownership records of all stacks. `ownership_policy` is the `cleanup.policy` of their topic, empty if
    it was not read.
    """

    groups: Mapping[str, GroupFacts] = attrs.field(factory=dict)
    ownership: tuple[OwnershipRecord, ...] = ()
    ownership_policy: str = ""
    unread: tuple[str, ...] = ()


@attrs.frozen(kw_only=True)
class EvidenceRequest:
    """The topics whose owner is in question; without any, nothing is read.

    `offsets_of` are the groups whose committed offsets to read; None = all groups, which takes one request
    for each. `with_ownership`: whether to read the ownership records, if the snapshot does not have them.
    `with_ownership_policy`: whether to read the `cleanup.policy` of their topic.
    """

    topics: frozenset[str] = frozenset()
    offsets_of: frozenset[str] | None = frozenset()
    with_ownership: bool = False
    with_ownership_policy: bool = False
