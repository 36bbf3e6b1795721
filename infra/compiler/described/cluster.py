"""Adds details of a described application from its internal topics on a live cluster."""

from collections.abc import Mapping

import attrs

from infra.compiler.assignor_counts import (
    TopicGraph,
    assignor_order,
    count_by_assignor,
    count_in_dependency_order,
)
from infra.compiler.copartitioning import copartition_groups, enforce
from infra.compiler.described.completion import complete
from infra.compiler.described.names import can_be_explicit
from infra.compiler.described.stores import find_stores, table_topic
from infra.compiler.described.structure import Structure
from infra.compiler.streams_config import DAY_MS, REUSE_SOURCE_TOPICS, StreamsConfig
from infra.compiler.subtopologies import node_groups
from infra.compiler.topic_configs import changelog_config
from infra.compiler.topic_groups import Naming, resolve_sources, topic_groups
from infra.model.cluster import ClusterSnapshot, LiveTopic
from infra.model.nodes import ChangelogKind, StateStore
from infra.model.topology import Application, DescribedTopology, StoreDetail

_FOREVER = (1 << 63) - 1


def complete_from_cluster(
    described: DescribedTopology, application: Application, snapshot: ClusterSnapshot
) -> DescribedTopology:
    """Return `described` with details from the application's topics; existing details do not change.

    Kinds, retention and overrides are derived from the configs of the changelogs. If the application has run,
    a missing changelog means that logging is disabled or, for a source table, that the source topic is the
    changelog. Repartition topics whose count differs from the derived one get an explicit count.
    """
    config = StreamsConfig.of(application)
    naming = Naming.of(described.nodes, config.topic_prefix or application.id)
    if _has_run(application.id, naming, snapshot):
        described = attrs.evolve(described, stores=_details(described, naming, snapshot, config))
    return _with_counts(described, naming, snapshot)


def _details(
    described: DescribedTopology, naming: Naming, snapshot: ClusterSnapshot, config: StreamsConfig
) -> dict[str, StoreDetail]:
    structure = Structure.of(described.nodes)
    reuses = REUSE_SOURCE_TOPICS in config.optimizations
    details = dict(described.stores)
    for finding in find_stores(structure, described.stores, config.version, reuses_sources=reuses):
        given = described.stores.get(finding.name)
        topic = naming.changelog(finding.name)
        live = snapshot.topics.get(topic)
        if finding.is_global or finding.source_topic is not None:
            continue
        if live is None and given is None:
            source = table_topic(finding.name, structure)
            details[finding.name] = StoreDetail(logging=source is not None, source_topic=source)
        elif live is not None and topic in snapshot.described:
            found = _detail(live, finding.effective_kind if given else finding.kind, config)
            if given is None:
                details[finding.name] = found
            elif finding.missing:
                details[finding.name] = attrs.evolve(given, retention_ms=found.retention_ms)
    return details


def _has_run(application_id: str, naming: Naming, snapshot: ClusterSnapshot) -> bool:
    """Return whether the application has run: it has a consumer group or internal topics."""
    return application_id in snapshot.groups or any(
        topic.startswith(f"{naming.prefix}-") and topic.endswith(("-changelog", "-repartition"))
        for topic in snapshot.topics
    )


def _detail(live: LiveTopic, kind: ChangelogKind | None, streams: StreamsConfig) -> StoreDetail:
    """Return kind and retention that compile to this config; other settings become overrides."""
    additional_ms = streams.additional_retention_ms
    config = dict(live.config)
    policy = set(config.get("cleanup.policy", "compact").replace(" ", "").split(","))
    if kind is ChangelogKind.WINDOWED_DUPLICATES or (kind is None and policy == {"delete"}):
        detail = StoreDetail("window", _base(config, "retention.ms", additional_ms), retain_duplicates=True)
        found = ChangelogKind.WINDOWED_DUPLICATES
    elif kind in {None, ChangelogKind.WINDOWED} and "delete" in policy:
        detail = StoreDetail("timestampedWindow", _base(config, "retention.ms", additional_ms))
        found = ChangelogKind.WINDOWED
    elif kind is ChangelogKind.VERSIONED or "min.compaction.lag.ms" in config:
        detail = StoreDetail("versionedKeyValue", _base(config, "min.compaction.lag.ms", DAY_MS))
        found = ChangelogKind.VERSIONED
    else:
        detail = StoreDetail("timestampedKeyValue")
        found = ChangelogKind.KEY_VALUE
    computed = StateStore("", found, base_ms=detail.retention_ms)
    expected = changelog_config(computed, streams.topic_overrides, additional_ms)
    overrides = {key: value for key, value in sorted(config.items()) if expected.get(key) != value}
    return attrs.evolve(detail, overrides=overrides)


def _base(config: Mapping[str, str], key: str, added: int) -> int | None:
    """Return the duration in milliseconds from which `key` was computed, None if it was not computed."""
    value = config.get(key, "")
    if not value.isdecimal():
        return None
    if int(value) == _FOREVER:
        return _FOREVER
    return int(value) - added if int(value) >= added else None


def _with_counts(
    described: DescribedTopology, naming: Naming, snapshot: ClusterSnapshot
) -> DescribedTopology:
    """Set explicit counts where the cluster differs from the derived count, from upstream to downstream."""
    pinned = dict(described.repartition_partitions)
    while True:
        described = attrs.evolve(described, repartition_partitions=pinned)
        topic_graph, derived = _derived(described, naming, snapshot)
        live = {
            topic: snapshot.topics[topic].partitions
            for topic in topic_graph.writers
            if topic in snapshot.topics
        }
        wrong = {topic for topic, count in live.items() if derived.get(topic) != count}
        sources = {group.id: group.sources for group in topic_graph.groups}
        first = {
            topic
            for topic in wrong
            if not any(source in wrong for writer in topic_graph.writers[topic] for source in sources[writer])
        }
        found = {
            topic.removeprefix(f"{naming.prefix}-"): live[topic]
            for topic in first
            if topic not in topic_graph.known
        }
        new = {topic: count for topic, count in sorted(found.items()) if can_be_explicit(topic)}
        if not new:
            return described
        pinned |= new


def _derived(
    described: DescribedTopology, naming: Naming, snapshot: ClusterSnapshot
) -> tuple[TopicGraph, Mapping[str, int]]:
    topology = complete(described)
    naming = attrs.evolve(naming, internal={topic.name: topic for topic in topology.repartition_topics})
    sources = resolve_sources(topology, naming, snapshot.partitions)
    groups = topic_groups(topology, node_groups(topology), sources, naming)
    topic_graph = TopicGraph.of(groups, snapshot.partitions)
    counts = (
        count_in_dependency_order(topic_graph)
        if topic_graph.missing
        else count_by_assignor(topic_graph, assignor_order(topic_graph.groups))
    )
    repartition = {
        topic: details for group in topic_graph.groups for topic, details in group.repartition.items()
    }
    return topic_graph, enforce(copartition_groups(topology, sources), counts, repartition).counts
