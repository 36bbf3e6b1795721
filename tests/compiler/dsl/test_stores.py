"""Stores of users' store builders."""

import pytest

from tests.compiler.dsl.documents import built

TWO_PROCESSORS = """\
topology:
  - addSource: {name: s, topics: [a]}
  - addSource: {name: t, topics: [b]}
  - addProcessor: {name: p, parents: [s], stores: [%s]}
  - addProcessor: {name: q, parents: [t], stores: [%s]}
"""


def test_a_builder_that_is_added_again_drops_the_connected_processors() -> None:
    """Before 4.2.2 and in 4.3.0 and 4.3.1 (KAFKA-20464)."""
    store = "{name: st, kind: keyValue, shared: true}"
    of_4_3 = 'application: {id: app, kafkaStreams: "4.3"}\n'
    (added,) = built(of_4_3 + TWO_PROCESSORS % (store, store)).stores
    assert added.connections == (frozenset({"p"}), frozenset({"q"}))


def test_a_store_connected_by_name_keeps_one_set_of_processors() -> None:
    topology = "topology:\n  - addStateStore: {name: st, kind: keyValue}\n  - stream: {topic: a}\n"
    (added,) = built(topology + "  - process: {stores: [st]}\n  - process: {stores: [st]}\n").stores
    assert added.connections == ()


@pytest.mark.parametrize(
    ("one", "other"),
    [
        ("{name: st, kind: keyValue}", "{name: st, kind: keyValue}"),
        ("{name: st, kind: keyValue}", "{name: st, kind: keyValue, shared: true}"),
        ("{name: st, kind: keyValue, shared: true}", "{name: st, logging: false, shared: true}"),
    ],
)
def test_builders_that_are_not_one_object_are_different_stores(one: str, other: str) -> None:
    (problem,) = built(TWO_PROCESSORS % (one, other)).problems
    assert problem.summary == "A different store is already added with the name st."


def test_the_supplier_of_a_builder_is_checked() -> None:
    store = "{name: st, kind: window, retention: 5s, windowSize: 6s}"
    problems = built(TWO_PROCESSORS % (store, "{name: other}")).problems
    assert [problem.expected for problem in problems] == ["windowSize at most the retention, 5s"]
