"""What a snapshot is to contain, and the interfaces that read it."""

from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Protocol

import attrs

from headwater.model.cluster import ClusterSnapshot, GroupFacts, UnreadEvidence
from headwater.model.expansions import AgentExpansions
from headwater.model.nodes import SourceNode
from headwater.model.operators import GlobalTable, ReadStream, ReadTable
from headwater.model.processor_api import AddGlobalStore, AddReadOnlyStateStore, AddSource
from headwater.model.records import OwnershipLog, SetupRecord
from headwater.model.topology import Application, TopologyDocument
from headwater.model.topology import Protocol as GroupProtocol


@attrs.frozen(kw_only=True)
class SnapshotRequest:
    """Which topics and groups to read in detail; a snapshot always has names and counts of all topics.

    A topic is described (id, replication factor, settings) when its name starts with one of `prefixes`, is
    one of `names`, is recorded, or fully matches one of `patterns` (Python `re`). `recorded` is topic name →
    id recorded: where the live id differs, the reader finds out whether the topic is empty.
    """

    prefixes: tuple[str, ...] = ()
    names: frozenset[str] = frozenset()
    groups: tuple[str, ...] = ()
    streams_groups: frozenset[str] = frozenset()
    """The `groups` that may be groups of the streams protocol (KIP-1071)."""
    with_nodes: bool = False
    """Whether to read the nodes of their topologies, too (KIP-1331)."""
    recorded: Mapping[str, str] = attrs.field(factory=dict)
    patterns: tuple[str, ...] = ()
    sources: frozenset[str] = frozenset()
    """Topics that applications only read: their settings, and permission to read those, are not needed."""
    acl_principals: frozenset[str] = frozenset()
    """The principals whose ACLs to read; empty: no ACLs."""
    with_features: bool = False
    """Whether to read the enabled features of the cluster."""
    with_ownership: bool = False
    """Whether to read the ownership records."""
    with_ids: bool = True
    """Whether to read topic ids, which takes one more request. Recorded topics always have them."""
    purpose: str = ""
    """What the user is for, as `headwater acls --for` names it; empty as for `not_authorized`."""


GroupsRead = tuple[Mapping[str, GroupFacts], Sequence[UnreadEvidence]]
"""Group id → facts, and what could not be read."""


class SnapshotReading(Protocol):
    """A snapshot that is being read; the partition counts are known first."""

    @property
    def partitions(self) -> Mapping[str, int]:
        """Return topic name → partition count of all topics that the user may describe."""
        ...

    def snapshot(self) -> ClusterSnapshot:
        """Return the snapshot; call it once. Raises as `ClusterReader` says."""
        ...


class ClusterReader(Protocol):
    """Reads a cluster.

    All raise `ProblemsError` (ClusterUnreachable, RequestNotAnswered, AuthenticationRefused, NotAuthorized).
    """

    def read(self, request: SnapshotRequest) -> ClusterSnapshot:
        """Return the snapshot, in a number of requests that does not depend on the number of topics."""
        ...

    def begin(self, request: SnapshotRequest) -> SnapshotReading:
        """Send the requests of a snapshot, and return when the partition counts are known."""
        ...

    def topic_ids(self, names: Sequence[str]) -> Mapping[str, str]:
        """Return topic name → id for the `names` that exist."""
        ...

    def read_ownership(self) -> OwnershipLog:
        """Return the ownership records, none before the first is written, and what could not be read."""
        ...

    def partition_counts(self, names: Sequence[str]) -> Mapping[str, int]:
        """Return topic name → partition count for the `names` that exist."""
        ...

    def record_counts(self, partitions: Mapping[str, int]) -> Mapping[str, int]:
        """Return topic name → number of offsets from the first to the end, of all partitions.

        `partitions` is topic name → partition count. Topics whose offsets cannot be read are missing.
        """
        ...

    def offset_metadata(self, group: str, partitions: Mapping[str, int]) -> Sequence[str]:
        """Return the texts that a consumer group has committed with its offsets, without empty ones.

        `partitions` is topic name → partition count.
        """
        ...

    def group_facts(self, offsets_of: frozenset[str] | None) -> GroupsRead:
        """Return the facts of all groups.

        Committed offsets are read only of the groups `offsets_of`; None = of all.
        """
        ...

    def agent_expansions(self, journals: Sequence[str]) -> AgentExpansions:
        """Return the expansions in the `journals` of agents, names of coordination topics.

        Raises nothing: a journal that cannot be read is `unread`.
        """
        ...

    def cleanup_policy(self, topic: str) -> str:
        """Return the effective `cleanup.policy` of a topic, empty if it may not be read."""
        ...


_PREFIX_CONFIG = "__internal.override.topic.prefix__"


def snapshot_request(
    documents: Sequence[TopologyDocument], records: Mapping[str, SetupRecord]
) -> SnapshotRequest:
    """Return the request; `records` is application id → setup record.

    Requests source topics by name: the answer distinguishes a missing topic from a missing permission.
    """
    recorded = {topic.name: topic.topic_id for record in records.values() for topic in record.topics.values()}
    sinks = {sink.topic for document in documents for sink in document.sinks}
    sources = {topic for document in documents for topic in _sources_of(document)}
    applications = [document.application for document in documents]
    prefixes = tuple(sorted({prefix for application in applications for prefix in _prefixes_of(application)}))
    only_read = sources - sinks - recorded.keys()
    return SnapshotRequest(
        prefixes=prefixes,
        names=frozenset(sinks | sources | recorded.keys()),
        groups=tuple(sorted({application.id for application in applications} | records.keys())),
        streams_groups=frozenset(
            {application.id for application in applications if application.protocol is GroupProtocol.STREAMS}
            | (records.keys() - {application.id for application in applications})
        ),
        with_features=any(application.protocol is GroupProtocol.STREAMS for application in applications),
        recorded={name: id_ for name, id_ in sorted(recorded.items()) if id_},
        # The changelog of one application may be the source of another.
        sources=frozenset(topic for topic in only_read if not topic.startswith(prefixes)),
        acl_principals=frozenset(_principals_of(applications, records)),
    )


def _principals_of(applications: Iterable[Application], records: Mapping[str, SetupRecord]) -> Iterator[str]:
    """Yield the principals of the ACLs that documents declare or the stack recorded."""
    for application in applications:
        yield from application.acls.principals if application.acls else ()
    for record in records.values():
        yield from (acl.principal for acl in record.acls)


def _prefixes_of(application: Application) -> Iterable[str]:
    return {f"{application.id}-", f"{application.config.get(_PREFIX_CONFIG) or application.id}-"}


def _sources_of(document: TopologyDocument) -> Iterator[str]:
    """Yield the source topics; internal topics have no prefix in an imported text."""
    for step in document.steps:
        match step.operator:
            case ReadStream(topics=topics) | AddSource(topics=topics):
                yield from topics.names
            case (
                ReadTable(topic=topic)
                | GlobalTable(topic=topic)
                | AddGlobalStore(topic=topic)
                | AddReadOnlyStateStore(topic=topic)
            ):
                yield topic
    if document.observed is not None:
        yield from document.observed.sources
    if document.described is not None or document.exported is not None:
        from headwater.compiler import build_nodes  # noqa: PLC0415 - not needed for documents of calls

        # The text of a described topology does not say which topics are internal; its completion does.
        nodes = build_nodes(document)
        internal = {topic.name for topic in nodes.repartition_topics}
        for node in nodes.nodes:
            if isinstance(node, SourceNode):
                yield from set(node.topics) - internal
