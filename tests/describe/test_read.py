"""Texts of `Topology#describe()` are read as topologies, and written back as they were."""

import attrs
import pytest

from headwater.describe import read_description, read_descriptions, write_description
from headwater.model.nodes import NodeTopology, ProcessorNode, SinkNode, SourceNode
from tests.describe.texts import PLAIN, SMALL, as_log, read, recorded_texts, shuffled


def test_nodes_lists_and_groups_are_read_from_the_text() -> None:
    topology = read(SMALL)
    repartition = "KSTREAM-AGGREGATE-STATE-STORE-0000000002-repartition"
    assert topology.nodes[0] == SourceNode("KSTREAM-SOURCE-0000000000", ("orders",))
    assert topology.nodes[3] == SinkNode(
        "KSTREAM-SINK-0000000004", ("KSTREAM-FILTER-0000000005",), topic=repartition
    )
    assert topology.nodes[5] == ProcessorNode(
        "KSTREAM-AGGREGATE-0000000003",
        ("KSTREAM-SOURCE-0000000006",),
        ("KSTREAM-AGGREGATE-STATE-STORE-0000000002",),
    )
    assert topology.printed_groups["KSTREAM-SOURCE-0000000006"] == 1
    assert topology.listing["KSTREAM-SOURCE-0000000006"] == (("KSTREAM-AGGREGATE-0000000003",), ())


@pytest.mark.parametrize("text", recorded_texts().values(), ids=recorded_texts().keys())
def test_recorded_texts_are_written_back(text: str) -> None:
    assert write_description(read(text)) == text


@pytest.mark.parametrize("text", recorded_texts().values(), ids=recorded_texts().keys())
def test_recorded_texts_are_in_the_computed_order(text: str) -> None:
    computed = attrs.evolve(read(text), listing={}, printed_groups={})
    assert write_description(computed) == text


@pytest.mark.parametrize("seed", range(3))
@pytest.mark.parametrize("text", recorded_texts().values(), ids=recorded_texts().keys())
def test_lists_in_another_order_are_equal_and_written_back(text: str, seed: int) -> None:
    other = shuffled(text, seed)
    topology = read(other)
    assert write_description(topology) == other
    assert {node.name: set(getattr(node, "parents", ())) for node in topology.nodes} == {
        node.name: set(getattr(node, "parents", ())) for node in read(text).nodes
    }


PATTERNS = ["foo-.*", "a(b|c), d\\)", "[a-z]+-topic", "[ab]|[cd]", ".*", " x ", "(topics: [x])", "a) --> b"]


@pytest.mark.parametrize("pattern", PATTERNS)
def test_patterns_may_contain_any_text(pattern: str) -> None:
    text = write_description(NodeTopology((SourceNode("s", pattern=pattern),)))
    topology = read(text)
    assert topology.nodes == (SourceNode("s", pattern=pattern),)
    assert write_description(topology) == text


EXTRACTORS = ["App$$Lambda/0x1@2f", "a (topic: b)", "x) --> y", "two\nlines", "none"]


@pytest.mark.parametrize("extractor", EXTRACTORS)
def test_extractors_may_print_any_text(extractor: str) -> None:
    nodes = (SourceNode("s", ("t",)), SinkNode("k", ("s",), extractor=extractor))
    text = write_description(NodeTopology(nodes))
    assert read(text).nodes == nodes
    assert write_description(read(text)) == text


def test_names_of_the_processor_api_may_contain_commas_and_blanks() -> None:
    nodes = (
        SourceNode("my source, first", ("t",)),
        ProcessorNode("a, b", ("my source, first",)),
        ProcessorNode("a", ("my source, first", "a, b")),
    )
    text = write_description(NodeTopology(nodes))
    topology = read(text)
    assert {node.name for node in topology.nodes} == {node.name for node in nodes}
    assert set(topology.listing["my source, first"][0]) == {"a, b", "a"}
    assert write_description(topology) == text


def test_an_empty_topology_has_no_nodes_and_no_problem() -> None:
    assert read("Topologies:\n ").nodes == ()


def test_global_stores() -> None:
    text = (
        "Topologies:\n   Sub-topology: 0 for global store (will not generate tasks)\n"
        "    Source: S (topics: [g])\n      --> P\n"
        "    Processor: P (stores: [st])\n      --> none\n      <-- S\n"
        "  Sub-topology: 1\n    Source: T (topics: [t])\n      --> none\n\n"
    )
    topology = read(text)
    assert topology.global_nodes == {"S", "P"}
    assert write_description(topology) == text


NAMED = (
    "Topology: first:\n   Sub-topology: 0\n    Source: S (topics: [a])\n      --> none\n\n"
    "Topology: second:\n   Sub-topology: 0\n    Source: S (topics: [b])\n      --> none\n\n"
)


def test_named_topologies_are_read_one_by_one() -> None:
    found = read_descriptions(NAMED)
    assert [(each.nodes.name, each.problems, each.line) for each in found] == [
        ("first", (), 1),
        ("second", (), 6),
    ]
    assert "".join(write_description(each.nodes) for each in found) == NAMED


def test_several_topologies_are_distinguished_by_name() -> None:
    _, problems = read_description(NAMED, "app.txt")
    assert [(problem.expected, problem.found) for problem in problems] == [
        ("one topology", "1 (line 1): first, reads a; 2 (line 6): second, reads b")
    ]
    for choice in ("second", "2"):
        topology, problems = read_description(NAMED, "app.txt", choice)
        assert (topology.name, problems) == ("second", ())
    _, problems = read_description(NAMED, "app.txt", "3")
    assert [problem.summary for problem in problems] == ["The text describes no topology 3."]


def test_repeats_in_another_order_are_equal() -> None:
    text = recorded_texts()["everything_opt_none"]
    assert shuffled(text, 1) != text
    _, problems = read_description(f"{text}\n{shuffled(text, 1)}\n{shuffled(text, 2)}")
    assert problems == ()


def test_a_cut_text_before_the_complete_one_is_listed_as_damaged() -> None:
    _, problems = read_description(f"{SMALL[:300]}\nrotated\n{SMALL}")
    (found,) = [each.found for each in problems if each.expected == "one topology"]
    assert found is not None
    assert "its text is damaged; 2 (line" in found
    topology, problems = read_description(f"{SMALL[:300]}\nrotated\n{SMALL}", topology="2")
    assert (topology, problems) == (PLAIN, ())


def test_a_text_of_before_1_1_is_one_problem() -> None:
    text = (
        "Sub-topologies:\n  Sub-topology: 0\n"
        "    Source: S(topics: plain) --> P\n    Processor: P(stores: [s]) --> K <-- S\n"
        "    Sink: K(topic: out) <-- P\nGlobal Stores:\n  none\n"
    )
    for damaged in (text, as_log(text), text.replace(">", "&gt;").replace("<", "&lt;")):
        _, problems = read_description(damaged)
        assert [problem.summary for problem in problems] == [
            "The text is of a version of Kafka Streams before 1.1."
        ]
