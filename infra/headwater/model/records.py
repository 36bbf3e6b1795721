"""What stacks record: which stack manages which application, and the topics of its last setup."""

from collections.abc import Mapping

import attrs

from headwater.model.acls import Acl
from headwater.model.untrusted import LARGEST_VALUE, UnreadRecord

OWNERSHIP_TOPIC = "headwater-ownership"
"""The topic of the records: one partition, compacted."""
COMPACTION = "cleanup.policy"
"""The setting without which a topic of records loses records."""
RECORD_TOPIC_SETTINGS: Mapping[str, str] = {
    COMPACTION: "compact",
    # Brokers compare the limit with what they store, so they also refuse a small batch that is large when it
    # is decompressed.
    "compression.type": "uncompressed",
    "max.message.bytes": str(LARGEST_VALUE),
}
"""Settings of topics of records that Headwater reads back: no record is lost, or larger than it reads."""
ONLY_ACLS = (
    f"grant Write on {OWNERSHIP_TOPIC} to users of `pulumi up` only, and set `headwater:ownership: acls`: "
    "settings other than `cleanup.policy` are then not checked"
)
"""What to do if the brokers refuse settings of the topic of ownership records."""

_MIN_ISR = "min.insync.replicas"
_REPLICAS = 3


def record_topic_changes(settings: Mapping[str, str], replication_factor: int) -> Mapping[str, str]:
    """Return the settings that a topic of records must get, none if its settings are not known.

    `settings` are all settings of the topic that have an effect. With three replicas or more, a record
    survives the loss of a broker only if two have it.
    """
    if not settings:
        return {}
    is_low = replication_factor >= _REPLICAS and settings.get(_MIN_ISR, "1") == "1"
    expected = {**RECORD_TOPIC_SETTINGS, **({_MIN_ISR: "2"} if is_low else {})}
    return {key: value for key, value in expected.items() if settings.get(key) != value}


def settings_text(settings: Mapping[str, str]) -> str:
    """Return settings as Kafka's tools expect them: `key=value`, separated by commas."""
    return ",".join(f"{key}={value}" for key, value in settings.items())


@attrs.frozen
class StackIdentity:
    """A stack. `id` is random and in the stack's state; it is empty before the first `pulumi up` with one.

    `name` is `organization/project/stack`. Stacks of different backends may have the same name.
    """

    id: str
    name: str
    has_records: bool = attrs.field(default=False, eq=False)
    """Whether the state shows that an earlier run has written ownership records."""

    def has_same_name(self, other: "StackIdentity") -> bool:
        """Return whether project and stack are the same; the organization may be unknown."""
        return self.name.split("/")[-2:] == other.name.split("/")[-2:]


@attrs.frozen(kw_only=True)
class OwnershipRecord:
    """What a stack manages of one application; `topics` is topic name → id (empty: not read yet).

    `is_finished`: the run that claimed the application has finished. `is_retired`: the topics are about to be
    deleted, so the record is valid as long as one of them exists. `reads` are the topics of others that the
    application reads. `retired_topics` are the topics of `topics` that the topology no longer has and
    that a document has retired: their deletion is prepared.
    """

    application_id: str
    stack: StackIdentity
    topics: Mapping[str, str] = attrs.field(factory=dict)
    is_finished: bool = True
    is_retired: bool = False
    reads: frozenset[str] = frozenset()
    retired_topics: frozenset[str] = frozenset()

    @property
    def key(self) -> tuple[str, str]:
        """Return what identifies the record: a newer record with the same key replaces it."""
        return self.stack.id, self.application_id


@attrs.frozen
class OwnershipLog:
    """What the topic of the records contains: the latest record of each key, and what is not used.

    `more_unread` is the number of unreadable records beyond those in `unread`.
    """

    records: tuple[OwnershipRecord, ...] = ()
    unread: tuple[UnreadRecord, ...] = ()
    more_unread: int = 0


@attrs.frozen
class OwnershipTopic:
    """The topic of the records as it is: `settings` are all settings that have an effect.

    `settings` empty: the topic does not exist, or the user may not read its settings.
    """

    settings: Mapping[str, str] = attrs.field(factory=dict)
    replication_factor: int = 0
    unread: tuple[UnreadRecord, ...] = ()
    more_unread: int = 0

    @property
    def changes(self) -> Mapping[str, str]:
        """Return the settings that the topic must get."""
        return record_topic_changes(self.settings, self.replication_factor)


@attrs.frozen
class OwnershipChange:
    """Records to write, and the keys of records to delete."""

    written: tuple[OwnershipRecord, ...] = ()
    deleted: tuple[tuple[str, str], ...] = ()

    def __bool__(self) -> bool:
        return bool(self.written or self.deleted)


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
    """Generated name → digest of its user topics upstream (`origin_digests`); may be incomplete."""
    cluster_id: str = ""
    """The cluster on which the application was set up; empty = unknown."""
    retired: bool = False
    """The first of two steps to deletion is done: without the document, the internal topics are deleted."""
    unfinished: bool = False
    """The first run was interrupted: existing topics are its own, missing ones are not created yet."""
    kafka_streams: str = attrs.field(default="", eq=False)
    """The version of Kafka Streams at the time of the setup; empty = unknown. It alone is no other record."""
    initial: Mapping[str, int] = attrs.field(factory=dict)
    """Source topic → initial number of processors of the stateful sub-topologies that read it (KIP-287).

    Empty = the document declares no number of processors. Ids of sub-topologies are no keys: they shift
    between versions of a topology. A number never changes once it is recorded.
    """
    acls: frozenset[Acl] = frozenset()
    """The ACLs of the application in the stack."""
    settings: Mapping[str, str] = attrs.field(factory=dict, eq=False)
    """The settings of the document at the time of the setup; empty = unknown.

    What differs from them is a change of its own (`ApplicationPlan.settings`).
    """
