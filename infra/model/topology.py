"""A topology document, checked and typed: one application and what its topology is made of."""

from collections.abc import Mapping
from enum import Enum, StrEnum

import attrs

from infra.model.acls import AclDeclaration
from infra.model.nodes import NodeTopology
from infra.model.observed import ObservedTopology
from infra.model.operators import Operator
from infra.model.problems import Location


class Protocol(StrEnum):
    """Who decides the counts: the group leader's assignor, or the broker (KIP-1071)."""

    CLASSIC = "classic"
    STREAMS = "streams"


class Lifecycle(Enum):
    """RELEASED: its topics stay, the record is dropped. RETIRED: the first of two steps to deletion."""

    ACTIVE = "active"
    RELEASED = "released"
    RETIRED = "retired"


@attrs.frozen
class Step:
    """One call: `operator` on the handle `input`, the result named `alias`.

    Without `input` it goes on from the preceding step's result.
    """

    operator: Operator
    at: Location
    input: str | None = None
    alias: str | None = None


@attrs.frozen
class Sink:
    """A sink topic declared `managed`: `partitions` None = follow the sub-topology that writes it."""

    topic: str
    partitions: int | None
    config: Mapping[str, str] = attrs.field(factory=dict)
    replication_factor: int | None = None


@attrs.frozen
class Setup:
    """How the application may be set up (KIP-698 `InitParameters`, adoption, re-initialization)."""

    if_incomplete: bool = False
    """`setupInternalTopicsIfIncomplete`: create the missing ones of an incomplete set."""
    adopt: bool = False
    """Take over internal topics that Headwater did not set up (only `manual` needs to be told)."""
    reinitialize: bool = False
    """Create lost internal topics anew, accepting that their data is gone."""
    timeout_ms: int = 60_000
    """Milliseconds that planning may take."""
    allow_unsafe_expansion: bool = False
    """Acknowledges that keys move when a stateful, not statically partitioned application grows (KIP-878)."""


@attrs.frozen
class StoreDetail:
    """What `describe()` does not print about a store."""

    kind: str = "timestampedKeyValue"
    retention_ms: int | None = None
    retain_duplicates: bool = False
    logging: bool = True
    overrides: Mapping[str, str] = attrs.field(factory=dict)
    source_topic: str | None = None
    """The topic that serves as changelog (`reuse.ktable.source.topics`)."""


@attrs.frozen
class DescribedTopology:
    """What a `Topology#describe()` text says (`nodes`), with what such a text lacks."""

    nodes: NodeTopology
    at: Location
    repartition_partitions: Mapping[str, int] = attrs.field(factory=dict)
    """Undecorated repartition topic → explicit count."""
    stores: Mapping[str, StoreDetail] = attrs.field(factory=dict)
    copartitioned: tuple[tuple[str, ...], ...] = ()
    """Groups of undecorated topic names beyond those that the text implies."""


@attrs.frozen
class Application:
    """`config` holds Kafka Streams' own keys with values as they would stand in a properties file."""

    id: str
    at: Location
    protocol: Protocol = Protocol.CLASSIC
    config: Mapping[str, str] = attrs.field(factory=dict)
    lifecycle: Lifecycle = Lifecycle.ACTIVE
    setup: Setup = Setup()
    renamed_from: str | None = None
    acls: AclDeclaration | None = None
    """Whom it runs as; None = its rights are somebody else's business."""


@attrs.frozen
class TopologyDocument:
    """One application: its `steps`, calls in order, its `described` text or its `observed` topics."""

    application: Application
    steps: tuple[Step, ...] = ()
    described: DescribedTopology | None = None
    observed: ObservedTopology | None = None
    sinks: tuple[Sink, ...] = ()
