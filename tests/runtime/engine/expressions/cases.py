"""Rows, and expressions that Spark and the runtime evaluate alike over them, one a line.

`SAME` yield the same values on every row; `REFUSED` fail in both, each on the row without nulls.
"""

from pathlib import Path
from typing import Any

SCHEMA = (
    "key string, timestamp bigint, value struct<name: string, n: bigint, m: bigint, d: double, e: double, "
    "flag: boolean, number: string, json: string, items: array<struct<sku: string, quantity: bigint>>, "
    "tags: array<string>, numbers: array<bigint>, nested: struct<a: bigint, b: string>, bytes: binary>"
)

FULL: dict[str, Any] = {
    "key": "anna",
    "timestamp": 1_704_067_200_123,
    "value": {
        "name": "Ab:cd:é x",
        "n": 7,
        "m": -3,
        "d": 2.5,
        "e": 1e10,
        "flag": True,
        "number": "42",
        "json": '{"a": {"b": [1, 2.5, "x"]}, "c": null, "d": true}',
        "items": [{"sku": "s1", "quantity": 2}, {"sku": "s2", "quantity": None}],
        "tags": ["b", "a", None, "b"],
        "numbers": [3, 1, 2, 3],
        "nested": {"a": 5, "b": "deep"},
        "bytes": b"\x00\xffA",
    },
}
EMPTY: dict[str, Any] = {
    "key": "",
    "timestamp": 0,
    "value": {
        "name": "",
        "n": 0,
        "m": 1,
        "d": -0.0,
        "e": 0.001,
        "flag": False,
        "number": " -7 ",
        "json": "not json",
        "items": [],
        "tags": [],
        "numbers": [],
        "nested": {"a": None, "b": ""},
        "bytes": b"",
    },
}
NULLS: dict[str, Any] = {"key": None, "timestamp": 5, "value": dict.fromkeys(FULL["value"])}
ODD: dict[str, Any] = {
    "key": "Zoë",
    "timestamp": 951_782_399_999,
    "value": {
        "name": "  padded  ",
        "n": 9_223_372_036_854_775_806,
        "m": -9_007_199_254_740_993,
        "d": 1234567.875,
        "e": -1.5e-7,
        "flag": None,
        "number": "0",
        "json": '[1,{"k":"v"}]',
        "items": [{"sku": None, "quantity": 0}, None],
        "tags": ["x,y", "", "Z"],
        "numbers": [None, 5],
        "nested": None,
        "bytes": b"plain",
    },
}
ROWS = (FULL, EMPTY, NULLS, ODD)


def _lines(file: str) -> tuple[str, ...]:
    return tuple(Path(__file__).with_name(file).read_text().splitlines())


SAME = _lines("same.sql")
REFUSED = _lines("refused.sql")
