"""Durations and plain scalars of documents."""

import json

import pytest
from hypothesis import given
from hypothesis import strategies as st

from headwater.model.durations import parse_duration
from headwater.model.problems import Severity
from headwater.spec import load_text
from headwater.spec.scalars import plain_scalar, read_duration


@given(
    st.integers(0, 10**9),
    st.integers(0, 10**6),
    st.integers(0, 10**6),
    st.integers(0, 10**6),
    st.integers(0, 999),
)
def test_the_units_of_a_duration_are_added(
    days: int, hours: int, minutes: int, seconds: int, millis: int
) -> None:
    expected = (((days * 24 + hours) * 60 + minutes) * 60 + seconds) * 1000 + millis

    assert parse_duration(f"{days}d{hours}h{minutes}m{seconds}s{millis}ms") == expected
    assert parse_duration(f"P{days}DT{hours}H{minutes}M{seconds}.{millis:03}S") == expected
    assert parse_duration(f"-{expected}ms") == -expected


@given(st.integers() | st.floats(allow_nan=False, allow_infinity=False) | st.booleans() | st.none())
def test_plain_scalars_are_read_as_in_json(value: float | bool | None) -> None:  # noqa: FBT001 - a scalar
    assert plain_scalar(json.dumps(value)) == value


def test_the_largest_duration_fits_a_java_long() -> None:
    largest = "999999999d999999999h999999999m999999999s999999999999999999ms"
    assert parse_duration(largest) < 2**63
    text = f"application: {{id: a, setup: {{timeout: {largest}}}}}\ntopology: [{{stream: {{topic: a}}}}]"
    assert not [problem for problem in load_text(text, "a").problems if problem.severity is Severity.ERROR]


@pytest.mark.parametrize(
    "value",
    ["1.5h", "5 minutes", "", "-5s", "s", "PT", "P", "PT5", "5s5m", None, True, -1, 1.5, [5], "5s\n5s"],
)
def test_an_invalid_duration_is_none(value: object) -> None:
    assert read_duration(value) is None


@pytest.mark.parametrize(
    ("value", "expected"), [(0, 0), ("0s", 0), ("1h30m", 5_400_000), ("PT0.5S", 500), ("P1D", 86_400_000)]
)
def test_durations_are_read_from_numbers_and_texts(value: object, expected: int) -> None:
    assert read_duration(value) == expected
