"""A compiled application: every internal topic with its exact name, partition count and config."""

from collections.abc import Mapping
from enum import Enum

import attrs

from headwater.model.nodes import ChangelogKind, NodeTopology
from headwater.model.nodes import TopicKind as TopicKind  # noqa: PLC0414 - part of this vocabulary
from headwater.model.problems import Location, Problem
from headwater.model.topology import Application, Lifecycle, Sink, TopologyDocument


class Backend(Enum):
    """What executes a sub-topology on Spark: Spark SQL, or tasks in Python workers."""

    NATIVE = "native"
    TASKS = "tasks"


@attrs.frozen
class InternalTopic:
    """An internal topic as Kafka Streams creates it (`InternalTopicManager#makeReady`).

    `config` has exactly the keys that Kafka Streams sends with its CreateTopics request. `replication_factor`
    -1 means the broker's default. `node` is the name of the store (changelog) or of the sink node
    (repartition). `subtopology` is the id of the sub-topology that reads (repartition) or owns (changelog)
    the topic, None in an observed application. `pinned`: the document sets the count explicitly. `generated`:
    the name contains a generated index.
    """

    name: str
    kind: TopicKind
    partitions: int
    config: Mapping[str, str]
    subtopology: int | None
    node: str
    replication_factor: int = -1
    pinned: bool = False
    changelog_kind: ChangelogKind | None = None
    generated: bool = False
    at: Location | None = None


@attrs.frozen
class SubTopology:
    """A sub-topology: the nodes that run together in tasks.

    `sources` and `sinks` are full topic names, sorted, with patterns resolved. `tasks` is the number of
    tasks: the largest partition count of the sources. `source_partitions`: source → its count, as far as
    known. `source_changelogs` are source topics that serve as changelogs.
    """

    id: int
    nodes: tuple[str, ...]
    sources: tuple[str, ...]
    sinks: tuple[str, ...]
    repartition_topics: tuple[str, ...]
    changelog_topics: tuple[str, ...]
    source_changelogs: tuple[str, ...]
    stores: tuple[str, ...]
    tasks: int
    is_global: bool = False
    source_patterns: tuple[str, ...] = ()
    backend: Backend = Backend.TASKS
    source_partitions: Mapping[str, int] = attrs.field(factory=dict)
    processors: int | None = None
    """The declared number of processors (KIP-287): partitions of its changelogs; None = one for each task."""

    @property
    def is_stateful(self) -> bool:
        """Return whether its tasks have state of their own."""
        return bool(self.stores) and not self.is_global


class PartitionedBy(Enum):
    """What chooses the partitions of a sink instead of the producer."""

    WINDOWED_KEY = "the key inside its windowed key"
    CLASS = "a class of the application"


@attrs.frozen
class PartitionedSink:
    """A sink node that chooses partitions itself; `topic` None: a `TopicNameExtractor` names it."""

    node: str
    topic: str | None
    by: PartitionedBy
    partitioner: str
    is_internal: bool


@attrs.frozen
class CompiledApplication:
    """The result of compiling one document against the partition counts of its source topics.

    With errors in `problems`, `internal_topics` has only the topics whose count could be decided.
    `external_sources` are the user topics that are read: full names, sorted, with patterns resolved.
    `missing_sources` are those that do not exist. `sinks` are the managed sink topics with their counts.
    """

    application: Application
    subtopologies: tuple[SubTopology, ...]
    internal_topics: tuple[InternalTopic, ...]
    external_sources: tuple[str, ...]
    missing_sources: tuple[str, ...] = ()
    source_patterns: tuple[str, ...] = ()
    global_topics: tuple[str, ...] = ()
    copartition_groups: tuple[tuple[str, ...], ...] = ()
    sinks: tuple[Sink, ...] = ()
    problems: tuple[Problem, ...] = ()
    extractor_sinks: tuple[str, ...] = ()
    """Sink nodes with a `TopicNameExtractor`."""
    partitioned_sinks: tuple[PartitionedSink, ...] | None = None
    """Sinks that choose partitions themselves; None: the document does not show it."""
    is_observed: bool = False
    """Only the internal topics are known: `subtopologies` is empty, the document has the counts."""
    described: NodeTopology | None = attrs.field(default=None, eq=False, repr=False)
    """The nodes of a document without calls: of the text of `Topology#describe()`, or exported from code."""
    document: TopologyDocument | None = attrs.field(default=None, eq=False, repr=False)
    """What it was compiled from."""

    @property
    def repartition_sinks(self) -> Mapping[int, tuple[str, ...]]:
        """Return sub-topology → the internal topics that it writes, sorted."""
        internal = {topic.name for topic in self.internal_topics}
        return {
            part.id: tuple(sorted(topic for topic in part.sinks if topic in internal))
            for part in self.subtopologies
        }

    @property
    def is_stateful(self) -> bool:
        """Return whether any sub-topology that is not global has a state store."""
        if self.is_observed:
            return any(topic.kind is TopicKind.CHANGELOG for topic in self.internal_topics)
        return any(part.is_stateful for part in self.subtopologies)


def wrong_counts(application: CompiledApplication, partitions: Mapping[str, int]) -> Mapping[str, int]:
    """Return internal topic → its partition count, if a topic of the application has a wrong count.

    `partitions` is topic → partition count on the cluster. Only active applications have such topics.
    """
    declared = {topic.name: topic.partitions for topic in application.internal_topics}
    live = {name: partitions[name] for name in declared if name in partitions}
    is_active = application.application.lifecycle is Lifecycle.ACTIVE
    return live if is_active and any(count != declared[name] for name, count in live.items()) else {}


def undeclared_inputs(application: CompiledApplication, partitions: Mapping[str, int]) -> Mapping[str, int]:
    """Return input → its partition count, of state whose changelog topics have too few partitions.

    With the offsets of these inputs, an application commits its number of processors (KIP-287), also if the
    document does not declare it. Empty if the document declares one.
    """
    live = wrong_counts(application, partitions)
    if application.application.processors is not None:
        return {}
    short = {
        topic.name
        for topic in application.internal_topics
        if topic.kind is TopicKind.CHANGELOG and live.get(topic.name, topic.partitions) < topic.partitions
    }
    parts = [part for part in application.subtopologies if not short.isdisjoint(part.changelog_topics)]
    return {name: partitions[name] for part in parts for name in part.sources if name in partitions}


def reshard_journal(application: CompiledApplication, partitions: Mapping[str, int]) -> Mapping[str, int]:
    """Return changelog topic → 1: the journal of a reshard is committed with offsets of first partitions.

    Empty if all internal topics have the counts that the source topics require, or there is no state to move:
    then a reshard that is not complete changes no decision.
    """
    live = wrong_counts(application, partitions)
    if application.application.processors is not None:
        return {}
    return {
        topic.name: 1
        for topic in application.internal_topics
        if topic.kind is TopicKind.CHANGELOG and topic.name in live
    }
