"""The topics of each sub-topology (`InternalTopologyBuilder#subtopologyToTopicsInfo`).

Internal topics get the application id as prefix; patterns are resolved to the topics that match.
"""

from collections.abc import Iterable, Mapping
from itertools import pairwise

import attrs

from headwater.compiler.java.collections import string_set_order
from headwater.compiler.java.patterns import JavaPattern, UntranslatablePatternError
from headwater.compiler.messages import invalid_pattern, matched_twice, reads_itself, unsupported_pattern
from headwater.model.nodes import (
    NodeTopology,
    ProcessorNode,
    RepartitionTopic,
    SinkNode,
    SourceNode,
    StateStore,
)
from headwater.model.problems import Problem


@attrs.frozen
class NodeGroup:
    """The nodes of one sub-topology in declaration order."""

    id: int
    nodes: tuple[SourceNode | ProcessorNode | SinkNode, ...]
    is_global: bool = False


def node_groups(topology: NodeTopology) -> tuple[NodeGroup, ...]:
    """Return the groups by id, which is the order of their first declared nodes.

    The groups of an imported text are those in the text.
    """
    group_of = topology.printed_groups or _unite_nodes(topology)
    members: dict[int, list[SourceNode | ProcessorNode | SinkNode]] = {}
    for node in topology.nodes:
        members.setdefault(group_of[node.name], []).append(node)
    return tuple(
        NodeGroup(number, tuple(nodes), any(node.name in topology.global_nodes for node in nodes))
        for number, nodes in sorted(members.items())
    )


def _unite_nodes(topology: NodeTopology) -> dict[str, int]:
    """Return node → group id; a node is in the group of its parents and of processors that share a store."""
    union = _Union(node.name for node in topology.nodes)
    users: dict[str, list[str]] = {}
    for node in topology.nodes:
        if isinstance(node, SourceNode):
            continue
        for parent in node.parents:
            union.unite_groups(node.name, parent)
        if isinstance(node, ProcessorNode):
            for store in node.stores:
                users.setdefault(store, []).append(node.name)
    connections = {store.name: store.connections for store in topology.stores if store.connections}
    for store_name, processors in users.items():
        for together in connections.get(store_name, (processors,)):
            for one, other in pairwise(together):
                union.unite_groups(one, other)
    ids: dict[str, int] = {}
    return {node.name: ids.setdefault(union.root(node.name), len(ids)) for node in topology.nodes}


class _Union:
    """Union-find with path halving."""

    def __init__(self, names: Iterable[str]) -> None:
        self._parent = {name: name for name in names}

    def root(self, name: str) -> str:
        parent = self._parent
        while parent[name] != name:
            parent[name] = parent[parent[name]]
            name = parent[name]
        return name

    def unite_groups(self, one: str, other: str) -> None:
        """Merge two groups; ignore names of nodes that do not exist, as in an invalid topology."""
        if one in self._parent and other in self._parent:
            self._parent[self.root(other)] = self.root(one)


_HIDDEN_FROM_CONSUMERS = frozenset({"__consumer_offsets", "__transaction_state", "__share_group_state"})
"""Topics that a pattern subscription excludes (`exclude.internal.topics`)."""


@attrs.frozen
class Naming:
    """The names of internal topics: the common `prefix`, and the repartition topics by name without it."""

    prefix: str
    internal: Mapping[str, RepartitionTopic]

    @classmethod
    def from_topology(cls, topology: NodeTopology, prefix: str) -> "Naming":
        full = f"{prefix}-{topology.name}" if topology.name else prefix
        return cls(full, {topic.name: topic for topic in topology.repartition_topics})

    def topic(self, name: str) -> str:
        return f"{self.prefix}-{name}" if name in self.internal else name

    def changelog(self, store: str) -> str:
        return f"{self.prefix}-{store}-changelog"


@attrs.frozen
class TopicGroup:
    """The topics of a sub-topology (`TopicsInfo`), with full names.

    `sources` are external and repartition topics; `repartition` are the latter in the order in which the
    assignor iterates over them. A topic of a global table is a source of the global sub-topology only, also
    if a pattern matches it. `changelogs`: changelog topic → store, including source topics that serve as
    changelog.
    """

    id: int
    nodes: NodeGroup
    sources: tuple[str, ...]
    sinks: tuple[str, ...]
    repartition: Mapping[str, RepartitionTopic]
    changelogs: Mapping[str, StateStore]
    stores: tuple[str, ...]
    patterns: tuple[str, ...] = ()

    @property
    def is_global(self) -> bool:
        return self.nodes.is_global


@attrs.frozen
class Sources:
    """Source node → full names of the topics that it reads, and `problems` of patterns."""

    topics: Mapping[str, tuple[str, ...]]
    problems: tuple[Problem, ...] = ()


def resolve_sources(topology: NodeTopology, naming: Naming, known_topics: Iterable[str]) -> Sources:
    """Return the full topic names of each source node; patterns are matched against `known_topics`."""
    topics: dict[str, tuple[str, ...]] = {}
    problems: list[Problem] = []
    matched_by: dict[str, SourceNode] = {}
    known: tuple[str, ...] | None = None
    for node in topology.nodes:
        if not isinstance(node, SourceNode):
            continue
        if node.pattern is None:
            topics[node.name] = tuple(dict.fromkeys(map(naming.topic, node.topics)))
            continue
        if known is None:
            known = tuple(sorted(set(known_topics) - _HIDDEN_FROM_CONSUMERS))
        try:
            pattern = JavaPattern(node.pattern)
            found = tuple(topic for topic in known if pattern.matches(topic))
        except UntranslatablePatternError as reason:
            problems.append(
                invalid_pattern(node, reason) if reason.is_invalid_java else unsupported_pattern(node, reason)
            )
            continue
        for topic in found:
            other = matched_by.setdefault(topic, node)
            if other is not node:
                problems.append(matched_twice(topic, node, other))
            if topic.startswith(f"{naming.prefix}-"):
                problems.append(reads_itself(topic, node))
        topics[node.name] = found
    return Sources(topics, tuple(problems))


def topic_groups(
    topology: NodeTopology, groups: Iterable[NodeGroup], sources: Sources, naming: Naming
) -> tuple[TopicGroup, ...]:
    """Return one topic group for each node group, including global ones, which have no tasks."""
    stores = {store.name: store for store in topology.stores}
    owners = {name: store.connections[-1] for name, store in stores.items() if store.connections}
    of_global = {topic for node in topology.global_nodes for topic in sources.topics.get(node, ())}
    # Only patterns: Kafka Streams compares names without the application id, so a global table that names a
    # repartition topic in full leaves it to its readers.
    patterns = {node.name for node in topology.nodes if isinstance(node, SourceNode) and node.pattern}
    read = {
        node: tuple(topic for topic in topics if topic not in of_global) if node in patterns else topics
        for node, topics in sources.topics.items()
    }
    return tuple(_topic_group(group, stores, owners, Sources(read), naming) for group in groups)


def _topic_group(
    group: NodeGroup,
    stores: Mapping[str, StateStore],
    owners: Mapping[str, frozenset[str]],
    sources: Sources,
    naming: Naming,
) -> TopicGroup:
    read: dict[str, None] = {}
    written: dict[str, None] = {}
    repartition: dict[str, RepartitionTopic] = {}
    used: dict[str, None] = {}
    owned: dict[str, StateStore] = {}
    patterns: list[str] = []
    for node in group.nodes:
        if isinstance(node, SourceNode):
            read.update(dict.fromkeys(sources.topics.get(node.name, ())))
            patterns.extend([node.pattern] if node.pattern is not None else [])
        elif isinstance(node, SinkNode):
            if node.topic is not None:
                written[naming.topic(node.topic)] = None
        else:
            used.update(dict.fromkeys(node.stores))
            _add_changelogs(node, stores, owners, owned, naming)
    internal = {naming.topic(name): topic for name, topic in _internal_of(group, naming)}
    for name in string_set_order(internal):
        repartition[name] = internal[name]
    return TopicGroup(
        id=group.id,
        nodes=group,
        sources=tuple(read),
        sinks=tuple(written),
        repartition=repartition,
        changelogs={} if group.is_global else owned,
        stores=tuple(used),
        patterns=tuple(patterns),
    )


def _internal_of(group: NodeGroup, naming: Naming) -> Iterable[tuple[str, RepartitionTopic]]:
    for node in group.nodes:
        if isinstance(node, SourceNode):
            for name in node.topics:
                if name in naming.internal:
                    yield name, naming.internal[name]


def _add_changelogs(
    node: ProcessorNode,
    stores: Mapping[str, StateStore],
    owners: Mapping[str, frozenset[str]],
    owned: dict[str, StateStore],
    naming: Naming,
) -> None:
    for name in node.stores:
        store = stores.get(name)
        if store is None or (name in owners and node.name not in owners[name]):
            continue
        if store.changelog_topic is not None:
            owned[store.changelog_topic] = store
        elif store.logged:
            owned[naming.changelog(name)] = store
