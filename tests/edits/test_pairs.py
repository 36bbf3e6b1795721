"""Which operator of a topology is which one of the topology before an edit."""

import pytest

from headwater.planner.edits import OperatorEdit
from tests.edits.sides import changed, of_one, verdicts

_COUNTRIES = """
application: {id: app}
topology:
  - stream: {topic: in, as: s, serdes: {key: string, value: json}}
  - filter: {where: "value.country = 'DE'"}
  - groupByKey:
  - count: {materialized: german}
  - filter: {from: s, where: "value.country = 'FR'"}
  - groupByKey:
  - count: {materialized: french}
"""
_BUYERS = """
application: {id: app}
topology:
  - table: {topic: table, materialized: customer}
  - table: {topic: other, materialized: partner}
  - stream: {topic: in, as: s, serdes: {key: string, value: json}}
  - filter: {where: "value.buyer = 'customer'"}
  - groupByKey:
  - count:
  - filter: {from: s, where: "value.buyer = 'partner'"}
  - groupByKey:
  - count:
"""


def _exchanged(text: str, first: str, second: str) -> str:
    assert first in text
    assert second in text
    return text.replace(first, "EXCHANGED").replace(second, first).replace("EXCHANGED", second)


def _aspects(operators: list[OperatorEdit]) -> list[tuple[str, tuple[str, ...]]]:
    return [(each.aspect, each.stores) for each in operators]


def test_an_exchange_of_two_conditions_is_two_edits() -> None:
    found = of_one(_COUNTRIES, _exchanged(_COUNTRIES, "'DE'", "'FR'"))

    assert _aspects(changed(found)) == [("condition", ("german",)), ("condition", ("french",))]


@pytest.mark.parametrize("added", ["  - peek: {from: s}\n", "  - filter: {from: s, where: value.x > 1}\n"])
def test_an_exchange_is_found_if_numbers_shift(added: str) -> None:
    exchanged = _exchanged(_COUNTRIES, "'DE'", "'FR'")
    found = of_one(
        _COUNTRIES, exchanged.replace("  - filter: {where", f"{added}  - filter: {{from: s, where")
    )

    assert {store for each in changed(found) for store in each.stores} == {"german", "french"}


def test_a_literal_that_is_the_name_of_a_store_is_no_name() -> None:
    found = of_one(_BUYERS, _exchanged(_BUYERS, "'customer'", "'partner'"))

    assert sorted(verdicts(found).values()) == ["kept", "kept", "reset", "reset"]


_EQUAL = """
application: {id: app}
topology:
  - stream: {topic: in, as: a}
  - stream: {topic: other, as: b}
  - filter: {from: a, where: value > 1, name: large}
  - mapValues: {value: value + 1}
  - to: first
  - filter: {from: b, where: value > 2, name: larger}
  - mapValues: {value: value + 1}
  - to: second
"""
_FIRST = _EQUAL[_EQUAL.index("  - filter") : _EQUAL.index("  - filter: {from: b")]


def test_equal_operators_in_another_order_have_the_same_inputs() -> None:
    head, first, second = _EQUAL.partition("  - filter: {from: a")[0], _FIRST, _EQUAL.split(_FIRST)[1]
    edited = f"{head}  - peek: {{from: a}}\n{second}{first}".replace("value > ", "value >= ")

    assert {each.aspect for each in changed(of_one(_EQUAL, edited))} == {"condition"}


def test_the_removal_of_the_first_of_two_equal_operators_is_no_other_input() -> None:
    edited = _EQUAL.replace(_FIRST, "").replace("value > 2", "value > 3")

    assert {each.aspect for each in changed(of_one(_EQUAL, edited))} == {"condition"}


_REPLACED = """
application: {id: app}
topology:
  - table: {topic: table, as: t, materialized: t, serdes: {key: string, value: json}}
  - stream: {topic: in, as: s, serdes: {key: string, value: json}}
  - mapValues: {from: s, value: value.amount}
  - join: {with: t}
  - groupByKey:
  - reduce: {add: total + value, materialized: sums}
"""


@pytest.mark.parametrize("added", ["", "  - peek: {from: s}\n"])
@pytest.mark.parametrize(
    ("old", "new", "expected"),
    [
        ("- join", "- leftJoin", ("kind", "inner", "left")),
        ("- reduce: {", '- aggregate: {init: "0", ', ("init", None, "0")),
        ("- mapValues: {from: s, value", "- filter: {from: s, where", None),
    ],
)
def test_an_operator_with_another_generated_name_is_named(
    old: str, new: str, expected: tuple[str, str | None, str] | None, added: str
) -> None:
    edited = _REPLACED.replace(old, new).replace("  - mapValues", f"{added}  - mapValues")
    if added and expected is None:
        edited = edited.replace("  - filter", f"{added}  - filter")
    found = [(each.aspect, each.before, each.after) for each in changed(of_one(_REPLACED, edited))]

    if expected is None:
        (aspect, before, after), *others = found
        assert others == [("value", "value.amount", None), ("condition", None, "value.amount")]
        assert (aspect, before, str(after)[:15]) == (
            "operator",
            "KSTREAM-MAPVALUES-0000000003",
            "KSTREAM-FILTER-",
        )
    else:
        assert expected in found


def test_an_operator_that_is_renamed_and_edited_is_named() -> None:
    before = _REPLACED.replace(
        "{from: s, value: value.amount}", "{from: s, name: amount, value: value.amount}"
    )
    renamed = before.replace("name: amount", "name: price")

    assert changed(of_one(before, renamed)) == []
    assert [(each.aspect, each.before, each.after) for each in of_one(before, renamed).operators] == [
        ("name", "amount", "price")
    ]
    assert [
        (each.operator, each.aspect)
        for each in changed(of_one(before, renamed.replace("value.amount", "value.price")))
    ] == [("price", "value")]


def test_an_operator_of_another_kind_with_the_same_name_is_named() -> None:
    before = _REPLACED.replace(
        "{from: s, value: value.amount}", "{from: s, name: amount, value: value.amount}"
    )
    edited = before.replace(
        "mapValues: {from: s, name: amount, value: value.amount}", "peek: {from: s, name: amount}"
    )

    assert [
        (each.operator, each.aspect, each.before, each.after) for each in changed(of_one(before, edited))
    ][:1] == [("amount", "operator", "MapValues", "Peek")]


@pytest.mark.parametrize("call", ["mapValues", "selectKey", "peek"])
@pytest.mark.parametrize("is_first", [True, False])
def test_of_two_equal_operators_the_one_in_another_position_was_added(call: str, *, is_first: bool) -> None:
    """Documents from code have no conditions: both filters do the same, as far as the documents show."""
    head = "application: {id: app}\ntopology:\n  - stream: in\n"
    call, keep, end = f"  - {call}:\n", "  - filter:\n", "  - to: out\n"
    before = f"{head}{call}{keep}{end}" if is_first else f"{head}{keep}{call}{end}"

    (added,) = of_one(before, f"{head}{keep}{call}{keep}{end}").operators

    assert (added.aspect, added.before) == ("operator", None)
    assert added.operator == ("KSTREAM-FILTER-0000000001" if is_first else "KSTREAM-FILTER-0000000003")
