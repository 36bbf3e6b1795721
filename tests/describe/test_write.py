"""Topologies are written as `Topology#describe()` of Kafka Streams writes them."""

import time

import pytest

from headwater.describe import write_description
from headwater.model.nodes import Node, NodeTopology, ProcessorNode, SinkNode, SourceNode
from tests.describe.recorded_topologies import recorded_topologies


@pytest.mark.parametrize(("topology", "text"), recorded_topologies())
def test_text_equals_that_of_kafka_streams(topology: NodeTopology, text: str) -> None:
    assert write_description(topology) == text


def test_an_empty_topology_has_a_first_line_and_a_blank() -> None:
    assert write_description(NodeTopology(())) == "Topologies:\n "


def test_a_named_topology_has_its_name_in_the_text() -> None:
    assert write_description(NodeTopology((), name="billing")) == "Topology: billing:\n "


def test_global_stores_take_an_id_and_end_without_an_empty_line() -> None:
    topology = NodeTopology(
        (
            SourceNode("g-source", ("g",)),
            ProcessorNode("g", ("g-source",), ("g-store",)),
            SourceNode("s", pattern="in-(a|b), c\\)"),
            SinkNode("dynamic", ("s",), extractor="com.example.App$$Lambda/0x0000@1b2c3d"),
        ),
        global_nodes=frozenset({"g-source"}),
    )
    assert write_description(topology) == (
        "Topologies:\n"
        "   Sub-topology: 0 for global store (will not generate tasks)\n"
        "    Source: g-source (topics: [g])\n"
        "      --> g\n"
        "    Processor: g (stores: [g-store])\n"
        "      --> none\n"
        "      <-- g-source\n"
        "  Sub-topology: 1\n"
        "    Source: s (topics: in-(a|b), c\\))\n"
        "      --> dynamic\n"
        "    Sink: dynamic (extractor class: com.example.App$$Lambda/0x0000@1b2c3d)\n"
        "      <-- s\n"
        "\n"
    )


def test_an_exponential_number_of_paths_takes_linear_time() -> None:
    nodes: list[Node] = [SourceNode("s", ("in",))]
    for step in range(300):
        above = nodes[-1].name
        nodes += [ProcessorNode(f"l{step}", (above,)), ProcessorNode(f"r{step}", (above,))]
        nodes.append(ProcessorNode(f"m{step}", (f"l{step}", f"r{step}")))
    started = time.process_time()
    text = write_description(NodeTopology(tuple(nodes)))
    assert text.count("Processor: ") == 900
    assert time.process_time() - started < 2


def test_a_thousand_subtopologies_are_written_in_time() -> None:
    nodes: list[Node] = []
    for part in range(1000):
        nodes += [
            SourceNode(f"source-{part}", (f"topic-{part}",)),
            ProcessorNode(f"processor-{part}", (f"source-{part}",), (f"store-{part}",)),
            SinkNode(f"sink-{part}", (f"processor-{part}",), topic=f"topic-{part + 1}"),
        ]
    started = time.process_time()
    assert write_description(NodeTopology(tuple(nodes))).count("Sub-topology: ") == 1000
    assert time.process_time() - started < 1


def test_parents_that_do_not_exist_are_omitted() -> None:
    topology = NodeTopology((SourceNode("s", ("t",)), ProcessorNode("p", ("s", "nowhere"))))
    assert write_description(topology).endswith(
        "    Processor: p (stores: [])\n      --> none\n      <-- s\n\n"
    )
