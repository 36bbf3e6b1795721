"""Totals in JSON: which values are read as they were written, and at least how many bytes they need."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from headwater_spark.engine.operators.stored_totals import plain_json_size
from headwater_spark.engine.serdes.formats import JSON

_TEXTS = st.text(
    st.characters(max_codepoint=0x180) | st.characters() | st.sampled_from("\ud83d\ude00\U0001f600"),
    max_size=5,
)
_SCALARS = st.none() | st.booleans() | st.integers() | st.integers(-20, 20) | st.floats() | _TEXTS
_VALUES = st.recursive(
    _SCALARS,
    lambda parts: (
        st.lists(parts, max_size=4)
        | st.dictionaries(_TEXTS | st.integers(0, 3), parts, max_size=4)
        | st.lists(parts, max_size=2).map(tuple)
    ),
    max_leaves=12,
)


def _same(left: object, right: object) -> bool:
    """Return whether two values and all their parts are equal and have the same types."""
    if type(left) is not type(right):
        return False
    if isinstance(left, dict) and isinstance(right, dict):
        return list(left) == list(right) and all(_same(left[name], right[name]) for name in left)
    if isinstance(left, list) and isinstance(right, list):
        return len(left) == len(right) and all(map(_same, left, right))
    return repr(left) == repr(right)  # 0.0 is not -0.0


@given(value=_VALUES)
def test_a_value_with_a_size_is_read_as_it_was_written_and_needs_at_most_these_bytes(value: object) -> None:
    size = plain_json_size(value)
    if size is not None:
        written = JSON.serialize(value)
        assert len(written) <= size
        assert _same(JSON.deserialize(written), value)


@pytest.mark.parametrize(
    "number", [sign * 10**digits + more for digits in range(19) for sign in (1, -1) for more in (-1, 0, 1)]
)
def test_the_size_of_a_whole_number_is_not_too_small(number: int) -> None:
    size = plain_json_size(number)
    assert size is not None
    assert len(str(number)) <= size


@pytest.mark.parametrize(
    ("value", "most"),
    [
        ({"count": 12, "largest": "value-12345"}, 64),
        ([1, 2, 3], 20),
        ([[{}], [], None, True, 0.5], 64),
        ({"line\n": "\x00"}, 60),
        ({"größe": "小さい \U0001f600"}, 80),
    ],
)
def test_plain_values_have_a_size_that_is_not_much_too_large(value: object, most: int) -> None:
    size = plain_json_size(value)
    assert size is not None
    assert len(JSON.serialize(value)) <= size <= most


@pytest.mark.parametrize(
    "value",
    [
        {1: "a"},
        ["\ud83d"],
        ["ä\ude00"],
        {"\ud83d\ude00": 1},
        [float("nan")],
        [float("inf")],
        [2**63],
        [(1,)],
        [b"a"],
        [object()],
    ],
)
def test_other_values_are_written_and_read_again(value: object) -> None:
    assert plain_json_size(value) is None


def test_a_deeply_nested_value_is_written_and_read_again() -> None:
    value: object = 1
    for _ in range(2_000):
        value = [value]
    assert plain_json_size(value) is None
