"""The expressions of the native back end; runtime/engine/expressions/test_back_ends compares with tasks."""

import pytest

from headwater.compiler.native_sql import Kind, kind_of


@pytest.mark.parametrize(
    ("text", "kind"),
    [
        ("value", Kind.TEXT),
        ("concat('<', value, '>')", Kind.TEXT),
        ("upper(trim(value)) || '-' || topic", Kind.TEXT),
        ("substring(value, -3, 2)", Kind.TEXT),
        ("case when value like 'a%' then 'a' when key is null then key else 'b' end", Kind.TEXT),
        ("IF(length(value) % 3 <> 0, value, coalesce(key, ''))", Kind.TEXT),
        ("string(offset)", Kind.TEXT),
        ("timestamp", Kind.WHOLE),
        ("instr(value, ':')", Kind.WHOLE),
        ("value is not null and not (key = 'x' or offset between 3 and -5)", Kind.FLAG),
        ("value not in ('a', key)", Kind.FLAG),
        ("length(value) > 3", Kind.FLAG),
        ("true", Kind.FLAG),
    ],
)
def test_expressions_of_the_subset(text: str, kind: Kind) -> None:
    assert kind_of(text, Kind.TEXT, Kind.TEXT) is kind


@pytest.mark.parametrize(
    "text",
    [
        "",
        "1.5",
        "1e3",
        "12345678901",
        "length(value) + 1",
        "length(value) / 2",
        "length(value) * 100000",
        "offset % 0",
        "- offset",
        "cast(value as int)",
        "double(value)",
        "value rlike 'a+'",
        "regexp_replace(value, 'a', 'b')",
        "split(value, ',')[0]",
        "headers",
        "value.name",
        "VALUE",
        "total",
        "value > 3",
        "value = length(value)",
        "upper(offset)",
        "coalesce(value, 0)",
        "if(value, 'a', 'b')",
        "if(true, 'a')",
        "case value when 'a' then 'b' end",
        "case end",
        "value like key",
        "value like 'a%' escape '!'",
        "'it\\'s'",
        "'it''s'",
        "'a' 'b'",
        '"text"',
        "`value`",
        "value -- all",
        "value is true",
        "value in (select 1)",
        "value not",
        "substring(value, length(key))",
        "substring(value)",
        "left(value)",
        "repeat(value, 1000000000)",
        "raise_error('x')",
        "null",
        "lower(upper(value))",
        "ucase(coalesce(lower(value), 'x'))",
        "not " * 40 + "true",
        "value, value",
        "value)",
        "(value",
        "(" * 40 + "value" + ")" * 40,
        "'" + "x" * 2_000 + "'",
    ],
)
def test_expressions_outside_of_the_subset(text: str) -> None:
    assert kind_of(text, Kind.TEXT, Kind.TEXT) is None


def test_bytes_are_only_forwarded_and_checked_for_null() -> None:
    assert kind_of("value", Kind.TEXT, Kind.BYTES) is Kind.BYTES
    assert kind_of("coalesce(value, value)", Kind.TEXT, Kind.BYTES) is Kind.BYTES
    assert kind_of("value is null", Kind.TEXT, Kind.BYTES) is Kind.FLAG
    assert kind_of("value = key", Kind.BYTES, Kind.BYTES) is None
    assert kind_of("upper(value)", Kind.TEXT, Kind.BYTES) is None
