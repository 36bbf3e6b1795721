"""Texts of configs are read as Java reads them; `tests/oracle/test_configs.py` compares with Kafka."""

import math

import pytest

from headwater.compiler.java.config_values import (
    INT,
    LONG,
    SHORT,
    equals_ignore_case,
    is_duration,
    may_be_class,
    parse_boolean,
    parse_decimal,
    parse_whole,
    split_list,
    trim_text,
    utf16_length,
)


@pytest.mark.parametrize(
    ("text", "number"),
    [
        ("5", 5),
        ("+5", 5),
        ("-0", 0),
        ("007", 7),
        ("0" * 5_000 + "7", 7),
        ("\N{ARABIC-INDIC DIGIT THREE}", 3),
        ("-\N{FULLWIDTH DIGIT ONE}2", -12),
        ("2147483647", 2**31 - 1),
        ("-2147483648", -(2**31)),
        ("2147483648", None),
        ("9" * 5_000, None),
        ("", None),
        ("-", None),
        ("+-5", None),
        (" 5", None),
        ("5.0", None),
        ("300_000", None),
        ("1e3", None),
        ("0x10", None),
        ("\N{SUPERSCRIPT TWO}", None),
        ("\N{MATHEMATICAL BOLD DIGIT FIVE}", None),
    ],
)
def test_whole_numbers(text: str, number: int | None) -> None:
    assert parse_whole(text, INT) == number


def test_each_type_of_whole_numbers_has_its_limits() -> None:
    for bits in (SHORT, INT, LONG):
        most = 2 ** (bits - 1) - 1
        assert parse_whole(str(most), bits) == most
        assert parse_whole(str(most + 1), bits) is None
        assert parse_whole(str(-most - 1), bits) == -most - 1
        assert parse_whole(str(-most - 2), bits) is None


@pytest.mark.parametrize(
    ("text", "number"),
    [
        ("1e3", 1000.0),
        ("5d", 5.0),
        (".5F", 0.5),
        ("5.", 5.0),
        ("-Infinity", -math.inf),
        ("1e999", math.inf),
        ("0x1.8p1", 3.0),
        ("-0x1p99999", -math.inf),
        ("inf", None),
        ("NaNd", None),
        ("1_0", None),
        (".", None),
        ("0x1", None),
        ("\N{ARABIC-INDIC DIGIT THREE}", None),
    ],
)
def test_decimal_numbers(text: str, number: float | None) -> None:
    assert parse_decimal(text) == number


def test_not_a_number_is_a_number() -> None:
    found = parse_decimal("NaN")
    assert found is not None
    assert math.isnan(found)


@pytest.mark.parametrize(
    ("text", "value"),
    [
        ("true", True),
        ("FALSE", False),
        ("fal\N{LATIN SMALL LETTER LONG S}e", False),
        ("yes", None),
        ("", None),
    ],
)
def test_truth_values(text: str, *, value: bool | None) -> None:
    assert parse_boolean(text) is value


def test_other_texts() -> None:
    assert trim_text("\t \x00a b\n") == "a b"
    assert trim_text("\N{NO-BREAK SPACE}a") == "\N{NO-BREAK SPACE}a"
    assert split_list("") == []
    assert split_list("a ,\tb,,") == ["a", "b", "", ""]
    assert split_list("a\N{NO-BREAK SPACE},b") == ["a\N{NO-BREAK SPACE}", "b"]
    assert utf16_length("a\N{GRINNING FACE}") == 3
    assert equals_ignore_case("STREAMS", "streams")
    assert not equals_ignore_case("stream", "streams")


@pytest.mark.parametrize(
    ("text", "is_allowed"),
    [
        ("PT1H", True),
        ("p1dt2h3m4.5s", True),
        ("PT0S", True),
        ("-PT-1H", True),
        ("PT-0.5S", False),
        ("PT", False),
        ("P1DT", False),
        ("P1H", False),
        ("1H", False),
        ("P106751991167301D", False),
    ],
)
def test_durations(text: str, *, is_allowed: bool) -> None:
    assert is_duration(text) is is_allowed


@pytest.mark.parametrize(
    ("text", "is_allowed"),
    [
        ("com.example.A$B", True),
        ("Handler", True),
        ("", False),
        ("a..b", False),
        ("a/b", False),
        ("a b", False),
    ],
)
def test_class_names(text: str, *, is_allowed: bool) -> None:
    assert may_be_class(text) is is_allowed
