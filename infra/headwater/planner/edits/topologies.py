"""The compiled topologies of one side of an edit, with their nodes, stores and layouts."""

from collections.abc import Iterable, Mapping, Sequence
from functools import cached_property

import attrs

from headwater.compiler import build_nodes, compile_documents
from headwater.compiler.streams_config import StreamsConfig
from headwater.compiler.topic_groups import Naming
from headwater.model.compiled import CompiledApplication, InternalTopic, TopicKind
from headwater.model.nodes import (
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
from headwater.planner.edits.layouts import (
    Layout,
    closing_stores,
    repartition_layouts,
    store_layout,
    windows_of,
)


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
        return StreamsConfig.from_application(self.application)

    @cached_property
    def graph(self) -> Graph:
        return Graph(self.nodes)

    @cached_property
    def _naming(self) -> Naming:
        return Naming.from_topology(self.nodes, self.config.topic_prefix or self.id)

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

    def inputs_in_task(self, store: str) -> frozenset[str]:
        """Return the topics whose records a store gets in its task, without topics of joined tables."""
        users = self.graph.users_of(store)
        writers = list(self.graph.writers_among(store, users)) or users
        above = (
            self.graph.nodes[name] for name in self.graph.reachable_nodes(writers, self.graph.parents_in_task)
        )
        sources = [node for node in above if isinstance(node, SourceNode)]
        if any(source.pattern for source in sources):
            parts = self.compiled.subtopologies
            return frozenset(topic for part in parts if store in part.stores for topic in part.sources)
        return frozenset(
            self.repartitions[topic].name if topic in self.repartitions else topic
            for source in sources
            for topic in source.topics
        )

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

    def short_name(self, topic: str) -> str:
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
    by_id: Mapping[str, Topology]

    def with_document(self, document: TopologyDocument) -> Topology:
        """Return the topology of `document`, compiled instead of the document with the same id."""
        documents = [
            document if each.application.id == document.application.id else each for each in self.documents
        ]
        return compile_topologies(documents, self.partitions, self.caller).by_id[document.application.id]


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
