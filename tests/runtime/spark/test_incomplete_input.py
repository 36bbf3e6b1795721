"""Spark's JVM fails while a worker receives the rows of a batch, as when Kafka cannot be read any more."""

from collections.abc import Callable, Iterator
from contextlib import closing
from pathlib import Path

import pytest
from pyspark.errors import PySparkException
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as sql

from headwater.compiler import build_nodes, compile_document
from headwater.kafka import Connection
from headwater.spec import load_text
from headwater.toolchain.broker import local
from headwater_spark.driver.queries.task_function import TaskFunction
from headwater_spark.engine.program import build_programs
from headwater_spark.spark_internals.python_tasks import BATCH_PROPERTY
from headwater_spark.worker import clients
from headwater_spark.worker.messages import BatchRequest
from headwater_spark.worker.task_rows import IncompleteInputError, require_all_rows
from tests.runtime.spark.kafka_topics import Topics

pytestmark = pytest.mark.broker

_RECORDS = 30_000
"""Three Arrow batches: the worker receives the first two."""
_DOCUMENT = """
application: {id: APP, config: {processing.guarantee: exactly_once_v2}}
topology:
  - stream: {topic: in-APP, serdes: {key: string, value: string}}
  - filter: {where: "value IS NOT NULL"}
  - to: {topic: out-APP}
"""


@pytest.fixture
def batch_request(kafka: local.LocalBroker, tmp_path: Path, unique: Callable[[str], str]) -> BatchRequest:
    id_ = unique("incomplete")
    loaded = load_text(_DOCUMENT.replace("APP", id_), "test.yaml")
    assert not loaded.problems, loaded.problems
    document = loaded.documents[0]
    counts = {f"in-{id_}": 1, f"out-{id_}": 1}
    (program,) = build_programs(document, build_nodes(document), compile_document(document, counts))
    Topics(kafka.bootstrap_servers).create(counts)
    return BatchRequest(
        application=id_,
        group=id_,
        connection=Connection(bootstrap_servers=(kafka.bootstrap_servers,)),
        program=program,
        state_folder=tmp_path,
        partition_counts={f"in-{id_}": 1},
        end_offsets={(f"in-{id_}", 0): _RECORDS},
        exactly_once=True,
    )


def _rows(spark: SparkSession, topic: str, *, unreadable: int) -> DataFrame:
    """Return one Spark partition with the records of a topic; the JVM fails at the `unreadable` one."""
    offset = sql.col("id")
    failure = sql.raise_error(sql.lit("no record")).cast("binary")
    return spark.range(0, _RECORDS, 1, 1).select(
        sql.lit(topic).alias("topic"),
        sql.lit(0).alias("partition"),
        offset.alias("offset"),
        (offset + 1_700_000_000_000).alias("time"),
        offset.cast("string").cast("binary").alias("key"),
        sql.when(offset == unreadable, failure).otherwise(sql.lit(b"v" * 1_000)).alias("value"),
        sql.array().cast("array<struct<key: string, value: binary>>").alias("headers"),
    )


def _committed(request: BatchRequest) -> int:
    with closing(clients.create_consumer(request.connection, request.group)) as reader:
        [found] = clients.retry_transient(clients.read_committed)(reader, [(f"in-{request.group}", 0)])
        return int(found.offset)


@pytest.fixture
def _in_batch(spark: SparkSession) -> Iterator[None]:
    """Run jobs of this thread as Spark runs the jobs of a query, in batch 1."""
    spark.sparkContext.setLocalProperty(BATCH_PROPERTY, "1")
    yield
    spark.sparkContext._jsc.setLocalProperty(BATCH_PROPERTY, None)


@pytest.mark.usefixtures("_in_batch")
@pytest.mark.parametrize("shuffled", [False, True], ids=["as read", "shuffled"])
def test_nothing_is_committed_if_the_rows_end_early(
    spark: SparkSession,
    kafka: local.LocalBroker,
    batch_request: BatchRequest,
    shuffled: bool,  # noqa: FBT001 - a parameter of the test
) -> None:
    """Otherwise the end offset is committed with the records that have arrived, and the others are lost."""
    topic, results = f"in-{batch_request.group}", f"out-{batch_request.group}"
    rows = _rows(spark, topic, unreadable=_RECORDS - 1)
    with pytest.raises(PySparkException, match="no record"):
        TaskFunction().run(rows, 1, batch_request, ("thread",), shuffled=shuffled)
    assert _committed(batch_request) < 0
    rows = _rows(spark, topic, unreadable=-1)
    [result] = TaskFunction().run(rows, 1, batch_request, ("thread",), shuffled=shuffled)
    assert (result.read, result.skipped) == (_RECORDS, 0)
    assert len(Topics(kafka.bootstrap_servers).get(results)) == _RECORDS
    assert _committed(batch_request) == _RECORDS


class _Stream:
    def __init__(self, rest: bytes) -> None:
        self._rest = rest

    def peek(self, _: int) -> bytes:
        return self._rest


def test_rows_are_complete_if_spark_writes_something_after_them() -> None:
    assert list(require_all_rows([1, 2], _Stream(b"\xff"))) == [1, 2]  # type: ignore[arg-type]


def test_rows_without_anything_after_them_are_incomplete() -> None:
    batches = require_all_rows([1, 2], _Stream(b""))  # type: ignore[arg-type]
    assert [next(batches), next(batches)] == [1, 2]
    with pytest.raises(IncompleteInputError, match="ended early"):
        next(batches)
