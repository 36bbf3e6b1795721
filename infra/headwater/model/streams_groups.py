"""Groups of the streams protocol (KIP-1071) as their coordinator describes them, with their topology."""

from collections.abc import Iterator, Mapping
from enum import IntEnum

import attrs


class DescriptionStatus(IntEnum):
    """Whether the brokers have the nodes of the topology (KIP-1331), in the numbers of the protocol."""

    NOT_REQUESTED = 0
    """Also the status of brokers before Kafka 4.4, which have no nodes."""
    NOT_STORED = 1
    ERROR = 2
    AVAILABLE = 3


class NodeType(IntEnum):
    """The type of a node, in the numbers of the protocol."""

    SOURCE = 1
    PROCESSOR = 2
    SINK = 3


@attrs.frozen(kw_only=True)
class PushedNode:
    """A node of a topology that a client has sent to the brokers.

    `topics` are those of a source, empty for a pattern. `topic` is that of a sink, None if it is decided for
    each record. Internal topics have their full names.
    """

    name: str
    type: NodeType
    topics: tuple[str, ...] = ()
    topic: str | None = None
    stores: tuple[str, ...] = ()
    successors: tuple[str, ...] = ()


@attrs.frozen
class PushedTopology:
    """The nodes of a topology: sub-topology → nodes, and source and processor of each global store."""

    subtopologies: Mapping[str, tuple[PushedNode, ...]]
    global_stores: tuple[tuple[PushedNode, PushedNode], ...] = ()


@attrs.frozen(kw_only=True)
class GroupTopic:
    """An internal topic that the application requires: full name and settings.

    `partitions` is the count that the coordinator has decided; without members, the explicit one, or 0.
    """

    name: str
    partitions: int = 0
    replication_factor: int = 0
    config: Mapping[str, str] = attrs.field(factory=dict)


@attrs.frozen(kw_only=True)
class GroupSubtopology:
    """A sub-topology that the coordinator assigns tasks of; global stores have none.

    `sources` and `repartition_sinks` are full topic names, sorted.
    """

    id: str
    sources: tuple[str, ...] = ()
    repartition_sinks: tuple[str, ...] = ()
    repartition_sources: tuple[GroupTopic, ...] = ()
    changelogs: tuple[GroupTopic, ...] = ()


@attrs.frozen(kw_only=True)
class StreamsMember:
    """A client of the group: the epoch of its topology, and its tasks (sub-topology → partitions)."""

    id: str
    client_id: str = ""
    host: str = ""
    process_id: str = ""
    topology_epoch: int = 0
    is_classic: bool = False
    """Whether it still speaks the classic protocol, while the group is migrated."""
    active: Mapping[str, tuple[int, ...]] = attrs.field(factory=dict)
    standby: Mapping[str, tuple[int, ...]] = attrs.field(factory=dict)
    warm_up: Mapping[str, tuple[int, ...]] = attrs.field(factory=dict)


@attrs.frozen(kw_only=True)
class StreamsGroup:
    """A group of the streams protocol.

    `state` in the broker's words. `topology_epoch` None = the group has no topology yet, and no
    `subtopologies`. `nodes` are what a client has sent to the brokers, None unless `status` is AVAILABLE.
    """

    id: str
    state: str
    epoch: int = 0
    assignment_epoch: int = 0
    topology_epoch: int | None = None
    subtopologies: tuple[GroupSubtopology, ...] = ()
    members: tuple[StreamsMember, ...] = ()
    status: DescriptionStatus = DescriptionStatus.NOT_REQUESTED
    nodes: PushedTopology | None = None
    assignor: str = ""

    @property
    def internal_topics(self) -> frozenset[str]:
        """Return the full names of all internal topics of the topology."""
        return frozenset(self._internal_topics())

    def _internal_topics(self) -> Iterator[str]:
        for part in self.subtopologies:
            yield from part.repartition_sinks
            yield from (topic.name for topic in part.repartition_sources)
            yield from (topic.name for topic in part.changelogs if topic.name not in part.sources)

    @property
    def sources(self) -> frozenset[str]:
        """Return the topics that the application reads, without its own internal topics and global ones."""
        return frozenset(topic for part in self.subtopologies for topic in part.sources)

    @property
    def read(self) -> frozenset[str]:
        """Return all topics that tasks read: sources and repartition topics."""
        repartitions = (topic.name for part in self.subtopologies for topic in part.repartition_sources)
        return self.sources | frozenset(repartitions)

    @property
    def with_other_topology(self) -> tuple[StreamsMember, ...]:
        """Return the members whose topology has another epoch than that of the group."""
        return tuple(member for member in self.members if member.topology_epoch != self.topology_epoch)
