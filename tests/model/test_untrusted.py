"""Bounds of values that others may have written: what is accepted, and what is refused as `ValueError`."""

from collections.abc import Callable
from typing import Any

import pytest

from headwater.model import untrusted
from headwater.model.untrusted import LARGEST_TEXT, LARGEST_VALUE, MOST_ENTRIES, LaterFormatError, json_object

REFUSED: tuple[tuple[Callable[[object], Any], object], ...] = (
    (untrusted.check_whole, -1),
    (untrusted.check_whole, 2**63),
    (untrusted.check_whole, True),
    (untrusted.check_whole, 1.0),
    (untrusted.check_whole, "1"),
    (untrusted.check_whole, None),
    (untrusted.check_boolean, 1),
    (untrusted.check_boolean, None),
    (untrusted.check_text, None),
    (untrusted.check_text, ["a"]),
    (untrusted.check_text, "x" * (LARGEST_TEXT + 1)),
    (untrusted.check_name, "two\nlines"),
    (untrusted.check_name, "\x1b[31m"),
    (untrusted.check_texts, "a text"),
    (untrusted.check_texts, [1]),
    (untrusted.check_texts, [""] * (MOST_ENTRIES + 1)),
    (untrusted.check_mapping, [("a", 1)]),
    (untrusted.check_mapping, {"x" * (LARGEST_TEXT + 1): 1}),
)


@pytest.mark.parametrize(("read", "value"), REFUSED, ids=range(len(REFUSED)))
def test_values_beyond_the_bounds_are_refused(read: Callable[[object], Any], value: object) -> None:
    with pytest.raises(ValueError, match=r"."):
        read(value)


@pytest.mark.parametrize(
    ("read", "value"),
    [
        (untrusted.check_whole, 0),
        (untrusted.check_whole, 2**63 - 1),
        (untrusted.check_boolean, False),
        (untrusted.check_text, "two\nlines"),
        (untrusted.check_text, "x" * LARGEST_TEXT),
        (untrusted.check_name, "größe-1"),
        (untrusted.check_mapping, {"a": [1]}),
    ],
    ids=["zero", "the largest number", "no", "two lines", "the longest text", "letters", "an object"],
)
def test_values_within_the_bounds_are_returned_as_they_are(
    read: Callable[[object], Any], value: object
) -> None:
    assert read(value) == value


@pytest.mark.parametrize(
    "value",
    [
        *(b"", b"[]", b"{}", b'{"version": 0}', b'{"version": "1"}'),
        pytest.param(b"[" * 100_000, id="deeply nested"),
        pytest.param(b" " * (LARGEST_VALUE + 1), id="large"),
    ],
)
def test_a_record_without_a_known_format_is_refused(value: bytes) -> None:
    with pytest.raises(ValueError, match=r".") as raised:
        json_object(value, 2, "version")
    assert not isinstance(raised.value, LaterFormatError)


def test_a_record_of_a_later_format_is_distinguished() -> None:
    assert json_object(b'{"version": 2, "a": 1}', 2, "version") == {"version": 2, "a": 1}
    with pytest.raises(LaterFormatError):
        json_object(b'{"version": 3}', 2, "version")
