"""Spark partitions show which partition of a topic they read: tasks are placed and grouped by it."""

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest
from py4j.protocol import Py4JJavaError  # type: ignore[import-untyped]
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as sql
from structlog.testing import capture_logs

from headwater.kafka import Connection
from headwater.toolchain.broker import local
from headwater.toolchain.broker.readiness import until
from headwater_spark.driver.input.sources import KafkaSource, read_ranges, read_stream
from headwater_spark.spark_internals.input_partitions import RowGroups
from headwater_spark.spark_internals.placement import RowPlacement, executor_location
from tests.runtime.spark.kafka_topics import Topics

pytestmark = [pytest.mark.broker, pytest.mark.spark, pytest.mark.timeout(600)]

_PARTITIONS, _READ = 4, (1, 2, 3)
"""Partition 0 has no records, so the numbers of Spark's partitions are others."""
_GROUPS = (0, 1, 0, 1)
_LOCATIONS = [executor_location(str(each), "host") for each in range(_PARTITIONS)]
_SECONDS = 120.0
Check = Callable[[DataFrame], None]


class _Input:
    """A topic with a record in each of the partitions `_READ`."""

    def __init__(self, spark: SparkSession, servers: str, topic: str) -> None:
        self._spark, self._topic = spark, topic
        self._source = KafkaSource(
            connection=Connection(bootstrap_servers=(servers,)),
            topics=(topic,),
            start_offsets={(topic, each): 0 for each in range(_PARTITIONS)},
        )

    def ranges(self) -> DataFrame:
        return read_ranges(self._spark, self._source, {(self._topic, each): (0, 1) for each in _READ})

    def check_batch(self, checkpoint: Path, check: Check) -> None:
        """Call `check` with the rows of a batch of a streaming query."""
        batches: list[int] = []

        def process(rows: DataFrame, batch: int) -> None:
            check(rows)
            batches.append(batch)

        stream = read_stream(self._spark, self._source).writeStream.foreachBatch(process)
        query = stream.option("checkpointLocation", str(checkpoint)).start()
        try:
            assert until(lambda: bool(batches) or not query.isActive, _SECONDS)
            assert query.exception() is None
        finally:
            query.stop()


@pytest.fixture
def topic_input(spark: SparkSession, kafka: local.LocalBroker, unique: Callable[[str], str]) -> _Input:
    topic, topics = unique("partitions"), Topics(kafka.bootstrap_servers)
    topics.create({topic: _PARTITIONS})
    topics.send((topic, each, b"key", b"value", 1_000, ()) for each in _READ)
    return _Input(spark, kafka.bootstrap_servers, topic)


def test_the_rows_of_a_stream_are_placed_by_input_partition(topic_input: _Input, tmp_path: Path) -> None:
    topic_input.check_batch(tmp_path, _check_placed)


def test_the_rows_of_ranges_are_placed_by_input_partition(topic_input: _Input) -> None:
    _check_placed(topic_input.ranges())


def test_the_rows_of_a_stream_are_grouped(topic_input: _Input, tmp_path: Path) -> None:
    topic_input.check_batch(tmp_path, _check_grouped)


def test_the_rows_of_a_stream_and_of_ranges_are_grouped_together(topic_input: _Input, tmp_path: Path) -> None:
    """A batch reads the rest of a round of a repartition topic in addition."""
    topic_input.check_batch(
        tmp_path, lambda rows: _check_grouped(rows.unionByName(topic_input.ranges()), times=2)
    )


@contextmanager
def _java_error() -> Iterator[None]:
    with capture_logs() as logs, pytest.raises(Py4JJavaError, match="UnknownTopicOrPartition"):
        yield
    assert not logs


def test_rows_that_cannot_be_planned_do_not_show_another_spark(
    spark: SparkSession, kafka: local.LocalBroker, unique: Callable[[str], str]
) -> None:
    absent = _Input(spark, kafka.bootstrap_servers, unique("absent"))
    groups, placement = RowGroups(), RowPlacement(spark)
    with _java_error():
        groups.grouped(absent.ranges(), _GROUPS, 2)
    with _java_error():
        placement.placed(absent.ranges(), _LOCATIONS, by_input_partition=True)
    assert groups.is_possible
    assert placement.is_possible


def _check_placed(rows: DataFrame) -> None:
    """Check where Spark's scheduler prefers to compute the rows."""
    placed = RowPlacement(rows.sparkSession).placed(rows, _LOCATIONS, by_input_partition=True)
    rdd: Any = placed._jdf.queryExecution().toRdd()
    scheduler = rows.sparkSession.sparkContext._jsc.sc().dagScheduler()
    found = [scheduler.getPreferredLocs(rdd, each).mkString() for each in range(rdd.getNumPartitions())]
    assert sorted(found) == [_LOCATIONS[each] for each in _READ]


def _check_grouped(rows: DataFrame, times: int = 1) -> None:
    """Check in which Spark partitions the rows are; each is there `times` times."""
    grouped = RowGroups().grouped(rows, _GROUPS, 2)
    assert grouped is not None
    found = [tuple(row) for row in grouped.select("partition", sql.spark_partition_id()).collect()]
    assert sorted(found) == [(each, _GROUPS[each]) for each in _READ for _ in range(times)]
