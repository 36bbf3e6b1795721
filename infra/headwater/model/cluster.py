"""The snapshot of a live cluster, read once in batched admin requests, and facts about owners of topics."""

from collections.abc import Iterable, Mapping
from enum import Enum

import attrs

from headwater.model.acls import LiveAcls
from headwater.model.expansions import AgentExpansions
from headwater.model.offset_metadata import MoveMark
from headwater.model.problems import Problem
from headwater.model.records import OwnershipRecord, OwnershipTopic
from headwater.model.streams_groups import StreamsGroup


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


class EvidenceSource(Enum):
    """What shows who owns or uses a topic."""

    GROUPS = "the consumer groups of the cluster"
    GROUP = "one consumer group"
    OWNERSHIP_RECORDS = "the ownership records"
    OWNERSHIP_RECORD = "one ownership record"


class UnreadCause(Enum):
    """Why evidence was not read."""

    NO_PERMISSION = "the user may not read it"
    NO_COORDINATOR = "the brokers that have it are stopped"
    NOT_USABLE = "it is not in the format of Headwater, or not within the limits"
    NOT_REQUESTED = "nothing has requested it"


@attrs.frozen(kw_only=True)
class UnreadEvidence:
    """Evidence that was not read, so that no other user of a topic can be excluded.

    `name` is the id of the group, or the location of the record. `permission` names the permission that is
    missing, as `permission Read on topic orders`: empty for other causes.
    """

    source: EvidenceSource
    cause: UnreadCause
    name: str = ""
    permission: str = ""


@attrs.frozen(kw_only=True)
class ClusterEvidence:
    """Everything that is read of a cluster only if the owner of a topic is in question.

    `ownership` are the ownership records of all stacks. `ownership_policy` is the `cleanup.policy` of their
    topic, empty if it was not read.
    """

    groups: Mapping[str, GroupFacts] = attrs.field(factory=dict)
    ownership: tuple[OwnershipRecord, ...] = ()
    ownership_policy: str = ""
    unread: tuple[UnreadEvidence, ...] = ()


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


@attrs.frozen
class LiveTopic:
    """A topic on the cluster.

    `config` contains only what is set on the topic itself (DYNAMIC_TOPIC_CONFIG), no broker defaults.
    `is_empty` is read only for topics whose id differs from the recorded one; None = not read. `records` is
    read only for changelog topics with fewer partitions than declared processors, and for applications with a
    topic of a wrong partition count; None = not read.
    """

    name: str
    topic_id: str
    partitions: int
    replication_factor: int
    config: Mapping[str, str] = attrs.field(factory=dict)
    is_empty: bool | None = None
    in_sync: int | None = None
    """The replicas in sync of the partition that has the fewest; None = not read."""
    leaderless: int = 0
    """Partitions without a leader."""
    records: int | None = None
    """The number of offsets from the first to the end of each partition: an upper limit of the records."""
    silent: frozenset[int] = frozenset()
    """Ids of brokers that have replicas of the topic and do not answer."""
    racks: int | None = None
    """The racks of the replicas of the partition that is on the fewest; None = not known."""

    def may_have_id(self, recorded: str) -> bool:
        """Return whether it may be the topic with this id; an empty id is not known.

        Deletions compare ids themselves: an unknown id proves nothing.
        """
        return not recorded or not self.topic_id or recorded == self.topic_id


def required_in_sync(min_insync_replicas: int, replicas: int) -> int:
    """Return how many replicas must be in sync for a write with acks=all.

    A topic requires no more than it has, since Kafka 3.7 (`Partition#effectiveMinIsr`).
    """
    return min(min_insync_replicas, replicas)


@attrs.frozen(kw_only=True)
class RegisteredBroker:
    """A broker of the cluster. `is_fenced`: it is registered and stopped, or has not caught up yet."""

    id: int
    address: str = ""
    rack: str = ""
    is_fenced: bool = False


def broker_phrase(ids: Iterable[int]) -> str:
    """Return the brokers with these ids as a phrase: `broker 1`, `brokers 1, 2`."""
    numbers = sorted(ids)
    return f"broker{'' if len(numbers) == 1 else 's'} {', '.join(map(str, numbers))}"


@attrs.frozen
class RegisteredBrokers:
    """The brokers by id. `with_fenced`: fenced brokers are among them, so all others are not registered.

    Before Kafka 4.0, answers do not have fenced brokers (KIP-1073).
    """

    by_id: Mapping[int, RegisteredBroker] = attrs.field(factory=dict)
    with_fenced: bool = False

    @property
    def racks(self) -> frozenset[str]:
        """Return the racks of brokers that run."""
        return frozenset(each.rack for each in self.by_id.values() if each.rack and not each.is_fenced)

    def is_unregistered(self, id_: int) -> bool:
        """Return whether it is known that the cluster has no such broker any more."""
        return self.with_fenced and id_ not in self.by_id


_NO_COORDINATOR = "CoordinatorNotAvailable"


@attrs.frozen
class LiveGroup:
    """A consumer group; `state` in the broker's words: Stable, Empty and so on."""

    id: str
    state: str
    members: int | None = 0
    """None = unknown: unavailable groups, and streams groups with topics that the user may not describe."""
    is_streams: bool = False
    """Whether it is a group of the streams protocol (KIP-1071)."""
    assignor: str = ""
    """The assignor of a classic group with members: `stream` for applications of Kafka Streams."""
    subscribed: frozenset[str] = frozenset()
    """The topics that the members of a classic group subscribe to; empty while they join."""

    @classmethod
    def without_coordinator(cls, id_: str) -> "LiveGroup":
        """Return a group whose coordinator does not answer: it may exist, and may have members."""
        return cls(id_, _NO_COORDINATOR, None)

    @property
    def is_available(self) -> bool:
        """Return whether the group's coordinator has answered."""
        return self.state != _NO_COORDINATOR

    @property
    def is_active(self) -> bool:
        """Return whether the group has members or may have some."""
        return self.members is None or self.members > 0


@attrs.frozen
class ClusterSnapshot:
    """Topics and groups by name.

    `topics` has all topics of the cluster with their partition counts. Configs, replication factors and ids
    are valid only for topics in `described`. `topic_defaults`: topic config key → value where a topic sets
    none.
    """

    cluster_id: str
    brokers: int
    """How many brokers answer. More may be registered: no request of the client library returns those."""
    topics: Mapping[str, LiveTopic] = attrs.field(factory=dict)
    groups: Mapping[str, LiveGroup] = attrs.field(factory=dict)
    described: frozenset[str] = frozenset()
    default_replication_factor: int | None = None
    default_min_insync_replicas: int | None = None
    topic_defaults: Mapping[str, str] = attrs.field(factory=dict)
    group_protocols: frozenset[str] | None = None
    """The group protocols that the brokers have (`classic`, `consumer`, `streams`…); None = not known."""
    features: Mapping[str, int] | None = None
    """Enabled feature → level; None = not known, or not read: only the streams protocol needs one."""
    acls: LiveAcls | None = None
    """None = not read, because no document declares and no stack has any."""
    ownership: tuple[OwnershipRecord, ...] | None = None
    """None = not read, because no stack asks."""
    ownership_topic: OwnershipTopic = OwnershipTopic()  # noqa: RUF009 - immutable
    processors: Mapping[str, int] = attrs.field(factory=dict)
    """Application → the number of processors that is committed with its offsets (KIP-287).

    Only if the changelog topics have another number of partitions.
    """
    moves: Mapping[str, MoveMark] = attrs.field(factory=dict)
    """Application → its expansion, or the move of its state, that is not complete (KIP-287)."""
    undeclared: frozenset[str] = frozenset()
    """The applications that have committed a number of processors, and whose document declares none."""
    resharded: frozenset[str] = frozenset()
    """The applications with a topic of a wrong partition count whose reshard is not complete."""
    unread_reshards: Mapping[str, Problem] = attrs.field(factory=dict)
    """Application with such a topic → why it is not known whether a reshard is complete."""
    unread_processors: Mapping[str, Problem] = attrs.field(factory=dict)
    """Application → why its committed offsets could not be read."""
    evidence: ClusterEvidence | None = None
    """None = not read, because the owner of no topic is in question, or the caller reads none."""
    hosts: tuple[str, ...] = ()
    """The host names that the brokers advertise: host names of managed services show the service."""
    registered: RegisteredBrokers | None = None
    """None = not read, or not answered."""
    expansions: AgentExpansions | None = None
    """None = not read, because no topic has more partitions than its stack has recorded."""
    streams_groups: Mapping[str, StreamsGroup] = attrs.field(factory=dict)
    """The groups of `groups` with the streams protocol that could be described, with their topologies."""

    @property
    def partitions(self) -> Mapping[str, int]:
        """Return topic name → partition count of all topics."""
        return {name: topic.partitions for name, topic in self.topics.items()}


@attrs.frozen
class Survey:
    """All topics and groups of a cluster; topics with names of internal topics have configs."""

    cluster_id: str
    topics: Mapping[str, LiveTopic]
    groups: Mapping[str, GroupFacts]
    streams_groups: Mapping[str, StreamsGroup] = attrs.field(factory=dict)
    """The groups of the streams protocol that the user may describe, with their topologies."""


def may_exist(live: ClusterSnapshot | None, topic: str) -> bool:
    """Return whether the topic exists; also True without a cluster, because then it is not known."""
    return live is None or topic in live.topics
