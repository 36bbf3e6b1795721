"""What the nodes of a described text show: joins, internal topics, and the sources above a node."""

import pytest

from headwater.compiler.described.structure import Structure
from headwater.model.nodes import NodeTopology, ProcessorNode, SinkNode, SourceNode
from tests.compiler.imported_texts import JOINS, STORES, imported

JOIN = "KSTREAM-JOINTHIS-0000000004"


def joined() -> Structure:
    """Return the structure of a windowed join of two streams, whose result is joined with a table."""
    return Structure.from_topology(imported(JOINS).nodes)


def test_a_topic_is_internal_if_it_is_written_and_read_and_named_like_one() -> None:
    nodes = (
        SourceNode("in", ("in",)),
        SinkNode("to-a", ("in",), topic="a-repartition"),
        SinkNode("to-b", ("in",), topic="b-repartition"),
        SinkNode("to-c", ("in",), topic="c"),
        SourceNode("a", ("a-repartition",)),
        SourceNode("c", ("c",)),
    )
    assert Structure.from_topology(NodeTopology(nodes)).internal_topics == ("a-repartition",)


def test_stores_of_a_windowed_join_are_recognized_by_name_and_users() -> None:
    structure = joined()
    assert {store for store in structure.users if structure.is_join_store(store)} == set(STORES)
    alone = ProcessorNode("scored", ("in",), ("s-this-join-store",))
    assert not Structure.from_topology(NodeTopology((SourceNode("in", ("in",)), alone))).is_join_store(
        alone.stores[0]
    )


@pytest.mark.parametrize(("parent", "is_join"), [("KSTREAM-WINDOWED-0000000002", True), ("in", False)])
def test_a_node_named_like_a_join_is_one_below_a_windowed_node_only(parent: str, *, is_join: bool) -> None:
    nodes = (
        SourceNode("in", ("in",)),
        ProcessorNode("KSTREAM-WINDOWED-0000000002", ("in",), ("store",)),
        ProcessorNode(JOIN, (parent,), ("other",)),
    )
    assert Structure.from_topology(NodeTopology(nodes)).is_join(JOIN) is is_join


def test_the_sources_above_a_node_end_at_stops() -> None:
    nodes = (
        SourceNode("a", ("a",)),
        SourceNode("b", ("b",)),
        ProcessorNode("left", ("a",)),
        ProcessorNode("merged", ("left", "b")),
        ProcessorNode("last", ("merged",)),
    )
    structure = Structure.from_topology(NodeTopology(nodes))
    assert structure.upstream_nodes(["merged"]) == {"a", "b", "left", "merged"}
    assert structure.find_origins(frozenset()).upstream_sources(["last"]) == {"a", "b"}
    assert structure.find_origins(frozenset({"left"})).upstream_sources(["last"]) == {"b"}
    assert structure.find_origins(frozenset(), {"left": ["b"]}).upstream_sources(["left"]) == {"a", "b"}


def test_nodes_in_a_cycle_of_a_damaged_text_have_no_sources() -> None:
    nodes = (SourceNode("a", ("a",)), ProcessorNode("p", ("a", "q")), ProcessorNode("q", ("p",)))
    structure = Structure.from_topology(NodeTopology(nodes))
    assert structure.upstream_nodes(["q"]) == {"a", "p", "q"}
    assert structure.find_origins(frozenset()).upstream_sources(["q"]) == frozenset()
