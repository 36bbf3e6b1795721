"""Completes a described topology with what the cluster shows."""

from collections.abc import Iterator, Mapping
from itertools import product

import attrs

from headwater.compiler.compilation import Compilation
from headwater.compiler.counting import count_partitions, resolve_copartitioning, resolve_topics
from headwater.compiler.described.completion import complete_topology
from headwater.compiler.described.joins import unclear_groupings
from headwater.compiler.described.names import can_be_explicit
from headwater.compiler.described.stores import StoreFinding, find_stores, table_topic
from headwater.compiler.described.structure import Structure
from headwater.compiler.described.unknown import known_calls
from headwater.compiler.internal_topics import changelog_config
from headwater.compiler.streams_config import DAY_MS, LONGEST_MS, REUSE_SOURCE_TOPICS, StreamsConfig
from headwater.compiler.topic_groups import Naming
from headwater.model.cluster import ClusterSnapshot, LiveTopic
from headwater.model.nodes import ChangelogKind, StateStore
from headwater.model.topology import Application, CreatedBy, DescribedTopology, Protocol, StoreDetail


def complete_from_cluster(
    described: DescribedTopology, application: Application, snapshot: ClusterSnapshot
) -> DescribedTopology:
    """Return `described` with details from the application's topics; existing details do not change.

    Kinds, retention and overrides are derived from the configs of the changelogs. If the application has run,
    a missing changelog means that logging is disabled or, for a source table, that the source topic is the
    changelog. Repartition topics whose count differs from the derived one get an explicit count. If the text
    does not show which call created a repartition topic, the counts may show it.
    """
    naming = live_naming(described, application)
    if not has_run(described, application, snapshot):
        return described
    config = StreamsConfig.from_application(application)
    described = attrs.evolve(described, stores=_details_of(described, naming, snapshot, config))
    plain = _with_counts(described, application, naming, snapshot)
    readings = [_with_counts(each, application, naming, snapshot) for each in _possible_readings(described)]
    best = min(readings, key=lambda each: each.cost, default=plain)
    is_certain = [each.cost for each in readings].count(best.cost) == 1
    return best.described if best.cost < plain.cost or is_certain else plain.described


def live_naming(described: DescribedTopology, application: Application) -> Naming:
    """Return the names of the application's internal topics."""
    config = StreamsConfig.from_application(application)
    return Naming.from_topology(described.nodes, config.topic_prefix or application.id)


def has_run(described: DescribedTopology, application: Application, snapshot: ClusterSnapshot) -> bool:
    """Return whether the application has run: one of its internal topics exists, or its group has members.

    A topic that only begins with its id may belong to another application, and a group without members may
    never have been one of Kafka Streams.
    """
    group = snapshot.groups.get(application.id)
    if group is not None and group.is_available and group.is_active:
        return True
    structure, naming = Structure.from_topology(described.nodes), live_naming(described, application)
    return any(naming.changelog(store) in snapshot.topics for store in structure.users) or any(
        f"{naming.prefix}-{topic}" in snapshot.topics for topic in structure.internal_topics
    )


def _live_detail(
    live: LiveTopic, finding: StoreFinding, structure: Structure, streams: StreamsConfig
) -> StoreDetail:
    """Return kind and retention that compile to the config of `live`; other settings become overrides.

    A single setting decides nothing: an application may set each of them itself. A cleanup policy without
    compaction means a store with duplicates only if the changelog has a computed retention, and no
    aggregation, whose stores have no duplicates, uses the store.
    """
    additional_ms = streams.additional_retention_ms
    kind = _changelog_kind(live.config, finding, structure, additional_ms)
    if kind is ChangelogKind.WINDOWED_DUPLICATES:
        retention_ms = _base_duration(live.config, "retention.ms", additional_ms)
        detail = StoreDetail("window", retention_ms, retain_duplicates=True)
    elif kind is ChangelogKind.WINDOWED:
        of_join = any(user.name in structure.windowed for user in structure.users.get(finding.name, ()))
        detail = StoreDetail(
            "window" if of_join else "windowed", _base_duration(live.config, "retention.ms", additional_ms)
        )
    elif kind is ChangelogKind.VERSIONED:
        detail = StoreDetail(
            "versionedKeyValue", _base_duration(live.config, "min.compaction.lag.ms", DAY_MS)
        )
    else:
        detail = StoreDetail("timestampedKeyValue" if structure.is_of_table(finding.name) else "keyValue")
    computed = StateStore("", kind, base_ms=detail.retention_ms)
    expected = changelog_config(computed, streams.topic_overrides, additional_ms)
    overrides = {key: value for key, value in sorted(live.config.items()) if expected.get(key) != value}
    return attrs.evolve(detail, overrides=overrides)


def _changelog_kind(
    config: Mapping[str, str], finding: StoreFinding, structure: Structure, additional_ms: int
) -> ChangelogKind:
    """Return the kind that the text shows, otherwise the one whose settings the changelog has."""
    given = finding.detail is not None and finding.detail.kind is not None
    certain = finding.effective_kind if given else finding.kind
    if certain is not None and not (certain is ChangelogKind.KEY_VALUE and finding.may_be_versioned):
        return certain
    policy = set(config.get("cleanup.policy", "compact").replace(" ", "").split(","))
    has_retention = _base_duration(config, "retention.ms", additional_ms) is not None
    if _base_duration(config, "min.compaction.lag.ms", DAY_MS) is not None and "delete" not in policy:
        return ChangelogKind.VERSIONED
    if certain is None and has_retention and "delete" in policy:
        users = structure.users.get(finding.name, ())
        aggregates = any(structure.is_aggregation(user.name) for user in users)
        has_duplicates = "compact" not in policy and not aggregates
        return ChangelogKind.WINDOWED_DUPLICATES if has_duplicates else ChangelogKind.WINDOWED
    return ChangelogKind.KEY_VALUE


def _base_duration(config: Mapping[str, str], key: str, added: int) -> int | None:
    """Return the duration in milliseconds from which `key` was computed, None if it was not computed."""
    value = config.get(key, "")
    if not value.isdecimal():
        return None
    if int(value) == LONGEST_MS:
        return LONGEST_MS
    return int(value) - added if int(value) >= added else None


_MOST_UNCLEAR = 4
"""The number of unclear repartition topics of which all combinations of calls are compared."""


def _details_of(
    described: DescribedTopology, naming: Naming, snapshot: ClusterSnapshot, config: StreamsConfig
) -> dict[str, StoreDetail]:
    structure = Structure.from_topology(described.nodes)
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
            found = _live_detail(live, finding, structure, config)
            if given is None:
                details[finding.name] = found
            elif finding.missing:
                details[finding.name] = attrs.evolve(given, retention_ms=found.retention_ms)
    return details


def _possible_readings(described: DescribedTopology) -> Iterator[DescribedTopology]:
    """Yield `described` with each combination of calls that may have created unclear topics."""
    structure = Structure.from_topology(described.nodes)
    internal = frozenset(structure.internal_topics)
    unclear = unclear_groupings(structure, internal, known_calls(described))
    combinations = product(CreatedBy, repeat=len(unclear)) if 0 < len(unclear) <= _MOST_UNCLEAR else ()
    for calls in combinations:
        created_by = {**described.created_by, **dict(zip(unclear, calls, strict=True))}
        yield attrs.evolve(described, created_by=created_by)


@attrs.frozen
class _Counted:
    """A description with explicit counts; `different` topics have another count on the cluster still."""

    described: DescribedTopology
    different: int

    @property
    def cost(self) -> tuple[int, int]:
        """Return how badly the description explains the cluster: what differs, then what is explicit."""
        return self.different, len(self.described.repartition_partitions)


def _with_counts(
    described: DescribedTopology, application: Application, naming: Naming, snapshot: ClusterSnapshot
) -> _Counted:
    """Set explicit counts where the cluster differs from the derived count, from upstream to downstream."""
    pinned = dict(described.repartition_partitions)
    while True:
        described = attrs.evolve(described, repartition_partitions=pinned)
        counted = _count_topics(described, application, naming, snapshot)
        topic_graph, derived = counted.topic_graph, counted.counts
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
            for topic in first or wrong  # a sub-topology may read a topic that it writes
            if topic not in topic_graph.known
        }
        new = {topic: count for topic, count in sorted(found.items()) if can_be_explicit(topic)}
        if not new:
            return _Counted(described, len(wrong))
        if application.protocol is Protocol.STREAMS:
            # The broker gives groups of repartition topics alone an explicit count of other topics.
            new = dict(list(new.items())[:1])
        pinned |= new


def _count_topics(
    described: DescribedTopology, application: Application, naming: Naming, snapshot: ClusterSnapshot
) -> Compilation:
    """Return the partition counts that Kafka Streams decides on this cluster."""
    config = StreamsConfig.from_application(application)
    topology = complete_topology(
        described, config.version, reuses_sources=REUSE_SOURCE_TOPICS in config.optimizations
    )
    compilation = Compilation(
        application=application,
        config=config,
        topology=topology,
        naming=Naming(naming.prefix, {topic.name: topic for topic in topology.repartition_topics}),
        partitions=snapshot.partitions,
    )
    return count_partitions(resolve_copartitioning(resolve_topics(compilation)))
