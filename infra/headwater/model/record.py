"""The setup record of the last `pulumi up`: it distinguishes a first start from data loss (KIP-698)."""

from collections.abc import Mapping

import attrs

from headwater.model.acls import Acl


@attrs.frozen
class RecordedTopic:
    """A topic that was set up, with its id on the cluster and its partition count at that time.

    `topic_id` is empty in a plan for a topic that the run creates, because it is read afterwards, and in the
    record of a run that was interrupted before it could read the id. Such a topic counts as owned by the
    application, and its absence is not treated as data loss.
    """

    name: str
    topic_id: str
    partitions: int
    is_sink: bool = False
    """A managed sink topic: other applications may read it, so it is never deleted."""
    is_retired: bool = False
    """Its deletion is prepared: it has the id of that time, and its resource does not delete it by name."""


@attrs.frozen
class SetupRecord:
    """The setup record of one application.

    `initial_processors` is the initial number of processors of the widest sub-topology (KIP-287). Once known
    it never changes; 0 = not known yet.
    """

    application_id: str
    topics: Mapping[str, RecordedTopic]
    initial_processors: int = 0
    generated: frozenset[str] = frozenset()
    """Names that contained a generated index at the time of the setup, to detect renumbering."""
    origins: Mapping[str, str] = attrs.field(factory=dict)
    """Generated name → digest of the user topics upstream (`renumbering.origins`); may be incomplete."""
    cluster_id: str = ""
    """The cluster on which the application was set up; empty = unknown."""
    retired: bool = False
    """The first of two steps to deletion is done: without the document, the internal topics are deleted."""
    unfinished: bool = False
    """The first run was interrupted: existing topics are its own, missing ones are not created yet."""
    kafka_streams: str = attrs.field(default="", eq=False)
    """The version of Kafka Streams at the time of the setup; empty = unknown. It alone is no change."""
    initial: Mapping[str, int] = attrs.field(factory=dict)
    """Source topic → initial number of processors of the stateful sub-topologies that read it (KIP-287).

    Empty = the document declares no number of processors. Ids of sub-topologies are no keys: they shift
    between versions of a topology. A number never changes once it is recorded.
    """
    acls: frozenset[Acl] = frozenset()
    """The ACLs of the application in the stack."""
