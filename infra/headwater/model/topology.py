"""A validated topology document: one application and its topology, or what was observed of it."""

from collections.abc import Iterator, Mapping
from enum import Enum, StrEnum

import attrs

from headwater.model.acls import AclDeclaration
from headwater.model.cluster_profiles import ClusterProfile
from headwater.model.nodes import NodeTopology, TopicKind
from headwater.model.operators import Step
from headwater.model.problems import Location
from headwater.model.versions import DEFAULT_VERSION, KafkaStreamsVersion


class Unknown(StrEnum):
    """What the cluster does not show about an application; reported until the document answers it."""

    SUBTOPOLOGIES = "subtopologies"
    """Which sub-topology reads, writes or owns a topic, so which count its partition count follows."""
    SOURCES = "sources"
    """Which topics are read: the group has neither members nor offsets."""
    PROTOCOL = "protocol"
    """Classic or streams: the consumer group does not exist."""


@attrs.frozen(kw_only=True)
class ObservedTopic:
    """An existing internal topic; `name` without the application id prefix.

    `config` has all settings of the topic; None = the settings that Kafka Streams sets for the kind.
    `replication_factor` -1 = the broker's default.
    """

    name: str
    kind: TopicKind
    partitions: int
    config: Mapping[str, str] | None = None
    replication_factor: int = -1
    at: Location | None = None


@attrs.frozen
class ObservedTopology:
    """The internal topics, and the source topics with their partition counts at the time of observation.

    `unknown` maps each open question to its location in the document.
    """

    topics: tuple[ObservedTopic, ...]
    at: Location
    sources: Mapping[str, int] = attrs.field(factory=dict)
    unknown: Mapping[Unknown, Location] = attrs.field(factory=dict)
    locations: Mapping[str, Location] = attrs.field(factory=dict)
    """Source topic → its location in the document."""


class Protocol(StrEnum):
    """The group protocol: the group leader's assignor or the broker (KIP-1071) decides partition counts."""

    CLASSIC = "classic"
    STREAMS = "streams"


class Lifecycle(Enum):
    """RELEASED: the topics stay, the setup record is removed. RETIRED: the first of two steps to deletion."""

    ACTIVE = "active"
    RELEASED = "released"
    RETIRED = "retired"


@attrs.frozen
class Sink:
    """A managed sink topic; `partitions` None = as many as the sub-topology that writes it has tasks."""

    topic: str
    partitions: int | None
    config: Mapping[str, str] = attrs.field(factory=dict)
    replication_factor: int | None = None


@attrs.frozen
class Leftovers:
    """Topics that earlier topologies of the application left behind.

    `retire` is the first of two steps to deletion, `delete` the second. Topics in `keep` stay and are not
    managed.
    """

    retire: tuple[str, ...] = ()
    delete: tuple[str, ...] = ()
    keep: tuple[str, ...] = ()
    at: Location | None = None

    @property
    def names(self) -> frozenset[str]:
        return frozenset((*self.retire, *self.delete, *self.keep))


@attrs.frozen
class StackSwitch:
    """Where a stack sets an option of the setup, instead of the document."""

    label: str
    """The key, as problems name it."""
    at: Location
    removal: str
    """How to remove it, as an instruction."""


@attrs.frozen
class Setup:
    """What a setup of the application may do (KIP-698 `InitParameters`, adoption, re-initialization)."""

    if_incomplete: bool = False
    """`setupInternalTopicsIfIncomplete`: create the missing topics of an incomplete set."""
    adopt: bool = False
    """Adopt internal topics that Headwater did not set up (required only with setup mode `manual`)."""
    reinitialize: bool = False
    """Re-create lost internal topics without their data."""
    timeout_ms: int = 60_000
    """The timeout of planning in milliseconds."""
    take_over: bool = False
    """Take over the application and its topics from another stack that records them."""
    allow_unsafe_expansion: bool = False
    """Accept that keys move to other partitions when a stateful application without a static partitioner is
    expanded (KIP-878)."""
    adopt_topics: tuple[str, ...] = ()
    """Topics to adopt although there is no evidence that they belong to the application."""
    allow_id_overlap: bool = False
    """Accept that the id begins with the id of another application and a hyphen, or the reverse."""
    in_stack: Mapping[str, StackSwitch] = attrs.field(factory=dict, eq=False)
    """Option (as documents name it) → the stack's switch that sets it. The others are in the document."""


@attrs.frozen
class StoreDetail:
    """The properties of a store that `describe()` does not print."""

    kind: str | None = "timestampedKeyValue"
    """None: the kind that names and structure of the text show, else `timestampedKeyValue`."""
    retention_ms: int | None = None
    retain_duplicates: bool = False
    logging: bool = True
    overrides: Mapping[str, str] = attrs.field(factory=dict)
    source_topic: str | None = None
    """The topic that serves as changelog (`reuse.ktable.source.topics`)."""
    has_own_changelog: bool = False
    """Whether a store that looks like a source table's has a changelog nevertheless."""


class CreatedBy(StrEnum):
    """The call that created a repartition topic with a user's name."""

    GROUPING = "groupBy"
    """`groupBy` or `groupByKey` with a name: the sources above the topic are co-partitioned."""
    REPARTITION = "repartition"
    """`repartition` with a name: the topic itself is co-partitioned."""


@attrs.frozen
class UnknownDetails:
    """Details of a described application that neither its text nor its document contains.

    `stores`: store → names of its details, as in a document. `repartitions`: topics whose explicit partition
    count is not known. `created_by`: topics of which it is not known which call created them. `application`:
    what is not known of the application itself, such as `protocol`.
    """

    stores: Mapping[str, tuple[str, ...]] = attrs.field(factory=dict)
    repartitions: tuple[str, ...] = ()
    created_by: tuple[str, ...] = ()
    application: tuple[str, ...] = ()

    def __bool__(self) -> bool:
        return bool(self.stores or self.repartitions or self.created_by or self.application)


@attrs.frozen
class DescribedTopology:
    """The `nodes` of a `Topology#describe()` text, with the details that such a text does not contain."""

    nodes: NodeTopology
    at: Location
    repartition_partitions: Mapping[str, int] = attrs.field(factory=dict)
    """Repartition topic without the application id prefix → explicit count."""
    stores: Mapping[str, StoreDetail] = attrs.field(factory=dict)
    copartitioned: tuple[tuple[str, ...], ...] = ()
    """Groups of topic names, without the prefix, in addition to those that follow from the text."""
    created_by: Mapping[str, CreatedBy] = attrs.field(factory=dict)
    """Repartition topic without the prefix → the call that created it, where the text does not show it."""
    unknown: UnknownDetails = UnknownDetails()


@attrs.frozen
class ExportedTopology:
    """The complete topology that the code of an application builds; `nodes` has sub-topologies and stores."""

    nodes: NodeTopology
    at: Location
    partitioners: Mapping[str, str] = attrs.field(factory=dict)
    """Sink node → the class that chooses the partition of each record instead of the producer."""


@attrs.frozen
class Application:
    """An application; `config` has Kafka Streams' config keys with the values of a properties file."""

    id: str
    at: Location
    protocol: Protocol = Protocol.CLASSIC
    config: Mapping[str, str] = attrs.field(factory=dict)
    lifecycle: Lifecycle = Lifecycle.ACTIVE
    setup: Setup = Setup()
    renamed_from: str | None = None
    processors: int | None = None
    """The number of processors of each stateful sub-topology (KIP-287); None = one for each partition."""
    initial_processors: int | None = None
    """The initial number of processors, or one that it was doubled to, where a running application knows it.

    It is never declared. None = it is in the setup record, or follows from the inputs.
    """
    acls: AclDeclaration | None = None
    """The declared ACLs with the principal; None = the ACLs are managed elsewhere."""
    leftovers: Leftovers = Leftovers()
    """What happens to topics that earlier topologies left behind."""
    kafka_streams: KafkaStreamsVersion = DEFAULT_VERSION
    """The version of Kafka Streams that the application runs."""
    names_version: bool = False
    """Whether the document names the version; otherwise the setup record has it, or it is the default."""
    config_locations: Mapping[str, Location] = attrs.field(factory=dict, repr=False, eq=False)
    """The location of each config in the document, if it is known."""
    absent_topic_configs: frozenset[str] = frozenset()
    """Settings that internal topics do not get although Kafka Streams sends them (`topic.NAME: null`)."""
    cluster_profile: ClusterProfile | None = None
    """The kind of cluster, if the document declares it or the cluster shows it; None = Apache Kafka."""
    is_profile_recognized: bool = False
    """Whether the cluster shows the profile and the document does not declare it."""

    def locate_config(self, key: str) -> Location:
        """Return the location of a config, or of the application if the document has no such config."""
        return self.config_locations.get(key, self.at)


class DocumentForm(Enum):
    """Where a document has its topology from: this decides where a user declares a detail of it."""

    CALLS = "topology"
    DESCRIBED = "describe"
    EXPORTED = "exported"
    OBSERVED = "observed"


@attrs.frozen
class TopologyDocument:
    """One application: `steps` (calls), a `described` text, `exported` nodes or `observed` topics."""

    application: Application
    steps: tuple[Step, ...] = ()
    described: DescribedTopology | None = None
    observed: ObservedTopology | None = None
    sinks: tuple[Sink, ...] = ()
    exported: ExportedTopology | None = None

    @property
    def form(self) -> "DocumentForm":
        """Return where the document has its topology from."""
        if self.described is not None:
            return DocumentForm.DESCRIBED
        if self.exported is not None:
            return DocumentForm.EXPORTED
        return DocumentForm.OBSERVED if self.observed is not None else DocumentForm.CALLS

    @property
    def has_calls(self) -> bool:
        """Return whether the topology is declared by its calls, so that it can be built for any version."""
        return self.described is None and self.observed is None and self.exported is None


def name_beginnings(name: str) -> Iterator[str]:
    """Yield each part of a topic's name that may be an application id: it ends before a hyphen."""
    return (name[:index] for index, character in enumerate(name) if character == "-" and index)
