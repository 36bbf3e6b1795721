"""Packed records that Spark SQL has evaluated are the rows of Spark's evaluated plan, on a real broker."""

from collections.abc import Callable, Sequence

import pyspark
import pytest
from packaging.version import Version
from py4j.protocol import Py4JError  # type: ignore[import-untyped]
from pyspark.errors import PySparkException
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as sql
from structlog.testing import capture_logs

from headwater.compiler import compile_document
from headwater.spec import load_text
from headwater_spark.driver.input.sources import ROW_SCHEMA, KafkaSource, read_ranges
from headwater_spark.driver.preflight import check_runnable
from headwater_spark.driver.queries.native import evaluate_program
from headwater_spark.spark_internals.packing import Evaluation, RecordPacking
from headwater_spark.worker.task_input import COLUMNS
from headwater_spark.worker.task_rows import SCHEMA
from tests.runtime.spark.kafka_topics import Topics
from tests.runtime.spark_internals.packed_rows import (
    CASES,
    NOW,
    Rows,
    TwoTopics,
    plain_records,
    read_packed,
    read_rows,
    rows_by_case,
    send_cases,
    send_records,
)

pytestmark = [pytest.mark.broker, pytest.mark.spark, pytest.mark.timeout(600)]

_MAP = """
application: {id: packed}
topology:
  - stream: {topic: IN, serdes: {key: string, value: string}}
  - filter: {where: "offset % 3 <> 1"}
  - mapValues: {value: "upper(value) || topic || string(timestamp)"}
  - to: {topic: OUT, serdes: {key: string, value: string}}
"""


def _evaluate_map(rows: DataFrame) -> DataFrame:
    loaded = load_text(_MAP, "map.yaml")
    assert not loaded.problems
    (document,) = loaded.documents
    (program,) = check_runnable(document).programs(compile_document(document, {"IN": 1, "OUT": 1}))
    return evaluate_program(rows, program)


@pytest.mark.usefixtures("generated_code", "short_rows")
def test_packed_records_that_spark_evaluates_are_the_same(
    spark: SparkSession, topics: Topics, source: KafkaSource
) -> None:
    (topic,) = source.topics
    rows = _evaluate_map(read_ranges(spark, source, send_cases(topics, topic)))
    found = rows_by_case(read_packed(rows, evaluation=Evaluation(ROW_SCHEMA, _evaluate_map)))
    expected = rows_by_case(read_rows(rows))
    for name, records in CASES.items():
        assert found[name] == expected[name], name
        assert [row[3] for row in found[name]] == [each for each in range(len(records)) if each % 3 != 1]


@pytest.mark.usefixtures("generated_code")
def test_invalid_texts_that_spark_evaluates_are_the_same(
    spark: SparkSession, topics: Topics, source: KafkaSource
) -> None:
    (topic,) = source.topics
    topics.create({topic: 1})
    texts = [b"\xff", b"a\xc3", b"\xed\xa0\x80", b"\xf0\x9f\x98\x80", b"\x00", "straße".encode(), b""]
    send_records(topics, topic, [(text, text, NOW, ()) for text in texts for _ in range(3)])
    rows = _evaluate_map(read_ranges(spark, source, {(topic, 0): (0, 3 * len(texts))}))
    found = read_packed(rows, evaluation=Evaluation(ROW_SCHEMA, _evaluate_map))
    assert len(found) == 2 * len(texts)
    assert found == read_rows(rows)


@pytest.mark.usefixtures("generated_code")
def test_no_row_is_packed_if_spark_drops_all_records(
    spark: SparkSession, topics: Topics, source: KafkaSource
) -> None:
    (topic,) = source.topics
    topics.create({topic: 1})
    send_records(topics, topic, plain_records(10))
    evaluation = Evaluation(ROW_SCHEMA, lambda rows: rows.where(sql.col("key").isNull()))
    assert read_packed(read_ranges(spark, source, {(topic, 0): (0, 10)}), evaluation=evaluation) == []


@pytest.mark.usefixtures("generated_code")
def test_evaluated_records_of_several_topics_are_grouped(spark: SparkSession, two_topics: TwoTopics) -> None:
    rows = _evaluate_map(read_ranges(spark, two_topics.source, two_topics.ranges))
    found = read_packed(rows, [0, 1, 0], 2, evaluation=Evaluation(ROW_SCHEMA, _evaluate_map))
    assert {(row[0], row[2]) for row in found} == {(0, 0), (1, 1), (0, 2)}
    assert sorted(row[1:7] for row in found) == sorted(row[1:7] for row in read_rows(rows))


@pytest.mark.usefixtures("generated_code")
def test_an_error_of_an_expression_has_the_same_message(
    spark: SparkSession, topics: Topics, source: KafkaSource
) -> None:
    (topic,) = source.topics
    topics.create({topic: 1})
    send_records(topics, topic, plain_records(10))

    def evaluate(rows: DataFrame) -> DataFrame:
        refused = sql.raise_error(sql.concat(sql.lit("refused: "), sql.col("value").cast("string")))
        return rows.withColumn("value", sql.when(sql.col("offset") < 7, sql.col("value")).otherwise(refused))

    rows = evaluate(read_ranges(spark, source, {(topic, 0): (0, 10)}))
    reads: Sequence[Callable[[], Rows]] = (
        lambda: read_packed(rows, evaluation=Evaluation(ROW_SCHEMA, evaluate)),
        lambda: read_rows(rows),
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
    send_records(topics, topic, plain_records(1))
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
    """Spark interprets some functions: the code after the filter would read what it drops.

    `zip_with` is one of them in all versions; Spark 4.3 generates code for most functions with lambdas.
    """
    (topic,) = source.topics
    topics.create({topic: 1})
    send_records(topics, topic, plain_records(1))

    def evaluate(rows: DataFrame) -> DataFrame:
        pairs = sql.zip_with("headers", "headers", lambda left, right: left["key"] == right["key"])
        return rows.where(sql.size(pairs) > 0).withColumn(
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
@pytest.mark.skipif(Version(pyspark.__version__) < Version("4.3"), reason="Spark generates no code for them")
def test_packed_records_are_the_same_after_functions_with_lambdas(
    spark: SparkSession, topics: Topics, source: KafkaSource
) -> None:
    (topic,) = source.topics
    topics.create({topic: 1})
    records = CASES["headers"]
    send_records(topics, topic, records)

    def evaluate(rows: DataFrame) -> DataFrame:
        has_text = sql.exists("headers", lambda header: header["value"].isNotNull())
        names = sql.transform("headers", lambda header: sql.upper(header["key"]))
        return rows.where(has_text).withColumn("value", sql.array_join(names, ",").cast("binary"))

    rows = evaluate(read_ranges(spark, source, {(topic, 0): (0, len(records))}))
    found = read_packed(rows, evaluation=Evaluation(ROW_SCHEMA, evaluate))
    assert found == read_rows(rows)
    assert 0 < len(found) < len(records)


@pytest.mark.usefixtures("generated_code")
@pytest.mark.parametrize("columns", [COLUMNS, COLUMNS[1:]], ids=["all columns", "without the topic"])
def test_records_that_spark_does_not_change_are_the_same(
    spark: SparkSession, topics: Topics, source: KafkaSource, columns: Sequence[str]
) -> None:
    """So it is in a sub-topology that passes bytes on."""
    (topic,) = source.topics
    topics.create({topic: 1})
    send_records(topics, topic, CASES["headers"])
    ranges = {(topic, 0): (0, len(CASES["headers"]))}
    evaluation = Evaluation(ROW_SCHEMA, lambda rows: rows.select(*columns))
    found = read_packed(read_ranges(spark, source, ranges), evaluation=evaluation)
    with_topic = len(columns) == len(COLUMNS)
    expected = read_rows(read_ranges(spark, source, ranges))
    assert found == [row if with_topic else (row[0], None, *row[2:]) for row in expected]
