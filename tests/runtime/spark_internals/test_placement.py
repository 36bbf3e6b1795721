"""Rows that are placed are the same rows; a Spark with other private parts places them itself."""

from typing import Any

import pytest
from py4j.protocol import Py4JError, Py4JNetworkError  # type: ignore[import-untyped]
from pyspark.sql import SparkSession
from structlog.testing import capture_logs

from headwater_spark.spark_internals.jvm import java_gateway
from headwater_spark.spark_internals.placement import RowPlacement, executor_location

pytestmark = pytest.mark.spark


def test_placed_rows_are_the_same(spark: SparkSession) -> None:
    placement = RowPlacement(spark)
    assert placement.is_possible
    assert placement.executors() == [], "the driver gets no tasks of a cluster"
    rows = spark.range(0, 20, 1, 4).selectExpr("id", "CAST(id AS STRING) AS text")
    locations = [executor_location("1", "host"), "", executor_location("2", "other")]
    placed = placement.placed(rows, locations, by_input_partition=False)
    with capture_logs() as logs:
        assert placed.collect() == rows.collect()
    assert placed.schema == rows.schema
    assert placed.rdd.getNumPartitions() == 4
    assert not logs


def test_an_executor_gets_tasks_when_its_block_manager_is_registered(spark: SparkSession) -> None:
    """Until then it has no address: Spark reports both in events of their own, later on a busy machine."""
    placement, jvm = RowPlacement(spark), java_gateway(spark).jvm
    events = spark.sparkContext._jsc.sc().listenerBus()
    scheduler, nothing = jvm.org.apache.spark.scheduler, jvm.scala.Option.empty()
    variables = jvm.org.apache.spark.api.python.PythonUtils.toScalaMap(jvm.java.util.HashMap())
    added = scheduler.cluster.ExecutorInfo("10.0.0.1", 2, variables)
    manager = jvm.org.apache.spark.storage.BlockManagerId.apply("7", "10.0.0.1", 4000, nothing)
    found = []
    for event in (
        scheduler.SparkListenerExecutorAdded(0, "7", added),
        scheduler.SparkListenerBlockManagerAdded(0, manager, 1000, nothing, nothing),
        scheduler.SparkListenerExecutorRemoved(0, "7", "the test ends"),
    ):
        events.post(event)
        events.waitUntilEmpty()
        found.append(placement.executors())
    assert found == [[], [("7", "10.0.0.1", 2)], []]
    assert placement.is_possible


class _Rows:
    """Rows whose plan cannot be read."""

    def __init__(self, error: Exception) -> None:
        self._error = error

    @property
    def _jdf(self) -> Any:  # noqa: ANN401 - py4j has no types
        raise self._error


def test_another_spark_places_the_rows_itself(spark: SparkSession) -> None:
    placement = RowPlacement(spark)
    given: Any = _Rows(Py4JError("no method toRdd([])\n: java.lang.X\nCaused by: java.lang.Y: a reason\n"))
    with capture_logs() as logs:
        assert placement.placed(given, [""], by_input_partition=False) is given
        assert placement.placed(given, [""], by_input_partition=False) is given
    assert not placement.is_possible
    assert placement.executors() == []
    (log,) = logs
    assert log["event"] == "tasks not placed: Spark may move them between executors"
    assert log["reason"] == "java.lang.Y: a reason"


def test_rows_that_are_not_of_kafka_are_not_placed_by_input_partition(spark: SparkSession) -> None:
    """So it is, too, if another Spark has other partitions of Kafka."""
    placement, rows = RowPlacement(spark), spark.range(0, 4, 1, 2)
    with capture_logs() as logs:
        assert placement.placed(rows, [""], by_input_partition=True) is rows
        assert placement.placed(rows, [""], by_input_partition=True) is rows
    assert not placement.is_possible
    (log,) = logs
    assert log["event"] == "tasks not placed: Spark may move them between executors"
    assert log["reason"].endswith(" reads no partition of Kafka")


def test_the_end_of_the_jvm_is_raised(spark: SparkSession) -> None:
    given: Any = _Rows(Py4JNetworkError("closed"))
    with pytest.raises(Py4JNetworkError):
        RowPlacement(spark).placed(given, [""], by_input_partition=False)
