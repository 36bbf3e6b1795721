"""The internal topics of an application with their configs, and its sub-topologies."""

from collections.abc import Mapping

from headwater.compiler.backends import choose_backend
from headwater.compiler.cluster_profiles import accepted_config, accepted_replicas
from headwater.compiler.compilation import Compilation
from headwater.compiler.streams_config import DAY_MS, LONGEST_MS
from headwater.compiler.topic_groups import TopicGroup
from headwater.model.compiled import InternalTopic, SubTopology, TopicKind
from headwater.model.nodes import ChangelogKind, SinkNode, StateStore

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
        config |= _computed_config(store, "min.compaction.lag.ms", base + DAY_MS)
    elif store.kind is not ChangelogKind.KEY_VALUE:
        config |= _computed_config(store, "retention.ms", base + additional_retention_ms)
    return dict(sorted(config.items()))


def _computed_config(store: StateStore, key: str, value: int) -> dict[str, str]:
    return {} if key in store.overrides else {key: str(min(value, LONGEST_MS))}


def internal_topics(compilation: Compilation) -> tuple[InternalTopic, ...]:
    """Return all internal topics whose count is decided, sorted by name."""
    found = [*_repartition_topics(compilation), *_changelog_topics(compilation)]
    return tuple(sorted(found, key=lambda topic: topic.name))


def build_subtopologies(compilation: Compilation) -> tuple[SubTopology, ...]:
    """Return all sub-topologies by id; global ones and those with undecided sources have 0 tasks."""
    return tuple(_build_subtopology(group, compilation) for group in compilation.groups)


def _build_subtopology(group: TopicGroup, compilation: Compilation) -> SubTopology:
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
        backend=choose_backend(group.nodes.nodes, compilation.application),
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
