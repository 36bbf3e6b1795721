"""Rows that are placed are the same rows; a Spark with other private parts places them itself."""

from typing import Any

import pytest
from py4j.protocol import Py4JError, Py4JNetworkError  # type: ignore[import-untyped]
from pyspark.sql import SparkSession
from structlog.testing import capture_logs

from headwater_spark.spark_internals.placement import RowPlacement, location

pytestmark = pytest.mark.spark


@pytest.mark.parametrize("by_input_partition", [False, True])
def test_placed_rows_are_the_same(spark: SparkSession, *, by_input_partition: bool) -> None:
    placement = RowPlacement(spark)
    assert placement.is_possible
    assert placement.executors() == [], "the driver gets no tasks of a cluster"
    rows = spark.range(0, 20, 1, 4).selectExpr("id", "CAST(id AS STRING) AS text")
    locations = [location("1", "host"), "", location("2", "other")]
    placed = placement.placed(rows, locations, by_input_partition=by_input_partition)
    with capture_logs() as logs:
        assert placed.collect() == rows.collect()
    assert placed.schema == rows.schema
    assert placed.rdd.getNumPartitions() == 4
    assert not logs


class _Rows:
    """Rows whose plan cannot be read."""

    def __init__(self, error: Exception) -> None:
        self._error = error

    @property
    def _jdf(self) -> Any:  # noqa: ANN401 - py4j has no types
        raise self._error


def test_another_spark_places_the_rows_itself(spark: SparkSession) -> None:
    placement = RowPlacement(spark)
    given: Any = _Rows(Py4JError("no method toRdd([])"))
    with capture_logs() as logs:
        assert placement.placed(given, [""], by_input_partition=False) is given
        assert placement.placed(given, [""], by_input_partition=False) is given
    assert not placement.is_possible
    assert placement.executors() == []
    (log,) = logs
    assert log["event"] == "tasks not placed: Spark may move them between executors"


def test_the_end_of_the_jvm_is_raised(spark: SparkSession) -> None:
    given: Any = _Rows(Py4JNetworkError("closed"))
    with pytest.raises(Py4JNetworkError):
        RowPlacement(spark).placed(given, [""], by_input_partition=False)
