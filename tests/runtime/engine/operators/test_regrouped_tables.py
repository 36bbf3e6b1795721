"""`KTable#groupBy`: whether a row stays in its group is decided by the equality of keys in Java."""

import struct
from math import inf, nan

import pytest

from tests.runtime.engine.operators.test_joins import replay

OLD, NEW, BOTH = range(3)
"""The last byte of a change in the repartition topic."""


def double(number: float) -> bytes:
    return struct.pack(">d", number)


def regrouped(key_format: str, key: str, before: bytes, after: bytes) -> list[tuple[bytes | None, int]]:
    """Return (group, kind of change) of what a row sends when its value changes."""
    run = replay(
        f"[{{table: {{topic: in, serdes: {{value: {key_format}}}}}}}, "
        f'{{groupBy: {{key: "{key}", serdes: {{key: {key_format}}}}}}}, {{count: }}]'
    )
    run.pipe("in", b"k", before, 1)
    written = run.pipe("in", b"k", after, 2)
    return [
        (record[2], record[3][-1]) for record in written if record[3] and record[0].endswith("-repartition")
    ]


@pytest.mark.parametrize(
    ("key_format", "before", "after"),
    [
        ("double", double(0.0), double(-0.0)),
        ("json", b"1", b"1.0"),
        ("json", b"1", b"true"),
        ("json", b"0.0", b"-0.0"),
        ("json", b"[1]", b"[true]"),
        ("json", b'{"id":1}', b'{"id":1.0}'),
    ],
)
def test_groups_that_differ_in_java_get_a_record_each(key_format: str, before: bytes, after: bytes) -> None:
    assert regrouped(key_format, "value", before, after) == [(before, OLD), (after, NEW)]


@pytest.mark.parametrize(
    ("key_format", "before", "after"),
    [
        ("double", double(nan), double(nan)),
        ("double", double(inf), double(inf)),
        ("json", b'{"a":1,"b":2}', b'{"b":2,"a":1}'),
    ],
)
def test_a_group_that_stays_equal_in_java_gets_one_record_with_its_old_key(
    key_format: str, before: bytes, after: bytes
) -> None:
    assert regrouped(key_format, "value", before, after) == [(before, BOTH)]


def test_whole_numbers_are_numbers_of_the_format() -> None:
    smallest = "CASE WHEN value > 10 THEN value ELSE 10 END"
    before, after = double(5.0), double(10.0)
    assert regrouped("double", smallest, before, after) == [(double(10.0), BOTH)]
    assert regrouped("double", "greatest(value, 10)", before, after) == [(double(10.0), BOTH)]
