"""Topologies that the brokers have become the text of the application, or are refused with a reason."""

from collections.abc import Callable, Mapping

import attrs
import pytest

from headwater.describe import (
    UnusableTopologyError,
    pushed_topology,
    read_description,
    without_prefix,
    write_description,
)
from headwater.describe.read import FoundTopology, different_topologies
from headwater.model.nodes import NodeTopology, SinkNode, SourceNode
from headwater.model.streams_groups import (
    DescriptionStatus,
    GroupSubtopology,
    NodeType,
    PushedNode,
    PushedTopology,
    StreamsGroup,
)
from tests.describe.recorded_topologies import recorded_topologies
from tests.oracle.recorded import cases_with
from tests.streams_groups.groups import group_of_text

CASES = cases_with("describe.txt")


def _has_pattern(topology: NodeTopology) -> bool:
    """Return whether the brokers do not have all of it."""
    return any(isinstance(node, SourceNode) and node.pattern for node in topology.nodes)


RECORDED = {case.name: read_description(case.text("describe.txt"))[0] for case in CASES}
COUNTED = RECORDED["group_by_renamed"]
GROUP = group_of_text("app", COUNTED)


@pytest.mark.parametrize("name", [name for name, each in RECORDED.items() if not _has_pattern(each)])
def test_recorded_texts_are_restored(name: str) -> None:
    assert _is_restored(RECORDED[name])


def _is_restored(topology: NodeTopology) -> bool:
    """Return whether the topology has the same nodes again; lists may have another order."""
    found = pushed_topology(group_of_text("app", topology))
    same = different_topologies((FoundTopology(topology), FoundTopology(found)))
    assert read_description(write_description(found))[0] == found
    return len(same) == 1 and found.printed_groups == topology.printed_groups


def test_topologies_of_the_processor_api_are_restored() -> None:
    restored = 0
    for _, text in recorded_topologies():
        topology = read_description(text)[0]
        if not _has_pattern(topology):
            assert _is_restored(topology)
            restored += 1
    assert restored


def changed(change: Callable[[PushedNode], PushedNode]) -> StreamsGroup:
    """Return the group with changed nodes."""
    assert GROUP.nodes is not None
    nodes = {id_: tuple(change(node) for node in nodes) for id_, nodes in GROUP.nodes.subtopologies.items()}
    return attrs.evolve(GROUP, nodes=PushedTopology(nodes))


def _cycle(node: PushedNode) -> PushedNode:
    is_processor = node.type is NodeType.PROCESSOR
    return attrs.evolve(node, successors=(*node.successors, node.name)) if is_processor else node


def _with_ids(ids: Mapping[str, str]) -> StreamsGroup:
    assert GROUP.nodes is not None
    return attrs.evolve(
        GROUP,
        subtopologies=tuple(attrs.evolve(part, id=ids.get(part.id, part.id)) for part in GROUP.subtopologies),
        nodes=PushedTopology({ids.get(id_, id_): nodes for id_, nodes in GROUP.nodes.subtopologies.items()}),
    )


SOURCE = PushedNode(name="s", type=NodeType.SOURCE, topics=("in",))


def _with_nodes(*nodes: PushedNode, sinks: tuple[str, ...] = ()) -> StreamsGroup:
    part = GroupSubtopology(id="0", sources=("in",), repartition_sinks=sinks)
    return attrs.evolve(GROUP, subtopologies=(part,), nodes=PushedTopology({"0": nodes}))


REFUSED = {
    "no plugin": (
        attrs.evolve(GROUP, nodes=None, status=DescriptionStatus.NOT_STORED),
        "no client has sent the nodes",
    ),
    "old brokers": (
        attrs.evolve(GROUP, nodes=None, status=DescriptionStatus.NOT_REQUESTED),
        "the brokers have no nodes",
    ),
    "broken plugin": (
        attrs.evolve(GROUP, nodes=None, status=DescriptionStatus.ERROR),
        "the plugin of the brokers could not",
    ),
    "pattern": (
        changed(lambda node: attrs.evolve(node, topics=())),
        "reads a pattern of topics",
    ),
    "unknown successor": (
        changed(lambda node: attrs.evolve(node, successors=(*node.successors, "gone"))),
        "names gone, which the brokers do not have",
    ),
    "cycle": (changed(_cycle), "its nodes are a cycle"),
    "a source after another node": (
        _with_nodes(attrs.evolve(SOURCE, name="a", successors=("s",)), SOURCE),
        "node s has nodes before it",
    ),
    "a processor after no node": (
        _with_nodes(SOURCE, PushedNode(name="a", type=NodeType.PROCESSOR)),
        "node a has no node before it",
    ),
    "an internal topic without a name": (
        _with_nodes(SOURCE, sinks=("app-",)),
        "does not begin with the application id and a name",
    ),
    "same names": (changed(lambda node: attrs.evolve(node, name="same")), "a node twice"),
    "line break": (
        changed(
            lambda node: attrs.evolve(
                node,
                name=f"{node.name}\n    Sink: x (topic: y)",
                successors=tuple(f"{name}\n    Sink: x (topic: y)" for name in node.successors),
            )
        ),
        "cannot be written as a text",
    ),
    "other topics": (
        changed(lambda node: attrs.evolve(node, topics=tuple(f"{topic}2" for topic in node.topics))),
        "read other topics than the group",
    ),
    "other sub-topologies": (
        attrs.evolve(GROUP, subtopologies=GROUP.subtopologies[:1]),
        "other sub-topologies",
    ),
    "id of a group is not a prefix": (
        attrs.evolve(GROUP, id="another"),
        "does not begin with the application id",
    ),
    "ids that are not numbers": (_with_ids({"0": "zero"}), "are not numbers"),
    "a long id": (_with_ids({"0": "9" * 5_000}), "are not numbers"),
    "ids with a gap": (_with_ids({"1": "5"}), "not consecutive"),
}


@pytest.mark.parametrize("name", REFUSED)
def test_incomplete_and_hostile_topologies_are_refused(name: str) -> None:
    group, reason = REFUSED[name]
    with pytest.raises(UnusableTopologyError) as refused:
        pushed_topology(group)
    assert reason in refused.value.reason


def test_a_topic_of_a_user_that_is_named_like_an_internal_one_is_refused() -> None:
    text = """Topologies:
   Sub-topology: 0
    Source: s (topics: [in])
      --> k
    Sink: k (topic: app-own-repartition)
      <-- s

  Sub-topology: 1
    Source: t (topics: [app-own-repartition])
      --> none

"""
    group = group_of_text("app", read_description(text)[0])
    own = attrs.evolve(
        group,
        subtopologies=tuple(
            attrs.evolve(
                part,
                sources=tuple(sorted({*part.sources, *(t.name for t in part.repartition_sources)})),
                repartition_sources=(),
                repartition_sinks=(),
            )
            for part in group.subtopologies
        ),
    )
    with pytest.raises(UnusableTopologyError) as refused:
        pushed_topology(own)
    assert "app-own-repartition is named like an internal topic" in refused.value.reason


def test_a_sink_that_decides_its_topic_for_each_record_is_kept() -> None:
    text = """Topologies:
   Sub-topology: 0
    Source: s (topics: [in])
      --> k
    Sink: k (extractor class: com.acme.Router@1f)
      <-- s

"""
    (_, sink) = pushed_topology(group_of_text("app", read_description(text)[0])).nodes
    assert isinstance(sink, SinkNode)
    assert (sink.topic, sink.extractor) == (None, "not known")


TOOL = """Topologies:
   Sub-topology: 0
    Source: KSTREAM-SOURCE-0000000000 (topics: [in])
      --> by
    Processor: by (stores: [])
      --> by-repartition-filter
      <-- KSTREAM-SOURCE-0000000000
    Processor: by-repartition-filter (stores: [])
      --> by-repartition-sink
      <-- by
    Sink: by-repartition-sink (topic: busy-by-repartition)
      <-- by-repartition-filter

   Sub-topology: 1
    Processor: KSTREAM-AGGREGATE-0000000002 (stores: [counts])
      --> none
      <-- by-repartition-source
    Source: by-repartition-source (topics: [busy-by-repartition])
      --> KSTREAM-AGGREGATE-0000000002

   Sub-topology: 3
    Source: KSTREAM-SOURCE-0000000010 (topics: [other])
      --> KSTREAM-SINK-0000000011
    Sink: KSTREAM-SINK-0000000011 (topic: busy-x-repartition)
      <-- KSTREAM-SOURCE-0000000010

   Sub-topology: 4
    Source: KSTREAM-SOURCE-0000000012 (topics: [busy-x-repartition])
      --> none

   Sub-topology: 4 for global store (will not generate tasks)
    Source: KSTREAM-SOURCE-0000000008 (topics: [rates])
      --> KTABLE-SOURCE-0000000009
    Processor: KTABLE-SOURCE-0000000009 (stores: [rates])
      --> none
      <-- KSTREAM-SOURCE-0000000008


"""
"""What `kafka-streams-groups.sh --describe --topology` of Kafka 4.4 prints for the application `busy`."""


def test_the_text_of_kafkas_tool_is_that_of_the_application() -> None:
    topology, problems = read_description(TOOL)
    assert not problems
    found = without_prefix(topology, "busy")
    topics = {node.name: node.topic for node in found.nodes if isinstance(node, SinkNode)}
    assert topics == {
        "by-repartition-sink": "by-repartition",
        "KSTREAM-SINK-0000000011": "busy-x-repartition",  # a user's topic
    }
    assert found.printed_groups["KTABLE-SOURCE-0000000009"] == 2
    assert without_prefix(found, "busy") == found


def test_texts_of_applications_stay_as_they_are() -> None:
    for topology in RECORDED.values():
        assert without_prefix(topology, "app") is topology


def test_a_text_without_a_block_is_still_incomplete() -> None:
    first = TOOL.index("   Sub-topology: 1")
    _, problems = read_description(TOOL[:first] + TOOL[TOOL.index("   Sub-topology: 3") :])
    assert any("does not follow" in problem.summary for problem in problems)
