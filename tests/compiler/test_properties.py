"""Properties of every compiled topology."""

import attrs
from hypothesis import given
from hypothesis import strategies as st

from headwater.compiler.pipeline import compile_nodes
from headwater.describe import read_description, write_description
from headwater.model.compiled import CompiledApplication, TopicKind
from headwater.model.nodes import NodeTopology, SourceNode
from headwater.model.problems import Location, errors
from headwater.model.topology import Application, Protocol, TopologyDocument
from tests.compiler.generated_nodes import node_topologies

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
