"""The interface to read a cluster, independent of the client."""

from collections.abc import Mapping, Sequence
from typing import Protocol

import attrs

from headwater.model.cluster import ClusterSnapshot
from headwater.model.evidence import GroupFacts
from headwater.model.ownership import OwnershipLog


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
    """Those of `groups` that may be groups of the streams protocol (KIP-1071)."""
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


GroupsRead = tuple[Mapping[str, GroupFacts], Sequence[str]]
"""Group id → facts, and phrases for what the user may not read."""


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

    All raise `ProblemsError` (ClusterUnreachable, AuthenticationRefused, NotAuthorized).
    """

    def read(self, request: SnapshotRequest) -> ClusterSnapshot:
        """Return the snapshot, in a number of requests that does not depend on the number of topics."""
        ...

    def begin(self, request: SnapshotRequest) -> SnapshotReading:
        """Send the requests of a snapshot, and return when the partition counts are known."""
        ...

    def topic_ids(self, names: Sequence[str]) -> Mapping[str, str]:
        """Return topic name → id for those of `names` that exist."""
        ...

    def ownership(self) -> OwnershipLog:
        """Return the ownership records, none before the first is written, and what could not be read."""
        ...

    def partition_counts(self, names: Sequence[str]) -> Mapping[str, int]:
        """Return topic name → partition count for those of `names` that exist."""
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

    def cleanup_policy(self, topic: str) -> str:
        """Return the effective `cleanup.policy` of a topic, empty if it may not be read."""
        ...
