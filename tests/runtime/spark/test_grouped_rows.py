"""The input partitions of a task are read in one Spark partition, without a shuffle."""

from collections import Counter
from collections.abc import Callable, Sequence
from functools import partial
from typing import Any

import pytest
from py4j.protocol import Py4JError, Py4JNetworkError  # type: ignore[import-untyped]
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as sql
from structlog.testing import capture_logs

from headwater.kafka import Connection
from headwater_spark.driver.input.sources import KafkaSource, create_tick, read_ranges
from headwater_spark.driver.queries import row_distribution
from headwater_spark.spark_internals import input_partitions
from headwater_spark.spark_internals.input_partitions import RowGroups
from headwater_spark.spark_internals.packing import RecordPacking
from tests.runtime.spark.applications import Cluster

pytestmark = [
    pytest.mark.broker,
    pytest.mark.spark,
    pytest.mark.timeout(600),
    # What is grouped and packed is found in the plan, which has other nodes if its code is generated.
    pytest.mark.usefixtures("generated_code", "packed_batches"),
]

_PARTITIONS, _RECORDS = 3, 40
_JOIN = """
  - table: {topic: ROWS, materialized: rows, as: rows, serdes: {key: string, value: string}}
  - stream: {topic: IN, as: events, serdes: {key: string, value: string}}
  - join: {from: events, with: rows, value: "concat(left, '+', right)"}
  - to: {topic: OUT, serdes: {key: string, value: string}}
"""


def rows_of(cluster: Cluster) -> DataFrame:
    """Return the rows of two topics with records in all partitions."""
    topics = sorted((cluster.unique("left"), cluster.unique("right")))
    cluster.topics.create(dict.fromkeys(topics, _PARTITIONS))
    for topic in topics:
        cluster.topics.put_by_key(topic, [(b"k%d" % at, b"%d" % at, 1_000 + at) for at in range(_RECORDS)])
    source = KafkaSource(
        connection=Connection(bootstrap_servers=(cluster.servers,)),
        topics=tuple(topics),
        start_offsets={},
        exactly_once=False,
    )
    numbers = Counter(record[:2] for topic in topics for record in cluster.topics.get(topic))
    return read_ranges(cluster.spark, source, {each: (0, number) for each, number in numbers.items()})


def test_grouped_rows_are_the_same(cluster: Cluster) -> None:
    rows = rows_of(cluster)
    grouped = RowGroups().grouped(rows, [0, 2, 0], 3)
    assert grouped is not None
    found = grouped.select(sql.spark_partition_id(), "topic", "partition", "offset").collect()
    assert {(group, partition) for group, _, partition, _ in found} == {(0, 0), (2, 1), (0, 2)}
    expected = rows.select("topic", "partition", "offset").collect()
    assert sorted(row[1:] for row in found) == sorted(map(tuple, expected))
    assert len(found) == 2 * _RECORDS
    plan = grouped._jdf.queryExecution().toString()
    assert "Exchange" not in plan


@pytest.mark.parametrize(
    ("records_at_once", "packed"),
    [
        pytest.param(1_000, False, id="batches of Spark, rows"),
        pytest.param(10, True, id="steps, packed"),
        # `spark_internals/test_packing` groups packed records; the test above, rows that are read as steps.
        pytest.param(1_000, True, id="batches of Spark, packed", marks=pytest.mark.soak),
        pytest.param(10, False, id="steps, rows", marks=pytest.mark.soak),
    ],
)
def test_batches_of_several_topics_are_grouped(
    cluster: Cluster,
    monkeypatch: pytest.MonkeyPatch,
    records_at_once: int,
    packed: bool,  # noqa: FBT001 - a parameter of pytest
) -> None:
    found: list[bool] = []

    def observe(pack: Callable[[], DataFrame | None]) -> DataFrame | None:
        if not packed:
            return None
        rows_found = pack()
        found.append(rows_found is not None)
        return rows_found

    class ObservedPacking(RecordPacking):
        def packed(self, *arguments: Any, **options: Any) -> DataFrame | None:  # noqa: ANN401 - as the original
            return observe(partial(super().packed, *arguments, **options))

        def packed_ranges(self, *arguments: Any, **options: Any) -> DataFrame | None:  # noqa: ANN401 - as above
            return observe(partial(super().packed_ranges, *arguments, **options))

    class Observed(RowGroups):
        def grouped(self, rows: DataFrame, groups: Sequence[int], count: int) -> DataFrame | None:
            grouped = super().grouped(rows, groups, count)
            found.append(grouped is not None)
            return grouped

    monkeypatch.setattr(row_distribution, "RecordPacking", ObservedPacking)
    monkeypatch.setattr(row_distribution, "RowGroups", Observed)
    table = cluster.unique("rows")
    cluster.topics.create({table: 2})
    with cluster.application(_JOIN, partitions=2, ROWS=table, records_at_once=records_at_once) as running:
        records = [(b"k%d" % at, b"v%d" % at, 1_700_000_000_000 + at) for at in range(_RECORDS)]
        cluster.topics.put_by_key(table, records)
        cluster.topics.put_by_key(running.source, [(key, value, at + 1) for key, value, at in records])
        running.application.start()
        running.application.wait_until_idle()
        values = running.values()
        assert set(values) == {b"v%d+v%d" % (at, at) for at in range(_RECORDS)}
        assert len(values) == _RECORDS
    assert found
    assert all(found)


def test_rows_that_do_not_only_come_from_kafka_are_not_grouped(cluster: Cluster) -> None:
    rows = rows_of(cluster)
    groups = RowGroups()
    assert groups.grouped(rows, [0, 1], 2) is None, "a partition was added"
    assert groups.is_possible
    others = RowGroups()
    with capture_logs() as logs:
        for _ in range(2):
            assert others.grouped(rows.unionByName(create_tick(cluster.spark)), [0, 1, 2], 3) is None
    assert not others.is_possible
    (log,) = logs
    assert log["event"] == "input partitions not grouped: Spark shuffles rows"
    assert log["reason"].endswith(" reads no partition of Kafka")


def test_another_spark_shuffles_rows(spark: SparkSession, monkeypatch: pytest.MonkeyPatch) -> None:
    def fail(*_: object) -> None:
        raise Py4JError("no method\nCaused by: java.lang.Y: a reason\n")

    monkeypatch.setattr(input_partitions, "load_methods", fail)
    groups = RowGroups()
    with capture_logs() as logs:
        assert groups.grouped(spark.range(1), [0], 1) is None
        assert groups.grouped(spark.range(1), [0], 1) is None
    assert not groups.is_possible
    assert [(log["event"], log["reason"]) for log in logs] == [
        ("input partitions not grouped: Spark shuffles rows", "java.lang.Y: a reason")
    ]


def test_the_end_of_the_jvm_is_raised(spark: SparkSession, monkeypatch: pytest.MonkeyPatch) -> None:
    def fail(*_: object) -> None:
        raise Py4JNetworkError("closed")

    monkeypatch.setattr(input_partitions, "load_methods", fail)
    with pytest.raises(Py4JNetworkError):
        RowGroups().grouped(spark.range(1), [0], 1)
