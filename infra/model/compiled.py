"""A compiled application: every internal topic with its exact name, partition count and config."""

from collections.abc import Mapping
from enum import Enum

import attrs

from infra.model.nodes import ChangelogKind
from infra.model.nodes import TopicKind as TopicKind  # noqa: PLC0414 - part of this vocabulary
from infra.model.problems import Location, Problem
from infra.model.topology import Application, Sink


class Backend(Enum):
    """What evaluates a sub-topology on Spark: Spark SQL, or our tasks in Python workers."""

    NATIVE = "native"
    TASKS = "tasks"


@attrs.frozen
class InternalTopic:
    """One internal topic as Kafka Streams would create it.

    `config` has exactly the keys that Kafka Streams sends with its CreateTopics request.
    `replication_factor` -1 means the broker's default. `node` is the store (changelog) or the sink node
    (repartition) that it belongs to; `subtopology` is the one that reads (repartition) or owns (changelog)
    it, None in an application that was only observed. `pinned` = the count is explicit in the document.
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
    """What forms one set of tasks.

    `sources` and `sinks` are full topic names, patterns resolved, sorted; `tasks` is the largest partition
    count among the sources.
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


@attrs.frozen
class CompiledApplication:
    """The result of compiling one document against the partition counts of its source topics.

    `problems` holds errors (then `internal_topics` lists only those whose count could be decided) and
    lints. `external_sources` are the user topics read, full names, patterns resolved, sorted;
    `missing_sources` those without counts. `sinks` are the managed sink topics with their decided count.
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
    """Sink nodes whose topic is chosen record by record."""
    is_observed: bool = False
    """Only its topics are known: there are no `subtopologies`, and counts are those of the document."""

    @property
    def is_stateful(self) -> bool:
        """Whether any sub-topology keeps state (a logged or unlogged store)."""
        if self.is_observed:
            return any(topic.kind is TopicKind.CHANGELOG for topic in self.internal_topics)
        return any(part.stores for part in self.subtopologies if not part.is_global)
