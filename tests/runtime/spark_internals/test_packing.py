"""Packed records are the records that Spark's connector returns row by row, on a real broker."""

import threading
from collections.abc import Iterable, Iterator
from pathlib import Path

import attrs
import pyarrow as pa  # type: ignore[import-untyped]
import pytest
from confluent_kafka import Producer
from py4j.protocol import Py4JError  # type: ignore[import-untyped]
from pyspark.errors import PySparkException
from pyspark.sql import DataFrame, SparkSession
from structlog.testing import capture_logs

from headwater.toolchain.broker import local
from headwater.toolchain.broker.readiness import until
from headwater_spark.driver.input.sources import KafkaSource, create_tick, read_ranges, read_stream
from headwater_spark.spark_internals import packing
from headwater_spark.spark_internals.packing import RecordPacking
from headwater_spark.spark_internals.python_tasks import map_in_arrow, prepare_arrow_function
from headwater_spark.worker.task_rows import FIELDS, SCHEMA
from tests.runtime.spark.kafka_topics import Topics
from tests.runtime.spark_internals.packed_rows import (
    CASES,
    NOW,
    RECORD_SCHEMA,
    Rows,
    TwoTopics,
    plain_records,
    read_packed,
    read_rows,
    rows_by_case,
    send_cases,
    send_records,
    unpack_batches,
)

pytestmark = [pytest.mark.broker, pytest.mark.spark, pytest.mark.timeout(600)]

_SECONDS = 120.0
_MIB = 1024 * 1024


@pytest.mark.usefixtures("short_rows")
def test_packed_records_are_the_same(spark: SparkSession, topics: Topics, source: KafkaSource) -> None:
    (topic,) = source.topics
    ranges = send_cases(topics, topic)
    found = rows_by_case(read_packed(read_ranges(spark, source, ranges)))
    expected = rows_by_case(read_rows(read_ranges(spark, source, ranges)))
    for name, records in CASES.items():
        assert found[name] == expected[name], name
        assert [row[3] for row in found[name]] == list(range(len(records))), name


def test_records_of_several_mebibytes_are_the_same(
    spark: SparkSession, kafka: local.LocalBroker, topics: Topics, source: KafkaSource
) -> None:
    """Each of them needs a row of its own, and more than the JVM keeps for the next row."""
    (topic,) = source.topics
    topics.create({topic: 1}, {"max.message.bytes": str(16 * _MIB)})
    producer = Producer({"bootstrap.servers": kafka.bootstrap_servers, "message.max.bytes": 16 * _MIB})
    for size in (9 * _MIB, 1, 5 * _MIB, 4 * _MIB, 0):
        producer.produce(topic, b"v" * size, b"key", 0, timestamp=NOW)
    assert producer.flush(_SECONDS) == 0
    found = read_packed(read_ranges(spark, source, {(topic, 0): (0, 5)}))
    assert len(found) == 5
    assert found == read_rows(read_ranges(spark, source, {(topic, 0): (0, 5)}))


def test_values_that_are_not_read_are_empty(spark: SparkSession, topics: Topics, source: KafkaSource) -> None:
    (topic,) = source.topics
    topics.create({topic: 1})
    send_records(topics, topic, [(b"a", b"value", NOW, ()), (b"b", None, NOW, ())])
    rows = read_ranges(spark, source, {(topic, 0): (0, 2)})
    assert [bytes_of(row[6]) for row in read_packed(rows, reads_values=False)] == [b"", None]


def bytes_of(value: object) -> bytes | None:
    assert value is None or isinstance(value, (bytes, bytearray))
    return None if value is None else bytes(value)


def test_times_of_the_broker_are_the_same(spark: SparkSession, topics: Topics, source: KafkaSource) -> None:
    (topic,) = source.topics
    topics.create({topic: 1}, {"message.timestamp.type": "LogAppendTime"})
    send_records(topics, topic, plain_records(100))
    rows = read_rows(read_ranges(spark, source, {(topic, 0): (0, 100)}))
    assert all(row[4] != NOW + number for number, row in enumerate(rows))
    assert read_packed(read_ranges(spark, source, {(topic, 0): (0, 100)})) == rows


def test_offsets_with_gaps_of_transactions_are_the_same(
    spark: SparkSession, kafka: local.LocalBroker, topics: Topics, source: KafkaSource
) -> None:
    (topic,) = source.topics
    topics.create({topic: 1})
    producer = Producer({"bootstrap.servers": kafka.bootstrap_servers, "transactional.id": topic})
    producer.init_transactions(_SECONDS)
    for number in range(6):
        producer.begin_transaction()
        for at in range(10):
            producer.produce(topic, b"%d" % at, b"%d" % number, 0, timestamp=NOW)
        assert producer.flush(_SECONDS) == 0  # otherwise nothing is written that can be aborted
        (producer.abort_transaction if number % 2 else producer.commit_transaction)(_SECONDS)
    assert until(lambda: topics.is_settled(topic), _SECONDS)
    end = topics.written(topic)
    for exactly_once, keys in ((True, {b"0", b"2", b"4"}), (False, {b"%d" % each for each in range(6)})):
        read = attrs.evolve(source, exactly_once=exactly_once)
        found = read_packed(read_ranges(spark, read, {(topic, 0): (0, end)}))
        assert found == read_rows(read_ranges(spark, read, {(topic, 0): (0, end)}))
        assert {bytes_of(row[5]) for row in found} == keys


def test_offsets_with_gaps_of_compaction_are_the_same(
    spark: SparkSession, topics: Topics, source: KafkaSource
) -> None:
    (topic,) = source.topics
    topics.create(
        {topic: 1}, {"cleanup.policy": "compact", "segment.ms": "1", "min.cleanable.dirty.ratio": "0.01"}
    )
    all_keys, rewritten = range(10), range(0, 10, 2)
    for number, keys in enumerate((all_keys, rewritten, rewritten)):  # a segment each; the last one stays
        send_records(topics, topic, [(b"%d" % key, b"%d" % number, NOW + number * 1_000, ()) for key in keys])
    kept = [1, 3, 5, 7, 9, *range(10, 20)]
    assert until(lambda: [record[2] for record in topics.get(topic)] == kept, _SECONDS)
    for exactly_once in (True, False):
        read = attrs.evolve(source, exactly_once=exactly_once)
        found = read_packed(read_ranges(spark, read, {(topic, 0): (0, 20)}))
        assert [row[3] for row in found] == kept
        assert found == read_rows(read_ranges(spark, read, {(topic, 0): (0, 20)}))


def test_records_that_retention_has_deleted_are_skipped(
    spark: SparkSession, topics: Topics, source: KafkaSource
) -> None:
    (topic,) = source.topics
    topics.create({topic: 1})
    send_records(topics, topic, plain_records(100))
    rows = read_ranges(spark, source, {(topic, 0): (10, 100)})
    topics.delete_records(topic, 60)
    found = read_packed(rows)
    assert [row[3] for row in found] == list(range(60, 100))
    assert found == read_rows(rows)


def test_lost_data_fails_with_the_same_message(
    spark: SparkSession, topics: Topics, source: KafkaSource
) -> None:
    (topic,) = source.topics
    topics.create({topic: 1})
    send_records(topics, topic, plain_records(100))

    class Failing(KafkaSource):
        def options(self) -> dict[str, str]:
            return super().options() | {"failOnDataLoss": "true"}

    failing = Failing(**{each.name: getattr(source, each.name) for each in attrs.fields(KafkaSource)})
    messages: list[list[str]] = []
    for read in (read_packed, read_rows):
        rows = read_ranges(spark, failing, {(topic, 0): (0, 100)})
        rows._jdf.queryExecution().toRdd().getNumPartitions()  # the range is planned
        if not messages:
            topics.delete_records(topic, 60)
        with pytest.raises((PySparkException, Py4JError)) as caught:
            read(rows)
        reasons = [line for line in str(caught.value).splitlines() if line.startswith("Reason: ")]
        messages.append(reasons[:1])
    assert messages[0]
    assert messages[0] == messages[1]


@pytest.mark.usefixtures("generated_code")
def test_records_of_several_topics_are_grouped(spark: SparkSession, two_topics: TwoTopics) -> None:
    found = read_packed(read_ranges(spark, two_topics.source, two_topics.ranges), [0, 1, 0], 2)
    assert {(row[0], row[2]) for row in found} == {(0, 0), (1, 1), (0, 2)}
    single = read_rows(read_ranges(spark, two_topics.source, two_topics.ranges))
    assert sorted(row[1:4] for row in found) == sorted(row[1:4] for row in single)
    assert len(found) == len(single)


@pytest.mark.usefixtures("generated_code")
def test_batches_of_a_stream_and_ranges_are_the_same(
    spark: SparkSession, topics: Topics, source: KafkaSource, tmp_path: Path
) -> None:
    (topic,) = source.topics
    topics.create({topic: 2})
    for partition in range(2):
        send_records(topics, topic, plain_records(30), partition)
    found: list[tuple[Rows, Rows, Rows]] = []

    def process(rows: DataFrame, _: int) -> None:
        both = rows.unionByName(read_ranges(spark, source, {(topic, 0): (5, 7)}))
        found.append((read_packed(rows), read_rows(rows), read_packed(both, [1, 0], 2)))

    stream = read_stream(spark, attrs.evolve(source, start_offsets={(topic, 0): 0, (topic, 1): 0}))
    writer = stream.writeStream.foreachBatch(process).option("checkpointLocation", str(tmp_path / "c"))
    query = writer.start()
    try:
        assert until(lambda: bool(found) or not query.isActive, _SECONDS)
        assert query.exception() is None
    finally:
        query.stop()
    packed, single, both = found[0]
    assert sorted(row[1:6] for row in packed) == sorted(row[1:6] for row in single)
    assert len(packed) == 60
    assert len(both) == 62
    assert {(row[0], row[2]) for row in both} == {(1, 0), (0, 1)}


def test_a_task_that_is_killed_ends(
    spark: SparkSession, topics: Topics, source: KafkaSource, tmp_path: Path
) -> None:
    """The worker has received the records, and is not ready with them."""
    (topic,) = source.topics
    topics.create({topic: 1})
    send_records(topics, topic, plain_records(10))
    rows = read_ranges(spark, source, {(topic, 0): (0, 10)})
    context = spark.sparkContext
    failures: list[BaseException] = []
    received = tmp_path / "received"

    def wait(batches: Iterable[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        yield from unpack_batches(batches)
        received.touch()
        threading.Event().wait(_SECONDS)

    packed = RecordPacking(SCHEMA).packed(rows, None, 1, reads_values=True)
    assert packed is not None
    mapped = map_in_arrow(packed, prepare_arrow_function(wait, RECORD_SCHEMA, FIELDS))

    def run() -> None:
        context.setJobGroup(topic, "killed", interruptOnCancel=True)
        try:
            mapped.collect()
        except Exception as error:  # noqa: BLE001 - compared below
            failures.append(error)

    thread = threading.Thread(target=run)
    thread.start()
    assert until(lambda: received.exists() or not thread.is_alive(), _SECONDS)
    context.cancelJobGroup(topic)
    thread.join(_SECONDS)
    assert not thread.is_alive()
    assert "cancelled" in str(failures[0]).lower()


def test_rows_that_do_not_only_come_from_kafka_are_not_packed(
    spark: SparkSession, topics: Topics, source: KafkaSource
) -> None:
    (topic,) = source.topics
    topics.create({topic: 2})
    for partition in range(2):
        send_records(topics, topic, plain_records(1), partition)
    rows = read_ranges(spark, source, {(topic, 0): (0, 1), (topic, 1): (0, 1)})
    packing_ = RecordPacking(SCHEMA)
    assert packing_.packed(rows, [0], 1, reads_values=True) is None, "a partition was added"
    assert packing_.is_possible
    others = RecordPacking(SCHEMA)
    with capture_logs() as logs:
        for _ in range(2):
            assert others.packed(rows.unionByName(create_tick(spark)), None, 2, reads_values=True) is None
    assert not others.is_possible
    (log,) = logs
    assert log["event"] == "records not packed: Spark passes them on row by row"
    assert log["reason"].endswith(" reads no records of Kafka")


def test_records_are_not_packed_if_spark_cannot_compile_the_code(
    spark: SparkSession, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    """Otherwise each executor would fail each batch."""
    records = tmp_path / "PackedRecords.java"
    records.write_text("public Object generate(Object[] given) { return new Gone(); }", encoding="utf-8")
    monkeypatch.setattr(packing, "_PACKED_RECORDS", records)
    packing_ = RecordPacking(SCHEMA)
    with capture_logs() as logs:
        assert packing_.packed(spark.range(1), None, 1, reads_values=True) is None
    assert not packing_.is_possible
    (log,) = logs
    assert "Gone" in log["reason"]


@pytest.mark.parametrize(
    "text",
    ["calling o1.invoke.\n: java.lang.Y: a reason\n\tat x", "no method\nCaused by: java.lang.Y: a reason\n"],
    ids=["thrown", "caused"],
)
def test_another_spark_passes_records_on_row_by_row(
    spark: SparkSession, monkeypatch: pytest.MonkeyPatch, text: str
) -> None:
    def fail(*_: object) -> None:
        raise Py4JError(text)

    monkeypatch.setattr(packing, "create_object", fail)
    packing_ = RecordPacking(SCHEMA)
    with capture_logs() as logs:
        assert packing_.packed(spark.range(1), None, 1, reads_values=True) is None
        assert packing_.packed(spark.range(1), None, 1, reads_values=True) is None
    assert not packing_.is_possible
    assert [(log["event"], log["reason"]) for log in logs] == [
        ("records not packed: Spark passes them on row by row", "java.lang.Y: a reason")
    ]
