"""Compare with Spark: every expression on every row, and the expressions that both reject."""

import math
from collections.abc import Callable, Mapping
from datetime import UTC, datetime
from decimal import Decimal
from typing import Any

import pytest
from pyspark.errors import PySparkException
from pyspark.sql import DataFrame, Row, SparkSession
from pyspark.sql.functions import expr

from headwater_spark.engine.expressions import EvaluationError, ExpressionError, compile_expression
from headwater_spark.engine.records import CurrentRecord
from tests.runtime.engine.expressions.cases import FULL, REFUSED, ROWS, SAME, SCHEMA

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
