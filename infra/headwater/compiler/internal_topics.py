"""The internal topics of an application: their configs, and what executes their sub-topologies.

The back end `native` (ADR 12) is chosen where Spark SQL gives the same results: no state, one chain of nodes
from one source to one sink, only expressions of `native_sql`, strings or bytes at both ends, the default
partitioner. All other sub-topologies run as tasks.
"""

from collections.abc import Mapping, Sequence

import attrs

from headwater.compiler.cluster_profiles import accepted_config, accepted_replicas
from headwater.compiler.compilation import Compilation
from headwater.compiler.native_sql import Kind, kind_of
from headwater.compiler.topic_groups import TopicGroup
from headwater.model.behaviors import (
    DEFAULT_FORMAT,
    Filter,
    Format,
    MapRecord,
    MapValues,
    NonNullKeyFilter,
    PassThrough,
    RecordFormat,
    SinkSettings,
    SourceSettings,
)
from headwater.model.compiled import Backend, InternalTopic, SubTopology, TopicKind
from headwater.model.nodes import ChangelogKind, Node, ProcessorNode, SinkNode, SourceNode, StateStore
from headwater.model.topology import Application

_KINDS = {"string": Kind.TEXT, DEFAULT_FORMAT: Kind.TEXT, "bytes": Kind.BYTES}
"""Format name → kind; an application with default serdes of its own runs as tasks."""
_TASKS_ONLY = (
    "default.key.serde",
    "default.value.serde",
    "static.partitioner.class",
    "processing.exception.handler",
    "production.exception.handler",
)
"""Config keys that the native back end does not support: default serdes, partitioners, error handlers."""


@attrs.frozen
class _Kinds:
    """The kinds of key and value at one point of the chain."""

    key: Kind
    value: Kind

    def of(self, text: str | None) -> Kind | None:
        return None if text is None else kind_of(text, self.key, self.value)


def backend(nodes: Sequence[Node], application: Application) -> Backend:
    """Return the back end for `nodes`, the nodes of a sub-topology in declaration order."""
    is_plain = not any(key in application.config for key in _TASKS_ONLY)
    return Backend.NATIVE if is_plain and _is_chain(nodes) and _same_in_spark_sql(nodes) else Backend.TASKS


def _is_chain(nodes: Sequence[Node]) -> bool:
    if len(nodes) < 2 or not isinstance(nodes[0], SourceNode) or not isinstance(nodes[-1], SinkNode):  # noqa: PLR2004
        return False
    names = [(node.name,) for node in nodes]
    parents = [node.parents for node in nodes[1:] if not isinstance(node, SourceNode)]
    return parents == names[:-1]


def _same_in_spark_sql(nodes: Sequence[Node]) -> bool:
    source, *between, sink = nodes
    kinds = _read_kinds(source)
    for node in between:
        kinds = None if kinds is None else _kinds_after(node, kinds)
    return kinds is not None and kinds == _written_kinds(sink)


def _read_kinds(node: Node) -> _Kinds | None:
    match node:
        case SourceNode(
            reads=SourceSettings(timestamp=None, carries_changes=False, foreign_key=None) as reads
        ):
            return _kinds_of(reads.format)
        case _:
            return None


def _written_kinds(node: Node) -> _Kinds | None:
    match node:
        case SinkNode(
            topic=str(),
            writes=SinkSettings(partitioner=None, carries_changes=False, foreign_key=None) as writes,
        ):
            return _kinds_of(writes.format)
        case _:
            return None


def _kinds_of(format_: RecordFormat) -> _Kinds | None:
    key, value = _kind_of(format_.key), _kind_of(format_.value)
    return None if key is None or value is None else _Kinds(key, value)


def _kind_of(format_: Format | None) -> Kind | None:
    if format_ is None:
        return Kind.TEXT
    return None if format_.window is not None else _KINDS.get(format_.name)


def _kinds_after(node: Node, kinds: _Kinds) -> _Kinds | None:
    """Return the kinds of the node's output; None = not supported by the native back end."""
    if not isinstance(node, ProcessorNode) or node.stores:
        return None
    match node.behavior:
        case PassThrough() | NonNullKeyFilter():
            return kinds
        case Filter(where=text):
            return kinds if kinds.of(text) is Kind.FLAG else None
        case MapValues(value=text):
            return _known_kinds(kinds.key, kinds.of(text))
        case MapRecord(key=key, value=value, keeps_value=keeps):
            return _known_kinds(kinds.of(key), kinds.value if keeps else kinds.of(value))
        case _:
            return None


def _known_kinds(key: Kind | None, value: Kind | None) -> _Kinds | None:
    return None if key is None or value is None else _Kinds(key, value)


_LARGEST_LONG = (1 << 63) - 1
_ONE_DAY_MS = 86_400_000

_REPARTITION = {
    "message.timestamp.type": "CreateTime",
    "cleanup.policy": "delete",
    "segment.bytes": "52428800",
    "retention.ms": "-1",
}
_CLEANUP_POLICY = {
    ChangelogKind.KEY_VALUE: "compact",
    ChangelogKind.VERSIONED: "compact",
    ChangelogKind.WINDOWED: "compact,delete",
    ChangelogKind.WINDOWED_DUPLICATES: "compact,delete",
}


def repartition_config(defaults: Mapping[str, str]) -> Mapping[str, str]:
    """Return the config of a repartition topic (`RepartitionTopicConfig#properties`).

    `defaults` are the application's `topic.` configs.
    """
    return dict(sorted({**_REPARTITION, **defaults}.items()))


def changelog_config(
    store: StateStore, defaults: Mapping[str, str], additional_retention_ms: int
) -> Mapping[str, str]:
    """Return the config of a changelog topic (`…ChangelogTopicConfig#properties`).

    Precedence: Kafka Streams' defaults < `defaults` (the application's `topic.` configs) < the store's
    overrides. The computed retention or compaction lag overrides `topic.` configs, but not the store's
    overrides. `additional_retention_ms` is `windowstore.changelog.additional.retention.ms`.
    """
    config = {"message.timestamp.type": "CreateTime", "cleanup.policy": _CLEANUP_POLICY[store.kind]}
    config |= defaults
    if store.kind is ChangelogKind.WINDOWED_DUPLICATES:
        config["cleanup.policy"] = "delete"
    config |= store.overrides
    base = store.base_ms or 0
    if store.kind is ChangelogKind.VERSIONED:
        config |= _computed(store, "min.compaction.lag.ms", base + _ONE_DAY_MS)
    elif store.kind is not ChangelogKind.KEY_VALUE:
        config |= _computed(store, "retention.ms", base + additional_retention_ms)
    return dict(sorted(config.items()))


def _computed(store: StateStore, key: str, value: int) -> dict[str, str]:
    return {} if key in store.overrides else {key: str(min(value, _LARGEST_LONG))}


def internal_topics(compilation: Compilation) -> tuple[InternalTopic, ...]:
    """Return all internal topics whose count is decided, sorted by name."""
    found = [*_repartition_topics(compilation), *_changelog_topics(compilation)]
    return tuple(sorted(found, key=lambda topic: topic.name))


def subtopologies(compilation: Compilation) -> tuple[SubTopology, ...]:
    """Return all sub-topologies by id; global ones and those with undecided sources have 0 tasks."""
    return tuple(_subtopology(group, compilation) for group in compilation.groups)


def _subtopology(group: TopicGroup, compilation: Compilation) -> SubTopology:
    internal = {topic for topic, store in group.changelogs.items() if store.changelog_topic is None}
    return SubTopology(
        id=group.id,
        nodes=tuple(node.name for node in group.nodes.nodes),
        sources=tuple(sorted(group.sources)),
        sinks=tuple(sorted(group.sinks)),
        repartition_topics=tuple(sorted(group.repartition)),
        changelog_topics=tuple(sorted(internal)),
        source_changelogs=tuple(sorted(group.changelogs.keys() - internal)),
        stores=tuple(sorted(group.stores)),
        tasks=compilation.tasks.get(group.id, 0),
        is_global=group.is_global,
        source_patterns=group.patterns,
        backend=backend(group.nodes.nodes, compilation.application),
        source_partitions={
            topic: compilation.counts[topic] for topic in sorted(group.sources) if topic in compilation.counts
        },
        processors=compilation.application.processors if group.stores and not group.is_global else None,
    )


def _repartition_topics(compilation: Compilation) -> list[InternalTopic]:
    application = compilation.application
    config = accepted_config(repartition_config(compilation.config.topic_overrides), application)
    writing = {
        compilation.naming.topic(node.topic): node.name
        for node in compilation.topology.nodes
        if isinstance(node, SinkNode) and node.topic is not None
    }
    generated = compilation.topology.generated_names
    return [
        InternalTopic(
            name=topic,
            kind=TopicKind.FK_SUBSCRIPTION if details.is_foreign_key else TopicKind.REPARTITION,
            partitions=compilation.counts[topic],
            config=config,
            subtopology=group.id,
            node=writing.get(topic, ""),
            replication_factor=accepted_replicas(compilation.config.replication_factor, application),
            pinned=details.partitions is not None,
            generated=details.name in generated or details.name.removesuffix("-repartition") in generated,
            at=details.at,
        )
        for group in compilation.groups
        for topic, details in group.repartition.items()
        if topic in compilation.counts
    ]


def _changelog_topics(compilation: Compilation) -> list[InternalTopic]:
    """Return the changelogs: a partition for each processor, that is for each task if none are declared."""
    config = compilation.config
    processors = compilation.application.processors
    return [
        InternalTopic(
            name=topic,
            kind=TopicKind.CHANGELOG,
            partitions=processors or compilation.tasks[group.id],
            config=accepted_config(
                changelog_config(store, config.topic_overrides, config.additional_retention_ms),
                compilation.application,
                store.overrides,
            ),
            subtopology=group.id,
            node=store.name,
            replication_factor=accepted_replicas(config.replication_factor, compilation.application),
            changelog_kind=store.kind,
            generated=store.name in compilation.topology.generated_names,
            at=store.at,
        )
        for group in compilation.groups
        if group.id in compilation.tasks
        for topic, store in group.changelogs.items()
        if store.changelog_topic is None
    ]
