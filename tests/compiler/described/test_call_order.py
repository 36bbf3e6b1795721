"""The order of calls whose nodes have names of users: their indices are missing in a text."""

import re
from itertools import chain

import pytest

from headwater.compiler.described.call_order import CallOrder
from headwater.compiler.described.structure import Structure, parents_first
from headwater.model.nodes import ProcessorNode
from tests.compiler.imported_texts import imported

TABLES = """
topology:
  - table: {topic: a, materialized: one, as: a}
  - table: {topic: b, materialized: two, as: b}
"""


def indices(calls: str) -> dict[str, int]:
    """Return the index of the call of each node with a store that has a user's name."""
    structure = Structure.from_topology(imported(TABLES + calls).nodes)
    nodes = [node for node in structure.nodes.values() if isinstance(node, ProcessorNode) and node.stores]
    found = CallOrder.from_nodes(structure, nodes).index
    return {name: index for name, index in found.items() if not name.startswith("K")}


def test_a_named_join_of_tables_takes_the_indices_between_two_others() -> None:
    calls = """
  - join: {from: a, with: b}
  - join: {from: a, with: b, name: named}
  - leftJoin: {from: a, with: b}
"""
    assert indices(calls) == {"named-join-this": 7, "named-join-other": 7}


def test_a_named_join_with_no_missing_indices_was_the_last_call() -> None:
    calls = """
  - join: {from: a, with: b}
  - leftJoin: {from: a, with: b}
  - join: {from: a, with: b, name: named}
"""
    assert indices(calls) == {"named-join-this": 10, "named-join-other": 10}


def test_of_two_calls_of_one_length_the_one_with_later_inputs_is_placed_first() -> None:
    calls = """
  - filter: {from: b, materialized: three, as: late}
  - join: {from: late, with: late, name: first}
  - filter: {from: b, materialized: four}
  - join: {from: a, with: a, name: second}
"""
    found = indices(calls)
    assert found["first-join-this"] == 5
    assert found["second-join-this"] == 9


def test_the_longest_call_takes_the_longest_gap() -> None:
    calls = """
  - join: {from: a, with: b, foreignKey: true, materialized: three, name: foreign}
  - filter: {from: b, materialized: four}
  - join: {from: a, with: b, name: equal}
"""
    found = indices(calls)
    assert found["foreign-subscription-join-foreign"] == 4
    assert found["equal-join-this"] == 18


@pytest.mark.parametrize("key", ["", ", foreignKey: true"])
def test_the_generated_store_of_the_result_shows_the_index_of_the_call(key: str) -> None:
    calls = f"""
  - join: {{from: a, with: b, name: early, materialized: three{key}}}
  - filter: {{from: a, materialized: four}}
  - join: {{from: a, with: b, name: named, materialized: {{}}{key}}}
"""
    found = indices(calls)
    after = 4 + (13 if key else 3) + 1
    assert {
        index for name, index in found.items() if re.match(r"named-(join-this|subscription-join)", name)
    } == {after}


def test_nodes_of_a_cycle_are_not_placed_below_each_other() -> None:
    parents = {
        "source": (),
        "one": ("source", "two"),
        "two": ("one",),
        "below": ("two",),
        "sink": ("source",),
    }
    assert set(parents_first(parents)) == {"source", "sink"}
    assert set(chain(*parents.values())) - set(parents_first(parents)) == {"one", "two"}
