"""Operators that do something else after an edit."""

import attrs
import pytest

from headwater.model import behaviors
from headwater.model.behaviors import Behavior
from headwater.model.formats import SinkSettings, SourceSettings
from headwater.planner.edits.declared import DECLARED
from tests.edits.sides import changed, of_one

_DOCUMENT = """
application: {id: app}
topology:
  - stream: {topic: in, timestamp: value.at, serdes: {key: string, value: json}}
  - filter: {where: value.amount > 0, name: positive}
  - mapValues: {value: value.amount}
  - groupByKey:
  - aggregate: {init: 0.0, add: total + value, materialized: sums}
  - toStream:
  - to: {topic: out, partitioner: "shop:ByRegion"}
  - table: {topic: table, serdes: {key: string, value: json}}
  - filter: {where: value.amount > 0, name: amounts}
  - filter: {where: value.amount > 1, name: large}
  - filterNot: {where: value.amount > 9}
"""
_MAP, _AGGREGATE, _NOT = (
    "KSTREAM-MAPVALUES-0000000002",
    "KSTREAM-AGGREGATE-0000000003",
    "KTABLE-FILTER-0000000011",
)


def _edited(before: str, after: str) -> str:
    """Return the operators that do something else, separated by commas."""
    return ", ".join(dict.fromkeys(each.operator for each in changed(of_one(before, after))))


@pytest.mark.parametrize(
    ("old", "new", "edited"),
    [
        ("amount > 0, name: positive", "amount > 9, name: positive", "positive"),
        ("total + value", "total - value", _AGGREGATE),
        ("amount}", "price}", _MAP),
        ("amount > 0", "price > 0", "positive, amounts"),
        ("filterNot: {where", "filter: {where", _NOT),
        ("filter: {where: value.amount > 1", "filterNot: {where: value.amount > 1", "large"),
        ("value.at", "value.time", "KSTREAM-SOURCE-0000000000"),
        (", timestamp: value.at", "", "KSTREAM-SOURCE-0000000000"),
        ("shop:ByRegion", "shop:ByCountry", "KSTREAM-SINK-0000000005"),
        ("topic: out", "topic: results", "KSTREAM-SINK-0000000005"),
        ("topic: out", "topic: out, serdes: {key: bytes}", "KSTREAM-SINK-0000000005"),
        ("topic: out", "topic: out, serdes: {value: bytes}", "KSTREAM-SINK-0000000005"),
        ("topic: out", "extractor: value.topic", "KSTREAM-SINK-0000000005"),
        # Only the source without an own timestamp uses the default.
        (
            "{id: app}",
            "{id: app, config: {default.timestamp.extractor: com.acme.Times}}",
            "KSTREAM-SOURCE-0000000007",
        ),
    ],
)
def test_an_edited_operator_is_named(old: str, new: str, edited: str) -> None:
    assert old in _DOCUMENT
    assert _edited(_DOCUMENT, _DOCUMENT.replace(old, new)) == edited


@pytest.mark.parametrize(
    ("old", "new"),
    [
        ("where: value.amount > 0, name: positive", "name: positive, where: 'value.amount  >0'"),
        ("total + value", "'total+value '"),
        ("materialized: sums", "materialized: totals"),
        ("> 0, name: amounts", "> 0, name: amounts, materialized: kept"),
        ("> 1, name: large", "> 1, name: large, materialized: kept"),
        ("value.amount > 9}", "value.amount > 9, materialized: kept}"),
        ("table: {topic: table,", "table: {topic: table, materialized: kept,"),
    ],
)
def test_stores_and_white_space_do_not_change_what_operators_do(old: str, new: str) -> None:
    assert old in _DOCUMENT
    assert _edited(_DOCUMENT, _DOCUMENT.replace(old, new)) == ""


_PEEK = ("  - filter: {where: value.amount > 0, name: positive}\n", "  - peek:\n")


@pytest.mark.parametrize(
    ("old", "new"),
    [
        ("name: positive", "name: above-zero"),
        ("  - mapValues: {value: value.amount}\n", ""),
        (_PEEK[0], _PEEK[1] + _PEEK[0]),
        (_PEEK[0], ""),
        ("  - mapValues", "  - mapValues: {value: value}\n  - mapValues"),
    ],
    ids=["renamed", "removed", "numbers shifted up", "named one removed", "one of the same kind added"],
)
def test_an_added_or_removed_operator_is_not_edited_and_hides_no_edit(old: str, new: str) -> None:
    assert old in _DOCUMENT
    other = _DOCUMENT.replace(old, new)
    assert _edited(_DOCUMENT, other) == ""
    assert _edited(_DOCUMENT, other.replace("amount > 1, name: large", "amount > 2, name: large")) == "large"
    assert _edited(_DOCUMENT, other.replace("total + value", "total - value")).startswith(
        "KSTREAM-AGGREGATE-"
    )


def test_an_edited_window_is_named() -> None:
    before = _DOCUMENT.replace("groupByKey:\n", "groupByKey:\n  - windowedBy: {tumbling: {size: 5m}}\n")
    assert _edited(before, before.replace("5m", "6m")) == _AGGREGATE


def test_each_field_is_declared_by_users_or_follows_from_something_else() -> None:
    """A new field is added to `DECLARED` if users declare it, otherwise here."""
    kinds = [
        each for each in vars(behaviors).values() if isinstance(each, type) and issubclass(each, Behavior)
    ]
    fields = {field.name for kind in (*kinds, SourceSettings, SinkSettings) for field in attrs.fields(kind)}
    others = {
        *("parent", "own", "other", "table", "children", "default", "is_left", "values_only"),
        *("store", "stores", "own_store", "other_store", "shared", "buffer", "offset_reset"),
        *("format", "key_format", "left", "foreign", "carries_changes", "sends_old", "versioned"),
        *("closes_by_own_side", "has_null_fixes", "forwards_null_table_keys", "sends_both_values"),
    }
    assert fields - DECLARED.keys() == others
    assert fields >= DECLARED.keys()


def test_another_extractor_of_a_sink_is_one_edit() -> None:
    before = _DOCUMENT.replace("topic: out", "extractor: value.topic")
    found = changed(of_one(before, before.replace("value.topic", "value.other")))
    assert [(each.operator, each.aspect) for each in found] == [
        ("KSTREAM-SINK-0000000005", "topic expression")
    ]
