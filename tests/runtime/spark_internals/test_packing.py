"""Packed records are the records that Spark's connector returns row by row, on a real broker."""

import threading
from collections.abc import Callable, Iterable, Iterator, Sequence
from pathlib import Path

import attrs
import pyarrow as pa  # type: ignore[import-untyped]
import pytest
from confluent_kafka import Producer
from py4j.protocol import Py4JError  # type: ignore[import-untyped]
from pyspark import TaskContext
from pyspark.errors import PySparkException
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as sql
from structlog.testing import capture_logs

from headwater.compiler import compile_document
from headwater.kafka import Connection
from headwater.spec import load_text
from headwater.toolchain.broker import local
from headwater.toolchain.broker.readiness import until
from headwater_spark.driver.input.sources import ROW_SCHEMA, KafkaSource, read_ranges, read_stream, tick
from headwater_spark.driver.preflight import check_runnable
from headwater_spark.driver.queries.native import evaluate_program
from headwater_spark.spark_internals import packing
from headwater_spark.spark_internals.packing import Evaluation, RecordPacking
from headwater_spark.spark_internals.python_tasks import map_in_arrow, prepare_arrow_function
from headwater_spark.worker.packed_records import FIELDS, SCHEMA, unpack_records
from headwater_spark.worker.task_input import COLUMNS
from tests.runtime.spark.kafka_topics import Topics

pytestmark = [pytest.mark.broker, pytest.mark.spark, pytest.mark.timeout(600)]

_SECONDS = 120.0
_NOW = 1_700_000_000_000
_MIB = 1024 * 1024
_RECORDS = (
    "task int, topic string, partition int, offset bigint, time bigint, key binary, value binary, "
    "headers array<struct<key:string,value:binary>>"
)
_MAP = """
application: {id: packed}
topology:
  - stream: {topic: IN, serdes: {key: string, value: string}}
  - filter: {where: "offset % 3 <> 1"}
  - mapValues: {value: "upper(value) || topic || string(timestamp)"}
  - to: {topic: OUT, serdes: {key: string, value: string}}
"""
Headers = Sequence[tuple[str, bytes | None]]
Record = tuple[bytes | None, bytes | None, int, Headers]
Rows = Sequence[tuple[object, ...]]


def _plain(count: int) -> Sequence[Record]:
    return [(b"key %d" % at, b"value %d" % at, _NOW + at, ()) for at in range(count)]


_CASES: dict[str, Sequence[Record]] = {
    "one record": _plain(1),
    "more records than a row": _plain(packing._RECORDS_AT_ONCE * 2 + 1),
    "exactly the records of a row": _plain(packing._RECORDS_AT_ONCE),
    "nulls": [(None if at % 3 == 0 else b"k", None if at % 5 < 2 else b"", _NOW, ()) for at in range(1_000)],
    "only nulls": [(None, None, _NOW, ())] * 17,
    "headers": [
        (b"k", b"v", _NOW, [(f"é{each}", None if each % 2 else b"%d" % each) for each in range(at % 4)])
        for at in range(100)
    ],
    "empty headers": [(b"k", b"v", _NOW, [("", b"")]), (b"k", b"v", _NOW, ())],
    "headers in the second row": [
        *_plain(packing._RECORDS_AT_ONCE),
        (b"k", b"v", _NOW, [("name", b"value")]),
        (b"k", b"v", _NOW, ()),
    ],
    "times": [(b"k", b"v", time, ()) for time in (0, 1, _NOW)],
    "large records": [(b"k" * size, b"v" * size, _NOW, ()) for size in (450_000, 1, 200_000) * 8],
}


@pytest.fixture
def topics(kafka: local.LocalBroker) -> Topics:
    return Topics(kafka.bootstrap_servers)


@pytest.fixture
def source(kafka: local.LocalBroker, unique: Callable[[str], str]) -> KafkaSource:
    topic = unique("packed")
    return KafkaSource(
        connection=Connection(bootstrap_servers=(kafka.bootstrap_servers,)),
        topics=(topic,),
        start_offsets={},
        exactly_once=True,
    )


def _unpack(batches: Iterable[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
    context = TaskContext.get()
    assert context is not None
    for records in unpack_records(batches, with_topic=True):
        task = pa.array([context.partitionId()] * len(records), pa.int32())
        yield pa.RecordBatch.from_arrays([task, *records.columns], names=["task", *COLUMNS])


def _unpacked(
    rows: DataFrame,
    groups: Sequence[int] | None = None,
    count: int = 0,
    *,
    reads_values: bool = True,
    evaluation: Evaluation | None = None,
) -> Rows:
    """Return the records behind `rows`, with the number of their Spark task, as they are in it."""
    packed = RecordPacking(SCHEMA, evaluation).packed(rows, groups, count, reads_values=reads_values)
    assert packed is not None
    unpacked = map_in_arrow(packed, prepare_arrow_function(_unpack, _RECORDS, FIELDS))
    return [tuple(row) for row in unpacked.collect()]


def _single(rows: DataFrame) -> Rows:
    """Return what Spark's connector returns."""
    return [tuple(row) for row in rows.select(sql.spark_partition_id(), *COLUMNS).collect()]


def _send(topics: Topics, topic: str, records: Sequence[Record], partition: int = 0) -> None:
    topics.send((topic, partition, key, value, time, tuple(headers)) for key, value, time, headers in records)


@pytest.mark.parametrize("records", _CASES.values(), ids=_CASES)
def test_packed_records_are_the_same(
    spark: SparkSession, topics: Topics, source: KafkaSource, records: Sequence[Record]
) -> None:
    (topic,) = source.topics
    topics.create({topic: 1})
    _send(topics, topic, records)
    found = _unpacked(read_ranges(spark, source, {(topic, 0): (0, len(records))}))
    assert found == _single(read_ranges(spark, source, {(topic, 0): (0, len(records))}))
    assert [row[3] for row in found] == list(range(len(records)))


def test_records_of_several_mebibytes_are_the_same(
    spark: SparkSession, kafka: local.LocalBroker, topics: Topics, source: KafkaSource
) -> None:
    """Each of them needs a row of its own, and more than the JVM keeps for the next row."""
    (topic,) = source.topics
    topics.create({topic: 1}, {"max.message.bytes": str(16 * _MIB)})
    producer = Producer({"bootstrap.servers": kafka.bootstrap_servers, "message.max.bytes": 16 * _MIB})
    for size in (9 * _MIB, 1, 5 * _MIB, 4 * _MIB, 0):
        producer.produce(topic, b"v" * size, b"key", 0, timestamp=_NOW)
    assert producer.flush(_SECONDS) == 0
    found = _unpacked(read_ranges(spark, source, {(topic, 0): (0, 5)}))
    assert len(found) == 5
    assert found == _single(read_ranges(spark, source, {(topic, 0): (0, 5)}))


def _evaluate_map(rows: DataFrame) -> DataFrame:
    loaded = load_text(_MAP, "map.yaml")
    assert not loaded.problems
    (document,) = loaded.documents
    (program,) = check_runnable(document).programs(compile_document(document, {"IN": 1, "OUT": 1}))
    return evaluate_program(rows, program)


@pytest.mark.usefixtures("generated_code")
@pytest.mark.parametrize("records", _CASES.values(), ids=_CASES)
def test_packed_records_that_spark_evaluates_are_the_same(
    spark: SparkSession, topics: Topics, source: KafkaSource, records: Sequence[Record]
) -> None:
    (topic,) = source.topics
    topics.create({topic: 1})
    _send(topics, topic, records)
    rows = _evaluate_map(read_ranges(spark, source, {(topic, 0): (0, len(records))}))
    found = _unpacked(rows, evaluation=Evaluation(ROW_SCHEMA, _evaluate_map))
    assert found == _single(rows)
    assert [row[3] for row in found] == [each for each in range(len(records)) if each % 3 != 1]


@pytest.mark.usefixtures("generated_code")
def test_invalid_texts_that_spark_evaluates_are_the_same(
    spark: SparkSession, topics: Topics, source: KafkaSource
) -> None:
    (topic,) = source.topics
    topics.create({topic: 1})
    texts = [b"\xff", b"a\xc3", b"\xed\xa0\x80", b"\xf0\x9f\x98\x80", b"\x00", "straße".encode(), b""]
    _send(topics, topic, [(text, text, _NOW, ()) for text in texts for _ in range(3)])
    rows = _evaluate_map(read_ranges(spark, source, {(topic, 0): (0, 3 * len(texts))}))
    found = _unpacked(rows, evaluation=Evaluation(ROW_SCHEMA, _evaluate_map))
    assert len(found) == 2 * len(texts)
    assert found == _single(rows)


@pytest.mark.usefixtures("generated_code")
def test_no_row_is_packed_if_spark_drops_all_records(
    spark: SparkSession, topics: Topics, source: KafkaSource
) -> None:
    (topic,) = source.topics
    topics.create({topic: 1})
    _send(topics, topic, _plain(10))
    evaluation = Evaluation(ROW_SCHEMA, lambda rows: rows.where(sql.col("key").isNull()))
    assert _unpacked(read_ranges(spark, source, {(topic, 0): (0, 10)}), evaluation=evaluation) == []


@pytest.mark.usefixtures("generated_code")
def test_evaluated_records_of_several_topics_are_grouped(
    spark: SparkSession, kafka: local.LocalBroker, topics: Topics, unique: Callable[[str], str]
) -> None:
    names = sorted((unique("left"), unique("right")))
    topics.create(dict.fromkeys(names, 3))
    for topic in names:
        for partition in range(3):
            _send(topics, topic, _plain(50), partition)
    source = KafkaSource(
        connection=Connection(bootstrap_servers=(kafka.bootstrap_servers,)),
        topics=tuple(names),
        start_offsets={},
    )
    ranges = {(topic, partition): (partition, 50) for topic in names for partition in range(3)}
    rows = _evaluate_map(read_ranges(spark, source, ranges))
    found = _unpacked(rows, [0, 1, 0], 2, evaluation=Evaluation(ROW_SCHEMA, _evaluate_map))
    assert {(row[0], row[2]) for row in found} == {(0, 0), (1, 1), (0, 2)}
    assert sorted(row[1:7] for row in found) == sorted(row[1:7] for row in _single(rows))


@pytest.mark.usefixtures("generated_code")
def test_an_error_of_an_expression_has_the_same_message(
    spark: SparkSession, topics: Topics, source: KafkaSource
) -> None:
    (topic,) = source.topics
    topics.create({topic: 1})
    _send(topics, topic, _plain(10))

    def evaluate(rows: DataFrame) -> DataFrame:
        refused = sql.raise_error(sql.concat(sql.lit("refused: "), sql.col("value").cast("string")))
        return rows.withColumn("value", sql.when(sql.col("offset") < 7, sql.col("value")).otherwise(refused))

    rows = evaluate(read_ranges(spark, source, {(topic, 0): (0, 10)}))
    reads: Sequence[Callable[[], Rows]] = (
        lambda: _unpacked(rows, evaluation=Evaluation(ROW_SCHEMA, evaluate)),
        lambda: _single(rows),
    )
    for read in reads:
        with pytest.raises((PySparkException, Py4JError), match="refused: value 7"):
            read()


def test_records_are_not_packed_if_spark_generates_no_code(
    spark: SparkSession, topics: Topics, source: KafkaSource
) -> None:
    """So it is in most tests of this run."""
    (topic,) = source.topics
    topics.create({topic: 1})
    _send(topics, topic, _plain(1))
    before = spark.conf.get("spark.sql.codegen.wholeStage")
    spark.conf.set("spark.sql.codegen.wholeStage", "false")
    try:
        packing_ = RecordPacking(SCHEMA, Evaluation(ROW_SCHEMA, _evaluate_map))
        rows = _evaluate_map(read_ranges(spark, source, {(topic, 0): (0, 1)}))
        with capture_logs() as logs:
            assert packing_.packed(rows, None, 1, reads_values=True) is None
    finally:
        spark.conf.set("spark.sql.codegen.wholeStage", str(before))
    assert not packing_.is_possible
    (log,) = logs
    assert log["event"] == "records not packed: Spark passes them on row by row"
    assert "Spark generates no code for Project" in log["reason"]


@pytest.mark.usefixtures("generated_code")
def test_records_are_not_packed_if_spark_generates_code_for_a_part_of_the_program(
    spark: SparkSession, topics: Topics, source: KafkaSource
) -> None:
    """Spark interprets functions with lambdas: the code after the filter would read what it drops."""
    (topic,) = source.topics
    topics.create({topic: 1})
    _send(topics, topic, _plain(1))

    def evaluate(rows: DataFrame) -> DataFrame:
        is_named = sql.exists("headers", lambda header: header["key"] == "name")
        return rows.where(is_named).withColumn(
            "value", sql.upper(sql.col("value").cast("string")).cast("binary")
        )

    packing_ = RecordPacking(SCHEMA, Evaluation(ROW_SCHEMA, evaluate))
    rows = evaluate(read_ranges(spark, source, {(topic, 0): (0, 1)}))
    with capture_logs() as logs:
        assert packing_.packed(rows, None, 1, reads_values=True) is None
    assert not packing_.is_possible
    (log,) = logs
    assert "Spark generates code only for a part of Project" in log["reason"]


@pytest.mark.usefixtures("generated_code")
@pytest.mark.parametrize("columns", [COLUMNS, COLUMNS[1:]], ids=["all columns", "without the topic"])
def test_records_that_spark_does_not_change_are_the_same(
    spark: SparkSession, topics: Topics, source: KafkaSource, columns: Sequence[str]
) -> None:
    """So it is in a sub-topology that passes bytes on."""
    (topic,) = source.topics
    topics.create({topic: 1})
    _send(topics, topic, _CASES["headers"])
    ranges = {(topic, 0): (0, len(_CASES["headers"]))}
    evaluation = Evaluation(ROW_SCHEMA, lambda rows: rows.select(*columns))
    found = _unpacked(read_ranges(spark, source, ranges), evaluation=evaluation)
    with_topic = len(columns) == len(COLUMNS)
    expected = _single(read_ranges(spark, source, ranges))
    assert found == [row if with_topic else (row[0], None, *row[2:]) for row in expected]


def test_values_that_are_not_read_are_empty(spark: SparkSession, topics: Topics, source: KafkaSource) -> None:
    (topic,) = source.topics
    topics.create({topic: 1})
    _send(topics, topic, [(b"a", b"value", _NOW, ()), (b"b", None, _NOW, ())])
    rows = read_ranges(spark, source, {(topic, 0): (0, 2)})
    assert [bytes_of(row[6]) for row in _unpacked(rows, reads_values=False)] == [b"", None]


def bytes_of(value: object) -> bytes | None:
    assert value is None or isinstance(value, (bytes, bytearray))
    return None if value is None else bytes(value)


def test_times_of_the_broker_are_the_same(spark: SparkSession, topics: Topics, source: KafkaSource) -> None:
    (topic,) = source.topics
    topics.create({topic: 1}, {"message.timestamp.type": "LogAppendTime"})
    _send(topics, topic, _plain(100))
    rows = _single(read_ranges(spark, source, {(topic, 0): (0, 100)}))
    assert all(row[4] != _NOW + number for number, row in enumerate(rows))
    assert _unpacked(read_ranges(spark, source, {(topic, 0): (0, 100)})) == rows


@pytest.mark.parametrize("exactly_once", [True, False])
def test_offsets_with_gaps_of_transactions_are_the_same(
    spark: SparkSession,
    kafka: local.LocalBroker,
    topics: Topics,
    source: KafkaSource,
    exactly_once: bool,  # noqa: FBT001 - a parameter of pytest
) -> None:

    (topic,) = source.topics
    topics.create({topic: 1})
    producer = Producer({"bootstrap.servers": kafka.bootstrap_servers, "transactional.id": topic})
    producer.init_transactions(_SECONDS)
    for number in range(6):
        producer.begin_transaction()
        for at in range(10):
            producer.produce(topic, b"%d" % at, b"%d" % number, 0, timestamp=_NOW)
        assert producer.flush(_SECONDS) == 0  # otherwise nothing is written that can be aborted
        (producer.abort_transaction if number % 2 else producer.commit_transaction)(_SECONDS)
    assert until(lambda: topics.is_settled(topic), _SECONDS)
    end = topics.written(topic)
    source = attrs.evolve(source, exactly_once=exactly_once)
    found = _unpacked(read_ranges(spark, source, {(topic, 0): (0, end)}))
    assert found == _single(read_ranges(spark, source, {(topic, 0): (0, end)}))
    assert {bytes_of(row[5]) for row in found} == (
        {b"0", b"2", b"4"} if exactly_once else {b"%d" % number for number in range(6)}
    )


def test_offsets_with_gaps_of_compaction_are_the_same(
    spark: SparkSession, topics: Topics, source: KafkaSource
) -> None:
    (topic,) = source.topics
    topics.create(
        {topic: 1}, {"cleanup.policy": "compact", "segment.ms": "1", "min.cleanable.dirty.ratio": "0.01"}
    )
    all_keys, rewritten = range(10), range(0, 10, 2)
    for number, keys in enumerate((all_keys, rewritten, rewritten)):  # a segment each; the last one stays
        _send(topics, topic, [(b"%d" % key, b"%d" % number, _NOW + number * 1_000, ()) for key in keys])
    kept = [1, 3, 5, 7, 9, *range(10, 20)]
    assert until(lambda: [record[2] for record in topics.get(topic)] == kept, _SECONDS)
    for exactly_once in (True, False):
        read = attrs.evolve(source, exactly_once=exactly_once)
        found = _unpacked(read_ranges(spark, read, {(topic, 0): (0, 20)}))
        assert [row[3] for row in found] == kept
        assert found == _single(read_ranges(spark, read, {(topic, 0): (0, 20)}))


def test_records_that_retention_has_deleted_are_skipped(
    spark: SparkSession, topics: Topics, source: KafkaSource
) -> None:
    (topic,) = source.topics
    topics.create({topic: 1})
    _send(topics, topic, _plain(100))
    rows = read_ranges(spark, source, {(topic, 0): (10, 100)})
    topics.delete_records(topic, 60)
    found = _unpacked(rows)
    assert [row[3] for row in found] == list(range(60, 100))
    assert found == _single(rows)


def test_lost_data_fails_with_the_same_message(
    spark: SparkSession, topics: Topics, source: KafkaSource
) -> None:
    (topic,) = source.topics
    topics.create({topic: 1})
    _send(topics, topic, _plain(100))

    class Failing(KafkaSource):
        def options(self) -> dict[str, str]:
            return super().options() | {"failOnDataLoss": "true"}

    failing = Failing(**{each.name: getattr(source, each.name) for each in attrs.fields(KafkaSource)})
    messages: list[list[str]] = []
    for read in (_unpacked, _single):
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
def test_records_of_several_topics_are_grouped(
    spark: SparkSession, kafka: local.LocalBroker, topics: Topics, unique: Callable[[str], str]
) -> None:
    names = sorted((unique("left"), unique("right")))
    topics.create(dict.fromkeys(names, 3))
    for topic in names:
        for partition in range(3):
            _send(topics, topic, _plain(50), partition)
    source = KafkaSource(
        connection=Connection(bootstrap_servers=(kafka.bootstrap_servers,)),
        topics=tuple(names),
        start_offsets={},
    )
    ranges = {(topic, partition): (partition, 50) for topic in names for partition in range(3)}
    found = _unpacked(read_ranges(spark, source, ranges), [0, 1, 0], 2)
    assert {(row[0], row[2]) for row in found} == {(0, 0), (1, 1), (0, 2)}
    single = _single(read_ranges(spark, source, ranges))
    assert sorted(row[1:4] for row in found) == sorted(row[1:4] for row in single)
    assert len(found) == len(single)


@pytest.mark.usefixtures("generated_code")
def test_batches_of_a_stream_and_ranges_are_the_same(
    spark: SparkSession, topics: Topics, source: KafkaSource, tmp_path: Path
) -> None:
    (topic,) = source.topics
    topics.create({topic: 2})
    for partition in range(2):
        _send(topics, topic, _plain(30), partition)
    found: list[tuple[Rows, Rows, Rows]] = []

    def process(rows: DataFrame, _: int) -> None:
        both = rows.unionByName(read_ranges(spark, source, {(topic, 0): (5, 7)}))
        found.append((_unpacked(rows), _single(rows), _unpacked(both, [1, 0], 2)))

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
    _send(topics, topic, _plain(10))
    rows = read_ranges(spark, source, {(topic, 0): (0, 10)})
    context = spark.sparkContext
    failures: list[BaseException] = []
    received = tmp_path / "received"

    def wait(batches: Iterable[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        yield from _unpack(batches)
        received.touch()
        threading.Event().wait(_SECONDS)

    packed = RecordPacking(SCHEMA).packed(rows, None, 1, reads_values=True)
    assert packed is not None
    mapped = map_in_arrow(packed, prepare_arrow_function(wait, _RECORDS, FIELDS))

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
        _send(topics, topic, _plain(1), partition)
    rows = read_ranges(spark, source, {(topic, 0): (0, 1), (topic, 1): (0, 1)})
    packing_ = RecordPacking(SCHEMA)
    assert packing_.packed(rows, [0], 1, reads_values=True) is None, "a partition was added"
    assert packing_.is_possible
    others = RecordPacking(SCHEMA)
    with capture_logs() as logs:
        for _ in range(2):
            assert others.packed(rows.unionByName(tick(spark)), None, 2, reads_values=True) is None
    assert not others.is_possible
    (log,) = logs
    assert log["event"] == "records not packed: Spark passes them on row by row"
    assert log["reason"].endswith(" reads no records of Kafka")


def test_records_are_not_packed_if_spark_cannot_compile_the_code(
    spark: SparkSession, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Otherwise each executor would fail each batch."""
    monkeypatch.setattr(
        packing, "_code", lambda: "public Object generate(Object[] given) { return new Gone(); }"
    )
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
