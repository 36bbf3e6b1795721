"""The topology under construction, with the checks of `InternalTopologyBuilder`."""

from collections.abc import Iterable, Iterator

import attrs

from infra.compiler.dsl.refusals import TOPOLOGY, refused
from infra.compiler.dsl.stores import Store
from infra.compiler.java_patterns import JavaPattern, UntranslatablePatternError
from infra.model.nodes import (
    ChangelogKind,
    Node,
    ProcessorNode,
    RepartitionTopic,
    SinkNode,
    SourceNode,
    StateStore,
)
from infra.model.problems import Location, Problem


@attrs.define(eq=False)
class _Processor:
    parents: tuple[str, ...]
    at: Location | None
    stores: dict[str, None] = attrs.field(factory=dict)


@attrs.define(eq=False)
class _AddedStore:
    store: Store
    at: Location | None
    is_global: bool = False
    changelog_topic: str | None = None
    logged: bool = True
    connections: list[set[str]] = attrs.field(factory=lambda: [set()])


class TopologyUnderConstruction:
    """Takes what is written, in order; refuses as Kafka Streams does, but goes on to find all problems."""

    def __init__(self) -> None:
        self.problems: list[Problem] = []
        self._nodes: dict[str, SourceNode | _Processor | SinkNode] = {}
        self._global_nodes: set[str] = set()
        self._stores: dict[str, _AddedStore] = {}
        self._topics: dict[str, str] = {}
        self._global_topics: set[str] = set()
        self._patterns: list[tuple[str, JavaPattern]] = []
        self._internal: dict[str, RepartitionTopic] = {}

    # nodes

    def add_source(
        self, name: str, topics: tuple[str, ...], at: Location | None, *, is_global: bool = False
    ) -> None:
        if self._is_taken(name, at):
            return
        if not topics:
            self.problems.append(
                refused(
                    f"Source {name} reads no topic.", node=name, at=at, fix="Name the topics that it reads."
                )
            )
        for topic in topics:
            self._register_topic(topic, name, at)
        self._nodes[name] = SourceNode(name, topics, at=at)
        if is_global:
            self._global_nodes.add(name)
            self._global_topics.update(topics)

    def add_pattern_source(self, name: str, pattern: str, at: Location | None) -> None:
        if self._is_taken(name, at):
            return
        self._nodes[name] = SourceNode(name, pattern=pattern, at=at)
        try:
            compiled = JavaPattern(pattern)
        except UntranslatablePatternError as error:
            self.problems.append(
                refused(
                    f"The pattern of source {name} cannot be evaluated: {error}.",
                    throws="PatternSyntaxException",
                    node=name,
                    found=pattern,
                    at=at,
                    fix="Write a Java regular expression of the plain kind, or name the topics.",
                )
            )
            return
        # a pattern is held against topics of streams and tables only, a global table's topic against the
        # patterns too
        named = (topic for topic in self._topics if topic not in self._global_topics)
        clash = next((topic for topic in named if compiled.matches(topic)), None)
        if clash is not None:
            self.problems.append(_pattern_clash(pattern, clash, name, at))
        self._patterns.append((pattern, compiled))

    def add_processor(
        self, name: str, parents: tuple[str, ...], at: Location | None, stores: Iterable[Store] = ()
    ) -> None:
        if self._is_taken(name, at):
            return
        self._nodes[name] = _Processor(self._known_parents(name, parents, at), at)
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
    ) -> None:
        if self._is_taken(name, at):
            return
        self._nodes[name] = SinkNode(name, self._known_parents(name, parents, at), topic, extractor, at)

    def add_foreign_key_topic(self, topic: RepartitionTopic) -> None:
        self._internal[topic.name] = topic

    def add_repartition_topic(self, topic: RepartitionTopic) -> bool:
        """Tells whether it is the first of its name; a second one has sink or source in common with it."""
        other = self._internal.setdefault(topic.name, topic)
        if other is topic:
            return True
        self.problems.append(
            refused(
                f"Two repartitions write the topic {topic.name}.",
                topic=topic.name,
                expected="one repartition for a topic",
                found=f"also at {other.at}",
                at=topic.at,
                fix="Name one of the groups or joins differently, or use one grouped handle twice.",
            )
        )
        return False

    # stores

    def add_store(self, store: Store, at: Location | None, *processors: str) -> None:
        """`addStateStore`. A user's builder that is added again starts a new set of connected processors."""
        added = self._stores.get(store.name)
        if added is None:
            self._stores[store.name] = _AddedStore(store, at, logged=store.logged)
        elif added.is_global or (added.store is not store and added.store.same_as != store.same_as):
            self.problems.append(_different_store(store.name, at, added))
            return
        elif store.from_builder:
            added.connections.append(set())
        for processor in processors:
            self._connect(processor, store.name, at)

    def connect(self, processor: str, stores: tuple[str, ...], at: Location | None) -> None:
        """`connectProcessorAndStateStores`."""
        if isinstance(self._nodes.get(processor), SourceNode | SinkNode):
            self.problems.append(
                refused(
                    f"{processor} is a source or a sink: no state store can be connected to it.",
                    node=processor,
                    at=at,
                    fix="Connect the stores to a processor.",
                )
            )
            return
        for store in stores:
            self._connect(processor, store, at)

    def reuse_as_changelog(self, store: str, topic: str) -> None:
        """`connectSourceStoreAndTopic` with logging off: the source topic serves as changelog."""
        added = self._stores.get(store)
        if added is not None:
            added.changelog_topic = topic
            added.logged = False

    def add_global_store(
        self, store: Store, topic: str, source: str, processor: str, at: Location | None
    ) -> None:
        if source == processor:
            self.problems.append(
                refused(
                    f"Source and processor of global store {store.name} have the same name, {source}.",
                    node=source,
                    at=at,
                    fix="Name them differently.",
                )
            )
            return
        added = self._stores.get(store.name)
        self.add_source(source, (topic,), at, is_global=True)
        self.add_processor(processor, (source,), at)
        self._global_nodes.add(processor)
        if added is not None:
            self.problems.append(_different_store(store.name, at, added))
            return
        self._stores[store.name] = _AddedStore(
            store, at, is_global=True, changelog_topic=topic, logged=False, connections=[{processor}]
        )
        node = self._nodes.get(processor)
        if isinstance(node, _Processor):
            node.stores[store.name] = None

    def history_retention_ms(self, store: str) -> int | None:
        """How long a versioned store keeps old versions; None for a store that is not versioned."""
        added = self._stores.get(store)
        return (
            added.store.base_ms if added is not None and added.store.kind is ChangelogKind.VERSIONED else None
        )

    # the result

    def source_topics(self, name: str) -> tuple[str, ...]:
        """Topics of a source node; empty for a pattern, for another node and for an unknown name."""
        node = self._nodes.get(name)
        return node.topics if isinstance(node, SourceNode) else ()

    def logged_stores(self) -> Iterator[str]:
        return (name for name, added in self._stores.items() if added.logged)

    def is_source(self, name: str) -> bool:
        return isinstance(self._nodes.get(name), SourceNode)

    @property
    def global_nodes(self) -> frozenset[str]:
        return frozenset(self._global_nodes)

    @property
    def repartition_topics(self) -> tuple[RepartitionTopic, ...]:
        return tuple(self._internal.values())

    def nodes(self) -> tuple[Node, ...]:
        return tuple(
            ProcessorNode(name, node.parents, tuple(node.stores), node.at)
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
            )
            for name, added in self._stores.items()
        )

    # checks

    def _is_taken(self, name: str, at: Location | None) -> bool:
        if name not in self._nodes:
            return False
        other = self._nodes[name].at
        self.problems.append(
            refused(
                f"Two nodes are named {name}.",
                node=name,
                expected="each node name once",
                found=f"also at {other}" if other is not None and other != at else "twice",
                at=at,
                fix="Give one of them another name.",
            )
        )
        return True

    def _known_parents(self, name: str, parents: tuple[str, ...], at: Location | None) -> tuple[str, ...]:
        if not parents:
            self.problems.append(
                refused(
                    f"{name} has no parent.",
                    node=name,
                    at=at,
                    fix="Name the nodes that feed it in `parents`.",
                )
            )
        for parent in parents:
            throws = TOPOLOGY
            if parent == name:
                text = f"{name} is its own parent."
            elif parent not in self._nodes:
                text = f"{name} has a parent {parent} that is not added before it."
            elif isinstance(sink := self._nodes[parent], SinkNode):
                text = f"{name} has the sink {parent} as a parent."
                throws = TOPOLOGY if sink.topic is not None else "UnsupportedOperationException"
            else:
                continue
            fix = "Name sources or processors added before."
            self.problems.append(refused(text, throws=throws, node=name, found=parent, at=at, fix=fix))
        return parents

    def _register_topic(self, topic: str, source: str, at: Location | None) -> None:
        if topic in self._topics:
            owner = self._topics[topic]
            self.problems.append(
                refused(
                    f"Topic {topic} is read by two sources, {owner} and {source}.",
                    node=source,
                    topic=topic,
                    expected="one source node for a topic",
                    found=f"{owner} and {source}",
                    at=at,
                    fix="Read it once and use the result twice (a table's `toStream` gives its stream).",
                )
            )
            return
        clash = next((pattern for pattern, compiled in self._patterns if compiled.matches(topic)), None)
        if clash is not None:
            self.problems.append(_pattern_clash(clash, topic, source, at))
        self._topics[topic] = source

    def _connect(self, processor: str, store: str, at: Location | None) -> None:
        added = self._stores.get(store)
        node = self._nodes.get(processor)
        if added is not None and added.is_global:
            text = (
                f"Processor {processor} is connected to the global store {store}, which every processor sees."
            )
            fix = "Leave the global store out of the list."
        elif added is None:
            text = f"Processor {processor} is connected to a store {store} that is not added before it."
            fix = "Add the store first (addStateStore), or correct its name."
        elif not isinstance(node, _Processor):
            text = f"Store {store} is connected to {processor}, which is not a processor added before."
            fix = "Name a processor that is added before."
        else:
            node.stores[store] = None
            added.connections[-1].add(processor)
            return
        self.problems.append(refused(text, node=processor, found=store, at=at, fix=fix))


def _different_store(name: str, at: Location | None, other: _AddedStore) -> Problem:
    kind = "global store" if other.is_global else "store"
    return refused(
        f"A different {kind} is already added with the name {name}.",
        node=name,
        expected="each store name once",
        found=f"also at {other.at}" if other.at is not None and other.at != at else "twice",
        at=at,
        fix="Give one of the stores another name.",
    )


def _pattern_clash(pattern: str, topic: str, source: str, at: Location | None) -> Problem:
    return refused(
        f"Pattern {pattern} matches topic {topic}, which another source reads by name.",
        node=source,
        topic=topic,
        expected="patterns that match no topic read elsewhere",
        found=f"{pattern} matches {topic}",
        at=at,
        fix="Narrow the pattern, or drop the source that names the topic.",
    )
