"""Properties of every compiled topology."""

import attrs
from hypothesis import given
from hypothesis import strategies as st

from headwater.compiler.pipeline import compile_nodes
from headwater.describe import read_description, write_description
from headwater.model.compiled import CompiledApplication, TopicKind
from headwater.model.nodes import (
    ChangelogKind,
    Node,
    NodeTopology,
    ProcessorNode,
    RepartitionTopic,
    SinkNode,
    SourceNode,
    StateStore,
)
from headwater.model.problems import Location, errors
from headwater.model.topology import Application, Protocol, TopologyDocument

_KINDS = st.sampled_from(list(ChangelogKind))


@attrs.define
class _Draft:
    """The parts drawn so far."""

    nodes: list[Node] = attrs.field(factory=list)
    parents: list[str] = attrs.field(factory=list)
    repartitions: list[RepartitionTopic] = attrs.field(factory=list)


@st.composite
def node_topologies(draw: st.DrawFn) -> NodeTopology:
    """Draw up to 30 nodes over topics t0…t4, with repartition topics, stores and co-partition groups."""
    draft = _Draft()
    for number in range(draw(st.integers(1, 30))):
        kind = draw(st.sampled_from("srppk")) if draft.parents else "s"
        prefix, distance = draw(st.sampled_from(["KSTREAM-X", "named"])), draw(st.sampled_from([1, 11]))
        name = f"{prefix}-{number * distance:010d}"
        name = name if name not in {node.name for node in draft.nodes} else f"{name}-{number}"
        if kind == "s":
            draft.nodes.append(SourceNode(name, (f"t{draw(st.integers(0, 4))}-{number}",)))
            draft.parents.append(name)
        elif kind == "r":
            _add_repartition(draw, draft, name)
        elif kind == "p":
            parents = draw(st.lists(st.sampled_from(draft.parents), min_size=1, max_size=4))
            stores = draw(
                st.lists(st.sampled_from([f"store-{i}" for i in range(6)]), max_size=2, unique=True)
            )
            draft.nodes.append(ProcessorNode(name, tuple(parents), tuple(stores)))
            draft.parents.append(name)
        else:
            draft.nodes.append(SinkNode(name, (draw(st.sampled_from(draft.parents)),), topic=f"out-{number}"))
    return _finished(draw, draft)


def _add_repartition(draw: st.DrawFn, draft: _Draft, name: str) -> None:
    topic = f"{name}-repartition"
    draft.nodes.append(SinkNode(f"{topic}-sink", (draw(st.sampled_from(draft.parents)),), topic=topic))
    draft.nodes.append(SourceNode(f"{topic}-source", (topic,)))
    draft.parents.append(f"{topic}-source")
    draft.repartitions.append(
        RepartitionTopic(topic, partitions=draw(st.one_of(st.none(), st.none(), st.integers(1, 4))))
    )


def _finished(draw: st.DrawFn, draft: _Draft) -> NodeTopology:
    used = {store for node in draft.nodes if isinstance(node, ProcessorNode) for store in node.stores}
    stores = tuple(StateStore(name, draw(_KINDS), base_ms=1000) for name in sorted(used))
    sources = [node.name for node in draft.nodes if isinstance(node, SourceNode)]
    groups = draw(st.lists(st.frozensets(st.sampled_from(sources), min_size=1, max_size=3), max_size=4))
    return NodeTopology(
        tuple(draft.nodes),
        stores,
        repartition_topics=tuple(draft.repartitions),
        copartition_groups=tuple(groups),
    )


AT = Location("app.yaml")
COUNTS = st.lists(st.integers(1, 6), min_size=5, max_size=5)
PROTOCOLS = st.sampled_from(Protocol)


def compiled(topology: NodeTopology, counts: list[int], protocol: Protocol) -> CompiledApplication:
    topics = {topic for node in topology.nodes if isinstance(node, SourceNode) for topic in node.topics}
    external = {topic: counts[int(topic[1])] for topic in topics if not topic.endswith("-repartition")}
    return compile_nodes(TopologyDocument(Application("app", AT, protocol)), topology, external)


@given(node_topologies(), COUNTS, PROTOCOLS)
def test_compiling_twice_gives_the_same(
    topology: NodeTopology, counts: list[int], protocol: Protocol
) -> None:
    assert compiled(topology, counts, protocol) == compiled(topology, counts, protocol)


@given(node_topologies(), COUNTS, PROTOCOLS)
def test_every_internal_topic_has_a_count(
    topology: NodeTopology, counts: list[int], protocol: Protocol
) -> None:
    application = compiled(topology, counts, protocol)
    named = {t for part in application.subtopologies for t in part.repartition_topics + part.changelog_topics}
    if not errors(application.problems):
        assert {topic.name for topic in application.internal_topics} == named
    assert all(topic.partitions > 0 for topic in application.internal_topics)


@given(node_topologies(), COUNTS, PROTOCOLS)
def test_changelogs_have_a_partition_for_each_task(
    topology: NodeTopology, counts: list[int], protocol: Protocol
) -> None:
    application = compiled(topology, counts, protocol)
    tasks: dict[int | None, int] = {part.id: part.tasks for part in application.subtopologies}
    for topic in application.internal_topics:
        if topic.kind is TopicKind.CHANGELOG:
            assert topic.partitions == tasks[topic.subtopology]


@given(node_topologies(), COUNTS)
def test_copartitioned_topics_are_equal_or_reported(topology: NodeTopology, counts: list[int]) -> None:
    application = compiled(
        attrs.evolve(topology, copartition_groups=topology.copartition_groups[:1]), counts, Protocol.CLASSIC
    )
    found = {topic.name: topic.partitions for topic in application.internal_topics}
    found |= {topic: counts[int(topic[1])] for topic in application.external_sources}
    reported = {problem.topic for problem in application.problems}
    for group in application.copartition_groups:
        equal = len({found[topic] for topic in group if topic in found}) <= 1
        assert equal or reported & {*group, *(topic.removeprefix("app-") for topic in group)}


@given(node_topologies())
def test_a_written_description_is_read_back(topology: NodeTopology) -> None:
    text = write_description(topology)
    read, problems = read_description(text)
    assert problems == ()
    assert write_description(read) == text
    assert {node.name for node in read.nodes} == {node.name for node in topology.nodes}
