"""Compare with Spark: every expression on every row, and the expressions that both reject."""

import math
from collections.abc import Callable, Mapping
from datetime import UTC, datetime
from decimal import Decimal
from pathlib import Path
from typing import Any

import pytest
from pyspark.errors import PySparkException
from pyspark.sql import DataFrame, Row, SparkSession
from pyspark.sql.functions import expr

from headwater_spark.engine.expressions import EvaluationError, ExpressionError, compile_expression
from headwater_spark.engine.records import CurrentRecord

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


NAMES = ("key", "timestamp", "value")
BATCH = 60


def ours(text: str, row: dict[str, Any]) -> Any:  # noqa: ANN401 - any SQL value
    return compile_expression(text, NAMES).bind(CurrentRecord())(*(row[name] for name in NAMES))


def plain(value: Any) -> Any:  # noqa: ANN401
    """Return Spark's value in the form of the runtime; values not equal to themselves as text."""
    match value:
        case Row():
            return {name: plain(each) for name, each in value.asDict().items()}
        case dict():
            return {name: plain(each) for name, each in value.items()}
        case list():
            return [plain(each) for each in value]
        case _:
            convert = _PLAIN.get(type(value))
            return value if convert is None else convert(value)


_PLAIN: Mapping[type, Callable[[Any], Any]] = {
    bytearray: bytes,
    Decimal: float,
    datetime: lambda moment: moment.astimezone(UTC),
    float: lambda number: "NaN" if math.isnan(number) else float(f"{number:.15g}"),
}


@pytest.fixture(scope="module")
def rows(interpreted: SparkSession) -> DataFrame:
    return interpreted.createDataFrame([_row(row) for row in ROWS], SCHEMA).coalesce(1)


def _row(row: dict[str, Any]) -> tuple[Any, ...]:
    return tuple(row[name] for name in ("key", "timestamp", "value"))


@pytest.mark.spark
@pytest.mark.parametrize("start", range(0, len(SAME), BATCH))
def test_the_same_values(start: int, rows: DataFrame) -> None:
    texts = SAME[start : start + BATCH]
    selected = rows.select(*(expr(text).alias(f"c{at}") for at, text in enumerate(texts)))
    answers = selected.collect()
    differences = [
        (text, number, found, wanted)
        for number, (row, answer) in enumerate(zip(ROWS, answers, strict=True))
        for text, theirs in zip(texts, answer, strict=True)
        if (found := _ours_or_fault(text, row)) != (wanted := plain(theirs))
        or type(found) is not type(wanted)
    ]
    assert not differences, "\n".join(map(str, differences))


def _ours_or_fault(text: str, row: dict[str, Any]) -> Any:  # noqa: ANN401
    try:
        return plain(ours(text, row))
    except (EvaluationError, ExpressionError) as fault:
        return f"{type(fault).__name__}: {fault}"


@pytest.mark.spark
@pytest.mark.parametrize("text", REFUSED)
def test_the_same_errors(text: str, rows: DataFrame) -> None:
    with pytest.raises(EvaluationError):
        ours(text, FULL)
    with pytest.raises(PySparkException):
        rows.filter("key = 'anna'").select(expr(text)).collect()
