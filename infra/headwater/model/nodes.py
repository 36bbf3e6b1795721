"""The node topology: the content of `InternalTopologyBuilder` after a build, before counts are decided.

The DSL compiler and the import of a `describe()` text both produce it. Sub-topologies, the `describe()` text,
partition counts and configs are computed from it. Names of internal topics have no application id prefix
here.

`reads`, `behavior`, `writes` and `keeps` say what the runtime does at a node. They are set for documents with
calls, not for imported texts, and are excluded from comparisons.
"""

from collections.abc import Mapping
from enum import Enum

import attrs

from headwater.model.behaviors import Behavior
from headwater.model.formats import SinkSettings, SourceSettings, StoreSettings
from headwater.model.problems import Location, Problem


@attrs.frozen
class SourceNode:
    """A source node with either `topics`, in declared order, or a `pattern`, a Java regular expression."""

    name: str
    topics: tuple[str, ...] = ()
    pattern: str | None = None
    at: Location | None = None
    reads: SourceSettings | None = attrs.field(default=None, eq=False, repr=False)


@attrs.frozen
class ProcessorNode:
    """A processor node; `parents` in declared order, `stores` are the names of the connected stores."""

    name: str
    parents: tuple[str, ...]
    stores: tuple[str, ...] = ()
    at: Location | None = None
    behavior: Behavior | None = attrs.field(default=None, eq=False, repr=False)


@attrs.frozen
class SinkNode:
    """A sink node with a `topic`, or with a `TopicNameExtractor` whose `toString()` is `extractor`."""

    name: str
    parents: tuple[str, ...]
    topic: str | None = None
    extractor: str | None = None
    at: Location | None = None
    writes: SinkSettings | None = attrs.field(default=None, eq=False, repr=False)


Node = SourceNode | ProcessorNode | SinkNode


class TopicKind(Enum):
    """The kind of an internal topic, in the words of documents and reports."""

    REPARTITION = "repartition"
    CHANGELOG = "changelog"
    FK_SUBSCRIPTION = "fk-subscription"
    """A subscription or response topic of a foreign-key join (KIP-213)."""


class ChangelogKind(Enum):
    """The kind of a store as far as it decides the changelog's config (facts 5.2)."""

    KEY_VALUE = "key-value"
    WINDOWED = "windowed"
    WINDOWED_DUPLICATES = "windowed, duplicates retained"
    VERSIONED = "versioned"


@attrs.frozen
class StateStore:
    """A state store. A store that no processor uses has no changelog.

    `base_ms` is the duration in milliseconds from which the changelog's retention (windowed) or compaction
    lag (versioned) is computed (facts 5.3). `changelog_topic` is a user topic that serves as changelog.
    `connections` has one set of processors for each time the store was added: Kafka Streams drops the
    processors of an earlier builder, so each set is a sub-topology of its own and the last one owns the
    changelog. Empty = all processors that name the store are one set.
    """

    name: str
    kind: ChangelogKind
    logged: bool = True
    overrides: Mapping[str, str] = attrs.field(factory=dict)
    base_ms: int | None = None
    changelog_topic: str | None = None
    is_global: bool = False
    connections: tuple[frozenset[str], ...] = ()
    at: Location | None = None
    keeps: StoreSettings | None = attrs.field(default=None, eq=False, repr=False)


@attrs.frozen
class RepartitionTopic:
    """An internal topic between a sink and a source node; `partitions` is set only for an explicit count."""

    name: str
    is_foreign_key: bool = False
    partitions: int | None = None
    at: Location | None = None


@attrs.frozen
class NodeTopology:
    """A topology; `nodes` in declaration order, which decides sub-topology ids and the `describe()` text.

    `copartition_groups` are sets of source node names in the order of registration. They may name nodes that
    do not exist: Kafka Streams drops such names silently, a lint reports them. `problems` were found during
    the build.
    """

    nodes: tuple[Node, ...]
    stores: tuple[StateStore, ...] = ()
    global_nodes: frozenset[str] = frozenset()
    repartition_topics: tuple[RepartitionTopic, ...] = ()
    copartition_groups: tuple[frozenset[str], ...] = ()
    problems: tuple[Problem, ...] = ()
    generated_names: frozenset[str] = frozenset()
    """Topic prefixes and store names with a generated index, which shifts when the topology changes."""
    listing: Mapping[str, tuple[tuple[str, ...], tuple[str, ...]]] = attrs.field(factory=dict)
    """Imported texts only: node → its `-->` and `<--` lists in the order of the text."""
    printed_groups: Mapping[str, int] = attrs.field(factory=dict)
    """Imported texts only: node → the sub-topology that the text lists it in."""
    name: str | None = None
    """The name of a named topology; it follows the application id in names of internal topics."""
