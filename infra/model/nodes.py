"""The node topology: what `InternalTopologyBuilder` holds after a build, before anything is counted.

Both ways in end here (the DSL compiler and the import of a `describe()` text); sub-topologies, `describe()`
out, partition counts and configs start from it. Topic names of internal topics are UNDECORATED (no
application id prefix).

What a node does when it runs (`reads`, `behavior`, `writes`, `keeps`) is for the runtime; it is known of
documents with calls, never of an imported text, and no comparison of topologies asks for it.
"""

from collections.abc import Mapping
from enum import Enum

import attrs

from infra.model.behaviors import Behavior, SinkSettings, SourceSettings, StoreSettings
from infra.model.problems import Location, Problem


@attrs.frozen
class SourceNode:
    """A source node, of either `topics` (in declared order) or a `pattern` (Java regular expression)."""

    name: str
    topics: tuple[str, ...] = ()
    pattern: str | None = None
    at: Location | None = None
    reads: SourceSettings | None = attrs.field(default=None, eq=False, repr=False)


@attrs.frozen
class ProcessorNode:
    """A processor with its `parents` in declared order and the names of the `stores` connected to it."""

    name: str
    parents: tuple[str, ...]
    stores: tuple[str, ...] = ()
    at: Location | None = None
    behavior: Behavior | None = attrs.field(default=None, eq=False, repr=False)


@attrs.frozen
class SinkNode:
    """A sink to `topic`, or a dynamic one: `extractor` is the text that its extractor prints."""

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
    """How a changelog topic is configured (facts section 5.2)."""

    KEY_VALUE = "key-value"
    WINDOWED = "windowed"
    WINDOWED_DUPLICATES = "windowed, duplicates retained"
    VERSIONED = "versioned"


@attrs.frozen
class StateStore:
    """A store that a processor uses, or that was added and never connected (then it has no changelog).

    `base_ms` is what the changelog's retention (windowed) or compaction lag (versioned) is computed from
    (facts 5.3). `changelog_topic` names a user topic that serves as changelog instead of an internal one.
    `connections` holds a set of processors for each time the store was added, in order: Kafka Streams
    forgets the processors of an earlier builder, so each set forms a sub-topology of its own and the last
    one owns the changelog. Empty = all that name it form one set.
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
    """An internal topic between a sink and a source node. `partitions` is set for an explicit count only."""

    name: str
    is_foreign_key: bool = False
    partitions: int | None = None
    at: Location | None = None


@attrs.frozen
class NodeTopology:
    """`nodes` in declaration order (it decides sub-topology ids and the text of `describe()`).

    `copartition_groups` hold source node names, in the order in which they were registered; names of nodes
    that do not exist are kept: Kafka Streams drops them silently and a lint tells. `problems` are those
    found while building.
    """

    nodes: tuple[Node, ...]
    stores: tuple[StateStore, ...] = ()
    global_nodes: frozenset[str] = frozenset()
    repartition_topics: tuple[RepartitionTopic, ...] = ()
    copartition_groups: tuple[frozenset[str], ...] = ()
    problems: tuple[Problem, ...] = ()
    generated_names: frozenset[str] = frozenset()
    """Topic prefixes and store names that carry a generated index and so shift when the topology changes."""
    listing: Mapping[str, tuple[tuple[str, ...], tuple[str, ...]]] = attrs.field(factory=dict)
    """Imported texts only: node → its `-->` and `<--` lists in the order of the text."""
    printed_groups: Mapping[str, int] = attrs.field(factory=dict)
    """Imported texts only: node → the sub-topology that the text lists it in."""
    name: str | None = None
    """The named topology that this is; its name follows the application id in names of internal topics."""
