"""Which nodes are one sub-topology, and the ids of sub-topologies."""

from headwater.compiler.topic_groups import node_groups
from headwater.model.nodes import (
    ChangelogKind,
    Node,
    NodeTopology,
    ProcessorNode,
    SinkNode,
    SourceNode,
    StateStore,
)


def names(topology: NodeTopology) -> list[list[str]]:
    return [[node.name for node in group.nodes] for group in node_groups(topology)]


TWO: tuple[Node, ...] = (
    SourceNode("a", ("a",)),
    ProcessorNode("p", ("a",), ("s",)),
    SourceNode("b", ("b",)),
    ProcessorNode("q", ("b",), ("s",)),
    SinkNode("out", ("q",), topic="a"),
)


def test_processors_that_share_a_store_are_one_group() -> None:
    assert names(NodeTopology(TWO)) == [["a", "p", "b", "q", "out"]]


def test_a_topic_between_a_sink_and_a_source_does_not_merge_subtopologies() -> None:
    apart = tuple(node if node.name != "q" else ProcessorNode("q", ("b",)) for node in TWO)
    assert names(NodeTopology(apart)) == [["a", "p"], ["b", "q", "out"]]


def test_a_store_added_again_drops_the_connected_processors() -> None:
    store = StateStore("s", ChangelogKind.KEY_VALUE, connections=(frozenset({"p"}), frozenset({"q"})))
    assert names(NodeTopology(TWO, (store,))) == [["a", "p"], ["b", "q", "out"]]


def test_ids_follow_the_first_declared_node_and_count_global_groups() -> None:
    nodes = (
        SourceNode("late", ("l",)),
        SourceNode("g-source", ("g",)),
        ProcessorNode("g", ("g-source",), ("gs",)),
        SourceNode("early", ("e",)),
        ProcessorNode("join", ("early", "late")),
    )
    groups = node_groups(NodeTopology(nodes, global_nodes=frozenset({"g-source"})))
    assert [(group.id, group.is_global, len(group.nodes)) for group in groups] == [
        (0, False, 3),
        (1, True, 2),
    ]
