"""Python workers of a local session are forked from a process that has imported what they need."""

import os
from collections.abc import Iterable, Iterator
from pathlib import Path

import pyarrow as pa  # type: ignore[import-untyped]
import pytest
from pyspark.sql import SparkSession

from headwater_spark.driver.queries.batch_results import result_rows


@pytest.mark.spark
@pytest.mark.slow
def test_workers_are_forked_from_our_daemon(spark: SparkSession) -> None:
    def command_of_parent(batches: Iterable[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        for _ in batches:
            yield result_rows([Path(f"/proc/{os.getppid()}/cmdline").read_text(encoding="utf-8")])

    (row,) = spark.range(0, 1, 1, 1).mapInArrow(command_of_parent, "result string").collect()
    assert "headwater_spark.driver.spark_session.worker_daemon" in row.result.split("\0")


def test_rows_of_results_are_texts() -> None:
    texts = ["", "a", '{"name": "Zürich"}', "a"]
    assert result_rows(texts) == pa.RecordBatch.from_pydict({"result": texts})
    assert result_rows([]).num_rows == 0
