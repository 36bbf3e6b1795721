"""The topology under construction, with the checks of `InternalTopologyBuilder`."""

from collections.abc import Iterable, Iterator

import attrs

from headwater.compiler.dsl import messages as problems
from headwater.compiler.dsl.stores import Store
from headwater.compiler.java.patterns import JavaPattern, UntranslatablePatternError
from headwater.model.behaviors import Behavior, GlobalTableSource
from headwater.model.formats import SinkSettings, SourceSettings
from headwater.model.nodes import (
    ChangelogKind,
    Node,
    ProcessorNode,
    RepartitionTopic,
    SinkNode,
    SourceNode,
    StateStore,
)
from headwater.model.problems import Location, Problem


@attrs.define(eq=False)
class _Processor:
    parents: tuple[str, ...]
    at: Location | None
    behavior: Behavior | None = None
    stores: dict[str, None] = attrs.field(factory=dict)


@attrs.define(eq=False)
class _AddedStore:
    store: Store
    at: Location | None
    logged: bool
    is_global: bool = False
    changelog_topic: str | None = None
    connections: list[set[str]] = attrs.field(factory=lambda: [set()])


class TopologyUnderConstruction:
    """Adds nodes and stores in order with the checks of Kafka Streams, and collects all problems."""

    def __init__(
        self, *, keeps_connections: bool = False, refuses_logged_global_stores: bool = False
    ) -> None:
        self._keeps_connections = keeps_connections
        self.refuses_logged_global_stores = refuses_logged_global_stores
        """Whether `Topology#addGlobalStore` refuses a store with logging; the DSL disables it."""
        self.problems: list[Problem] = []
        self._nodes: dict[str, SourceNode | _Processor | SinkNode] = {}
        self._global_nodes: set[str] = set()
        self._stores: dict[str, _AddedStore] = {}
        self._internal: dict[str, RepartitionTopic] = {}
        self._readers: dict[str, str] = {}
        self._global_topics: set[str] = set()
        self._patterns: list[tuple[str, JavaPattern]] = []

    # nodes

    def add_source(
        self,
        name: str,
        topics: tuple[str, ...],
        at: Location | None,
        reads: SourceSettings | None = None,
        *,
        is_global: bool = False,
    ) -> None:
        if self._is_taken(name, at):
            return
        if not topics:
            self.problems.append(problems.reads_no_topic(name, at))
        for topic in topics:
            self._register_topic(topic, name, at)
        self._nodes[name] = SourceNode(name, topics, at=at, reads=reads)
        if is_global:
            self._global_nodes.add(name)
            self._global_topics.update(topics)

    def add_pattern_source(
        self, name: str, pattern: str, at: Location | None, reads: SourceSettings | None = None
    ) -> None:
        """Add a source with a pattern; `topic_groups` reports a pattern that is invalid or not supported."""
        if self._is_taken(name, at):
            return
        self._nodes[name] = SourceNode(name, pattern=pattern, at=at, reads=reads)
        try:
            compiled = JavaPattern(pattern)
        except UntranslatablePatternError:
            return
        # Kafka Streams checks topics of global tables against patterns, but not a new pattern against them
        named = (topic for topic in self._readers if topic not in self._global_topics)
        clash = next((topic for topic in named if _matches_pattern(compiled, topic)), None)
        if clash is not None:
            self.problems.append(problems.pattern_matches_named_topic(pattern, clash, name, at))
        self._patterns.append((pattern, compiled))

    def add_processor(
        self,
        name: str,
        parents: tuple[str, ...],
        at: Location | None,
        stores: Iterable[Store] = (),
        behavior: Behavior | None = None,
    ) -> None:
        if self._is_taken(name, at):
            return
        self._check_parents(name, parents, at)
        self._nodes[name] = _Processor(parents, at, behavior)
        for store in stores:
            self.add_store(store, at, name)

    def add_sink(
        self,
        name: str,
        parents: tuple[str, ...],
        at: Location | None,
        *,
        topic: str | None = None,
        extractor: str | None = None,
        writes: SinkSettings | None = None,
    ) -> None:
        if self._is_taken(name, at):
            return
        self._check_parents(name, parents, at)
        self._nodes[name] = SinkNode(name, parents, topic, extractor, at, writes)

    def add_foreign_key_topic(self, topic: RepartitionTopic) -> None:
        self._internal[topic.name] = topic

    def add_repartition_topic(self, topic: RepartitionTopic) -> bool:
        """Add a repartition topic and return whether it is the first with its name."""
        other = self._internal.setdefault(topic.name, topic)
        if other is not topic:
            self.problems.append(problems.repartition_topic_taken(topic, other))
        return other is topic

    # stores

    def add_store(self, store: Store, at: Location | None, *processors: str) -> None:
        """`addStateStore`; before KAFKA-20464, a builder that is added again loses its processors."""
        added = self._stores.get(store.name)
        if added is None:
            self._stores[store.name] = _AddedStore(store, at, store.logged)
        elif added.is_global or (added.store is not store and added.store.same_as != store.same_as):
            self._refuse_store(added, at)
            return
        elif store.from_builder and not self._keeps_connections:
            added.connections.append(set())
        for processor in processors:
            self._connect(processor, store.name, at)

    def connect(self, processor: str, stores: tuple[str, ...], at: Location | None) -> None:
        """`connectProcessorAndStateStores`."""
        if isinstance(self._nodes.get(processor), SourceNode | SinkNode):
            self.problems.append(problems.store_on_source_or_sink(processor, at))
            return
        for store in stores:
            self._connect(processor, store, at)

    def reuse_as_changelog(self, store: str, topic: str, at: Location | None = None) -> None:
        """`connectSourceStoreAndTopic` with logging disabled: the source topic serves as changelog."""
        added = self._stores.get(store)
        if added is None:
            return
        if added.changelog_topic is not None:
            self._refuse_store(added, at)
            return
        added.changelog_topic = topic
        added.logged = False

    def add_global_store(
        self,
        store: Store,
        topic: str,
        source: str,
        processor: str,
        at: Location | None,
        *,
        processor_class: str | None = None,
        reads: SourceSettings | None = None,
    ) -> None:
        if source == processor:
            self.problems.append(problems.global_store_nodes_alike(store.name, source, at))
            return
        self.add_source(source, (topic,), at, reads, is_global=True)
        behavior = GlobalTableSource(store.name, processor_class)
        self.add_processor(processor, (source,), at, behavior=behavior)
        self._global_nodes.add(processor)
        added = self._stores.get(store.name)
        if added is not None:
            self._refuse_store(added, at)
            return
        self._stores[store.name] = _AddedStore(
            store, at, logged=False, is_global=True, changelog_topic=topic, connections=[{processor}]
        )
        node = self._nodes.get(processor)
        if isinstance(node, _Processor):
            node.stores[store.name] = None

    # the result

    def topics_read(self, name: str) -> tuple[str, ...]:
        """Return the topics or the pattern of a source node; empty for other nodes and unknown names."""
        node = self._nodes.get(name)
        if not isinstance(node, SourceNode):
            return ()
        return node.topics if node.pattern is None else (node.pattern,)

    def is_source(self, name: str) -> bool:
        return isinstance(self._nodes.get(name), SourceNode)

    def history_retention_ms(self, store: str) -> int | None:
        """Return the history retention of a versioned store in milliseconds, None for other stores."""
        added = self._stores.get(store)
        if added is None or added.store.kind is not ChangelogKind.VERSIONED:
            return None
        return added.store.base_ms

    def logged_stores(self) -> Iterator[str]:
        return (name for name, added in self._stores.items() if added.logged)

    @property
    def global_nodes(self) -> frozenset[str]:
        return frozenset(self._global_nodes)

    @property
    def repartition_topics(self) -> tuple[RepartitionTopic, ...]:
        return tuple(self._internal.values())

    def nodes(self) -> tuple[Node, ...]:
        return tuple(
            ProcessorNode(name, node.parents, tuple(node.stores), node.at, node.behavior)
            if isinstance(node, _Processor)
            else node
            for name, node in self._nodes.items()
        )

    def stores(self) -> tuple[StateStore, ...]:
        return tuple(
            StateStore(
                name,
                added.store.kind,
                added.logged,
                added.store.overrides if added.logged else {},
                added.store.base_ms,
                added.changelog_topic,
                added.is_global,
                tuple(map(frozenset, added.connections)) if len(added.connections) > 1 else (),
                added.at,
                added.store.keeps,
            )
            for name, added in self._stores.items()
        )

    # checks

    def _is_taken(self, name: str, at: Location | None) -> bool:
        other = self._nodes.get(name)
        if other is not None:
            self.problems.append(problems.node_name_taken(name, at, other.at))
        return other is not None

    def _check_parents(self, name: str, parents: tuple[str, ...], at: Location | None) -> None:
        if not parents:
            self.problems.append(problems.no_parent(name, at))
        for parent in parents:
            node = self._nodes.get(parent)
            if node is None:
                self.problems.append(problems.parent_unknown(name, parent, at))
            elif isinstance(node, SinkNode):
                dynamic = node.topic is None
                self.problems.append(problems.parent_is_a_sink(name, parent, at, dynamic=dynamic))

    def _register_topic(self, topic: str, source: str, at: Location | None) -> None:
        other = self._readers.setdefault(topic, source)
        if other is not source:
            self.problems.append(problems.topic_read_twice(topic, source, other, at))
            return
        clash = next(
            (pattern for pattern, compiled in self._patterns if _matches_pattern(compiled, topic)), None
        )
        if clash is not None:
            self.problems.append(problems.pattern_matches_named_topic(clash, topic, source, at))

    def _refuse_store(self, added: _AddedStore, at: Location | None) -> None:
        name = added.store.name
        self.problems.append(problems.store_name_taken(name, at, added.at, is_global=added.is_global))

    def _connect(self, processor: str, store: str, at: Location | None) -> None:
        added = self._stores.get(store)
        node = self._nodes.get(processor)
        if added is None:
            self.problems.append(problems.store_unknown(processor, store, at))
        elif added.is_global:
            self.problems.append(problems.global_store_connected(processor, store, at))
        elif not isinstance(node, _Processor):
            self.problems.append(problems.processor_unknown(processor, store, at))
        else:
            node.stores[store] = None
            added.connections[-1].add(processor)


def _matches_pattern(pattern: JavaPattern, topic: str) -> bool:
    try:
        return pattern.matches(topic)
    except UntranslatablePatternError:
        return False
