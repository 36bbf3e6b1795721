"""The order in which Java iterates over sets, and its hash codes, compared with recorded ones."""

import json
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from headwater.compiler.java.collections import (
    copy_order,
    hash_order,
    long_hash,
    map_hash,
    objects_hash,
    set_hash,
    signed_int,
    string_copy_order,
    string_hash,
    string_rank,
    string_set_order,
)

RECORDED = json.loads((Path(__file__).parent / "recorded" / "hash_sets.json").read_text())


@pytest.mark.parametrize("sets", RECORDED)
def test_sets_are_iterated_as_in_java(sets: dict[str, Any]) -> None:
    assert list(string_set_order(sets["added"])) == sets["set"]
    assert list(copy_order(sets["added"], string_hash)) == sets["copy_of_list"]
    assert list(string_copy_order(sets["added"])) == sets["copy_of_set"]
    assert set_hash(sets["added"]) == sets["hash"]


@pytest.mark.parametrize(
    ("text", "code"),
    [
        ("", 0),
        ("a", 97),
        ("hello", 99162322),
        ("polygenelubricants", -2147483648),
        ("ä", 228),
        ("\U0001f600", 1772899),
    ],
)
def test_string_hash(text: str, code: int) -> None:
    assert string_hash(text) == code


def test_other_hashes() -> None:
    assert long_hash(90_000_000) == 90_000_000
    assert long_hash(-1) == 0
    assert long_hash((1 << 63) - 1) == -2147483648
    assert map_hash({"a": "b"}) == 3
    assert objects_hash(1, 2) == 31 * (31 + 1) + 2
    assert signed_int(1 << 31) == -(1 << 31)


@given(st.lists(st.integers(0, 40)), st.integers(1, 7))
def test_any_order_has_each_key_once(keys: list[int], crowd: int) -> None:
    order = hash_order(keys, lambda key: key // crowd)
    assert sorted(order) == sorted(set(keys))


def test_texts_are_sorted_by_utf_16_code_units() -> None:
    last_of_the_basic_plane, beyond = "x\uff5e", "x\U0001f600"
    assert last_of_the_basic_plane < beyond
    assert string_rank(last_of_the_basic_plane) > string_rank(beyond)
    assert string_rank("a") < string_rank("ab") < string_rank("b") < string_rank("\u00e9")
    assert string_rank("\udfff") > string_rank("\ud800")
