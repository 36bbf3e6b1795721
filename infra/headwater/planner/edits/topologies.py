"""The compiled topologies of one side of an edit, with their nodes, stores and formats.

The formats of records in internal topics decide which of them a store or an operator can read afterwards. A
changelog has the bytes that the store's `StateSerdes` write, in the layout of its kind. Records have fields
of their own for timestamps and headers, so these do not change the layout (`RecordConverters`, KIP-258,
KIP-889, KIP-1271).
"""

from collections.abc import Iterable, Mapping, Sequence
from functools import cached_property

import attrs

from headwater.compiler import build_nodes, compile_documents
from headwater.compiler.streams_config import StreamsConfig
from headwater.compiler.topic_groups import Naming
from headwater.model.behaviors import (
    DEFAULT_FORMAT,
    Format,
    RecordFormat,
    SourceSettings,
    StoreSettings,
    StreamAggregate,
)
from headwater.model.compiled import CompiledApplication, InternalTopic, TopicKind
from headwater.model.nodes import (
    ChangelogKind,
    Node,
    NodeTopology,
    ProcessorNode,
    SinkNode,
    SourceNode,
    StateStore,
)
from headwater.model.problems import OFFLINE, Caller
from headwater.model.topology import Application, TopologyDocument
from headwater.planner.edits.graph import Graph
from headwater.planner.edits.local_state import closing_stores, local_files, windows_of

_LAYOUTS: Mapping[str, str] = {
    "keyValue": "key-value",
    "timestampedKeyValue": "key-value",
    "versionedKeyValue": "key-value",
    "window": "window",
    "timestampedWindow": "window",
    "session": "session",
    "list": "records of an outer join",
    "suppress": "suppress buffer",
    "subscription": "foreign-key subscriptions",
    "joinBuffer": "buffer of a join",
}
_KINDS: Mapping[ChangelogKind, str] = {
    ChangelogKind.KEY_VALUE: "key-value",
    ChangelogKind.VERSIONED: "key-value",
    ChangelogKind.WINDOWED: "window",
    ChangelogKind.WINDOWED_DUPLICATES: "window",
}


@attrs.frozen
class Layout:
    """The layout of a topic's records; `key`, `value` and `right` are serdes, None = not known.

    `kind` of the store, length of its windows in milliseconds, `windows` of its aggregation and `files` on
    local disks do not change the bytes of the changelog; `files` is None if the store has no files.
    """

    form: str
    key: str | None = None
    value: str | None = None
    right: str | None = None
    kind: str = attrs.field(default="", eq=False)
    window_ms: int | None = attrs.field(default=None, eq=False)
    files: str | None = attrs.field(default=None, eq=False)
    windows: str = attrs.field(default="", eq=False)

    @property
    def is_known(self) -> bool:
        """Return whether the serdes are known."""
        return self.key is not None

    def difference(self, other: "Layout") -> str:
        """Return why records of this layout cannot be read with `other`; empty if they can."""
        if self.form != other.form:
            return f"its records have the format of {self.form}, not of {other.form}"
        for part in ("key", "value", "right"):
            before, after = getattr(self, part), getattr(other, part)
            if before != after and before is not None and after is not None:
                return f"its {'values' if part == 'right' else f'{part}s'} are {before}, not {after}"
        return ""


def store_layout(
    store: StateStore, config: Mapping[str, str], closing: StreamAggregate | None = None
) -> Layout:
    """Return the layout of a store's changelog; `config` has the application's default serdes.

    `closing` is the aggregation of the store, if it emits windows when they close.
    """
    keeps = store.keeps
    files = local_files(store, closing, config)
    if keeps is None:
        return Layout(_KINDS[store.kind], kind=store.kind.value, files=files)
    return Layout(
        _LAYOUTS[keeps.kind],
        serde_name(keeps.format.key, config, "key"),
        _value_serde(keeps, config),
        serde_name(keeps.right.value, config, "value") if keeps.right is not None else None,
        kind=keeps.kind,
        window_ms=keeps.window_size_ms,
        files=files,
    )


def _value_serde(keeps: StoreSettings, config: Mapping[str, str]) -> str:
    # The value of a subscription store is the left table's key.
    of = "key" if keeps.kind == "subscription" else "value"
    return serde_name(keeps.format.value, config, of)


def repartition_layouts(nodes: NodeTopology, config: Mapping[str, str]) -> Mapping[str, Layout]:
    """Return repartition topic, without prefix → the layout in which its source node reads it."""
    internal = {topic.name for topic in nodes.repartition_topics}
    return {
        topic: _source_layout(node.reads, config)
        for node in nodes.nodes
        if isinstance(node, SourceNode)
        for topic in node.topics
        if topic in internal
    }


def _source_layout(reads: SourceSettings | None, config: Mapping[str, str]) -> Layout:
    if reads is None:
        return Layout("records")
    form = "old and new values" if reads.carries_changes else reads.foreign_key or "records"
    of_value = "key" if reads.foreign_key == "subscription" else "value"
    return Layout(form, *_serdes_of(reads.format, config, of_value))


def _serdes_of(record: RecordFormat, config: Mapping[str, str], of_value: str) -> tuple[str, str]:
    return serde_name(record.key, config, "key"), serde_name(record.value, config, of_value)


def serde_name(format_: Format | None, config: Mapping[str, str], part: str) -> str:
    """Return the name of a serde; a default one has the settings that decide what it writes."""
    default = _default_serde(config, part)
    if format_ is None:
        return default
    name = default if format_.name == DEFAULT_FORMAT else format_.name
    return name if format_.window is None else f"{format_.window}-windowed {name}"


def _default_serde(config: Mapping[str, str], part: str) -> str:
    name = config.get(f"default.{part}.serde", "the default serde")
    kind = name.rpartition(".")[2].rpartition("$")[2]
    keys = {
        "ListSerde": (f"default.list.{part}.serde.inner", f"default.list.{part}.serde.type"),
        "TimeWindowedSerde": ("windowed.inner.class.serde", "window.size.ms"),
        "SessionWindowedSerde": ("windowed.inner.class.serde",),
    }.get(kind, ())
    settings = [f"{key}={config[key]}" for key in keys if key in config]
    return f"{name} ({', '.join(settings)})" if settings else name


@attrs.frozen
class Topology:
    """One application of one side."""

    document: TopologyDocument
    compiled: CompiledApplication
    nodes: NodeTopology

    @property
    def application(self) -> Application:
        return self.document.application

    @property
    def id(self) -> str:
        return self.document.application.id

    @cached_property
    def config(self) -> StreamsConfig:
        return StreamsConfig.of(self.application)

    @cached_property
    def graph(self) -> Graph:
        return Graph(self.nodes)

    @cached_property
    def _naming(self) -> Naming:
        return Naming.of(self.nodes, self.config.topic_prefix or self.id)

    @cached_property
    def topics(self) -> Mapping[str, InternalTopic]:
        """Full name → internal topic."""
        return {topic.name: topic for topic in self.compiled.internal_topics}

    @cached_property
    def changelogs(self) -> Mapping[str, InternalTopic]:
        """Store → its own changelog topic."""
        return {topic.node: topic for topic in self.topics.values() if topic.kind is TopicKind.CHANGELOG}

    @cached_property
    def stores(self) -> Mapping[str, StateStore]:
        """Name → store that is restored from a topic, except global ones."""
        return {
            store.name: store
            for store in self.nodes.stores
            if not store.is_global and (store.name in self.changelogs or self._is_source_changelog(store))
        }

    def _is_source_changelog(self, store: StateStore) -> bool:
        if store.changelog_topic is None:
            return False
        return any(store.name in part.stores for part in self.compiled.subtopologies)

    @cached_property
    def unlogged(self) -> frozenset[str]:
        """The stores that only local disks or memory have."""
        return frozenset(store.name for store in self.nodes.stores if not store.logged)

    @cached_property
    def repartitions(self) -> Mapping[str, InternalTopic]:
        """Name without the application's prefix → repartition, subscription or response topic."""
        names = {self._naming.topic(topic.name): topic.name for topic in self.nodes.repartition_topics}
        return {names[name]: topic for name, topic in self.topics.items() if name in names}

    @cached_property
    def store_layouts(self) -> Mapping[str, Layout]:
        closing, windows = closing_stores(self.nodes), windows_of(self.nodes)
        config = self.application.config
        return {
            name: attrs.evolve(store_layout(store, config, closing.get(name)), windows=windows.get(name, ""))
            for name, store in self.stores.items()
        }

    @cached_property
    def repartition_layouts(self) -> Mapping[str, Layout]:
        return repartition_layouts(self.nodes, self.application.config)

    def short(self, topic: str) -> str:
        """Return the name of an internal topic without the prefix of the application."""
        return topic.removeprefix(f"{self._naming.prefix}-") if topic in self.topics else topic


def as_described(topology: Topology) -> Topology:
    """Return a topology of calls with what a text of `Topology#describe()` shows of it.

    If the other side is a text, what only one side shows is no difference.
    """
    nodes = attrs.evolve(
        topology.nodes,
        nodes=tuple(map(_node_of_text, topology.nodes.nodes)),
        stores=tuple(attrs.evolve(store, keeps=None) for store in topology.nodes.stores),
    )
    return attrs.evolve(topology, nodes=nodes)


def _node_of_text(node: Node) -> Node:
    match node:
        case SourceNode():
            return attrs.evolve(node, reads=None)
        case SinkNode():
            return attrs.evolve(node, writes=None)
        case ProcessorNode():
            return attrs.evolve(node, behavior=None)


@attrs.frozen
class Topologies:
    """All applications of one side, and what they were compiled with: topic → partition count."""

    documents: tuple[TopologyDocument, ...]
    partitions: Mapping[str, int]
    caller: Caller
    of: Mapping[str, Topology]

    def with_document(self, document: TopologyDocument) -> Topology:
        """Return the topology of `document`, compiled instead of the document with the same id."""
        documents = [
            document if each.application.id == document.application.id else each for each in self.documents
        ]
        return compile_topologies(documents, self.partitions, self.caller).of[document.application.id]


def compile_topologies(
    documents: Iterable[TopologyDocument], partitions: Mapping[str, int], caller: Caller = OFFLINE
) -> Topologies:
    """Compile the documents of one side; raises nothing, problems are in the compiled applications."""
    chosen = tuple(documents)
    compiled: Sequence[CompiledApplication] = compile_documents(chosen, partitions, caller)
    return Topologies(
        chosen,
        partitions,
        caller,
        {
            document.application.id: Topology(document, each, build_nodes(document))
            for document, each in zip(chosen, compiled, strict=True)
        },
    )
