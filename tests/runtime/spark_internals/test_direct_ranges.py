"""Offset ranges that are read as a stream's batch are the records of Spark's own plan, on a real broker."""

from collections.abc import Callable, Mapping
from pathlib import Path

import attrs
import pytest
from pyspark.sql import DataFrame, SparkSession
from structlog.testing import capture_logs

from headwater.toolchain.broker.readiness import until
from headwater_spark.driver.input.sources import KafkaSource, create_tick, read_ranges, read_stream
from headwater_spark.spark_internals.packing import RecordPacking
from headwater_spark.spark_internals.python_tasks import map_in_arrow, prepare_arrow_function
from headwater_spark.worker.task_rows import FIELDS, SCHEMA
from tests.runtime.spark.kafka_topics import Topics
from tests.runtime.spark_internals.packed_rows import (
    RECORD_SCHEMA,
    Rows,
    TwoTopics,
    plain_records,
    read_rows,
    send_records,
    unpack_batches,
)

pytestmark = [pytest.mark.broker, pytest.mark.spark, pytest.mark.timeout(600)]

_SECONDS = 120.0
Ranges = Mapping[tuple[str, int], tuple[int, int]]


def _read_direct(packing: RecordPacking, batch: DataFrame, ranges: Ranges) -> Rows | None:
    packed = packing.packed_ranges(batch, ranges, [0, 1, 0], 2, reads_values=True)
    if packed is None:
        return None
    unpacked = map_in_arrow(packed, prepare_arrow_function(unpack_batches, RECORD_SCHEMA, FIELDS))
    return [tuple(row) for row in unpacked.collect()]


def _process_first_batch(
    spark: SparkSession, source: KafkaSource, folder: Path, process: Callable[[DataFrame], None]
) -> None:
    """Call `process` with the rows of the first batch of a stream; raise what it raises."""
    done: list[BaseException | None] = []

    def call(rows: DataFrame, _: int) -> None:
        if not done:
            try:
                process(rows)
                done.append(None)
            except BaseException as error:  # noqa: BLE001 - raised below
                done.append(error)

    writer = read_stream(spark, source).writeStream.foreachBatch(call)
    query = writer.option("checkpointLocation", str(folder)).start()
    try:
        assert until(lambda: bool(done) or not query.isActive, _SECONDS)
        assert query.exception() is None
    finally:
        query.stop()
    if done[0] is not None:
        raise done[0]


@pytest.mark.usefixtures("generated_code")
def test_ranges_are_the_same(spark: SparkSession, two_topics: TwoTopics, tmp_path: Path) -> None:
    """The batch has ten records of one partition. Ranges are of all partitions, twice in a row."""
    left, right = two_topics.source.topics
    starts = {each: 40 if each == (left, 1) else 50 for each in two_topics.ranges}
    source = attrs.evolve(two_topics.source, start_offsets=starts)
    packing, found = RecordPacking(SCHEMA), list[tuple[Rows | None, Ranges]]()
    empty = {(right, 2): (50, 50)}

    def process(rows: DataFrame) -> None:
        found.extend(
            (_read_direct(packing, rows, ranges), ranges)
            for ranges in (two_topics.ranges, {(left, 0): (7, 9)}, {**two_topics.ranges, **empty})
        )
        assert packing.packed_ranges(rows, empty, [0, 1, 0], 2, reads_values=True) is None

    _process_first_batch(spark, source, tmp_path / "c", process)
    for rows, ranges in found:
        assert rows is not None
        expected = read_rows(
            read_ranges(spark, two_topics.source, {each: at for each, at in ranges.items() if at[0] < at[1]})
        )
        assert sorted(row[1:] for row in rows) == sorted(row[1:] for row in expected)
        assert {(row[0], row[2]) for row in rows} <= {(0, 0), (1, 1), (0, 2)}


def test_records_that_retention_has_deleted_are_skipped(
    spark: SparkSession, topics: Topics, source: KafkaSource, tmp_path: Path
) -> None:
    (topic,) = source.topics
    topics.create({topic: 1})
    send_records(topics, topic, plain_records(100))
    found: list[Rows | None] = []

    def process(rows: DataFrame) -> None:
        topics.delete_records(topic, 60)
        found.append(_read_direct(RecordPacking(SCHEMA), rows, {(topic, 0): (10, 90)}))

    source = attrs.evolve(source, start_offsets={(topic, 0): 95})
    _process_first_batch(spark, source, tmp_path / "c", process)
    (rows,) = found
    assert rows is not None
    assert [row[3] for row in rows] == list(range(60, 90))


def test_ranges_are_planned_if_the_batch_does_not_show_how_to_read_them(
    spark: SparkSession, topics: Topics, source: KafkaSource
) -> None:
    (topic,) = source.topics
    topics.create({topic: 1})
    send_records(topics, topic, plain_records(2))
    ranges = {(topic, 0): (0, 2)}
    rows = read_ranges(spark, source, ranges)
    both = rows.unionByName(read_ranges(spark, source, ranges))
    packing = RecordPacking(SCHEMA)
    assert _read_direct(packing, both, ranges) is None, "several RDDs"
    with capture_logs() as logs:
        for _ in range(2):
            assert _read_direct(packing, create_tick(spark), ranges) is None
    (log,) = (each for each in logs if each["log_level"] == "warning")
    assert log["event"] == "Spark SQL plans each step of a batch: its ranges are not read directly"
    assert _read_direct(packing, rows, ranges) is None, "not tried again"
    assert packing.packed(rows, None, 1, reads_values=True) is not None, "records are packed as before"
