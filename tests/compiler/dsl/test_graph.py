"""The graph of calls: priorities, and what a node takes over from the nodes above it."""

import pytest

from headwater.compiler.dsl.graph import Graph, GraphNode, mark_kept_null_keys, reachable_nodes


def test_each_parent_gives_a_priority_and_the_last_one_counts() -> None:
    graph = Graph()
    one = graph.attach(GraphNode("one"), graph.root)
    two = graph.attach(GraphNode("two"), graph.root)
    merged = graph.attach(GraphNode("merged", is_merge=True), one, two)
    assert [one.priority, two.priority, merged.priority, merged.first_priority] == [0, 1, 3, 3]
    again = graph.attach(merged, one)
    assert (again.priority, again.first_priority) == (4, 3)
    assert list(merged.parents) == [one, two]


@pytest.mark.parametrize(("searches_all", "found"), [(True, "key"), (False, None)])
def test_the_search_for_a_key_change_keeps_the_first_or_the_last_parent(
    *, searches_all: bool, found: str | None
) -> None:
    """A match two calls above the first parent is lost by the search of earlier versions."""
    graph = Graph(searches_all_parents=searches_all)
    key = graph.attach(GraphNode("key", changes_key=True), graph.root)
    filtered = graph.attach(GraphNode("filtered"), key)
    other = graph.attach(GraphNode("other"), graph.root)
    merged = graph.attach(GraphNode("merged", is_merge=True), filtered, other)
    assert (merged.key_changer.name if merged.key_changer else None) == found


def test_a_changed_value_is_no_changed_key() -> None:
    graph = Graph()
    value = graph.attach(GraphNode("value", changes_value=True), graph.root)
    below = graph.attach(GraphNode("below"), value)
    assert below.key_changer is None
    assert below.changer is value


def test_the_grace_is_known_if_each_path_has_a_windowed_aggregation() -> None:
    graph = Graph()
    short = graph.attach(GraphNode("short", grace_ms=5), graph.root)
    long = graph.attach(GraphNode("long", grace_ms=9), graph.root)
    plain = graph.attach(GraphNode("plain"), graph.root)
    assert graph.attach(GraphNode("both"), short, long).window_grace_ms == 9
    assert graph.attach(GraphNode("one"), short, plain).window_grace_ms is None


def test_a_node_is_versioned_like_its_parents_unless_it_says_otherwise() -> None:
    graph = Graph()
    table = graph.attach(GraphNode("table", versioned=True), graph.root)
    assert graph.attach(GraphNode("filtered"), table).is_versioned
    assert not graph.attach(GraphNode("stored", versioned=False), table).is_versioned


def test_nodes_upstream_of_a_join_that_accepts_null_keys_keep_them() -> None:
    graph = Graph()
    source = graph.attach(GraphNode("source"), graph.root)
    repartition = graph.attach(GraphNode("repartition"), source)
    other = graph.attach(GraphNode("other"), source)
    graph.attach(GraphNode("join", relaxes_null_keys=True), repartition)
    mark_kept_null_keys(graph.root)
    assert [node.name for node in reachable_nodes(graph.root) if node.keeps_null_keys] == [
        "root",
        "source",
        "repartition",
    ]
    assert not other.keeps_null_keys


def test_removed_children_are_not_reachable() -> None:
    graph = Graph()
    one = graph.attach(GraphNode("one"), graph.root)
    two = graph.attach(GraphNode("two"), one)
    one.remove_child(two)
    assert (reachable_nodes(graph.root), list(two.parents)) == ([graph.root, one], [])
