"""Each private part of Spark does what `spark_internals` says. `make spark-versions` checks each version."""

import os
import subprocess
import sys
import time
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import Any

import pyarrow as pa  # type: ignore[import-untyped]
import pyspark
import pytest
from pyspark import SparkConf, TaskContext
from pyspark.sql import DataFrame, SparkSession

from headwater.toolchain.broker.readiness import until
from headwater_spark.spark_internals import jvm, python_tasks, supported
from headwater_spark.spark_internals.input_signals import InputSignals
from headwater_spark.spark_internals.supported import UnsupportedSparkError, check_spark_internals

pytestmark = [pytest.mark.spark, pytest.mark.slow]

_SECONDS = 60.0
_RESULT = "result string"


def _text_batch(*texts: str) -> pa.RecordBatch:
    return pa.RecordBatch.from_pydict({"result": list(texts)})


def test_the_running_version_is_supported(spark: SparkSession) -> None:
    oldest, newest = supported.SUPPORTED_VERSIONS
    assert _numbers(oldest) <= _numbers(pyspark.__version__) <= _numbers(newest)
    assert spark.version == pyspark.__version__
    check_spark_internals(spark)


def test_prepared_functions_need_no_pandas(spark: SparkSession, monkeypatch: pytest.MonkeyPatch) -> None:
    """Its import would take half a second of CPU time at each start of an application."""
    monkeypatch.setitem(sys.modules, "pandas", None)
    check_spark_internals(spark)


def test_every_missing_part_is_reported_at_once(spark: SparkSession, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(python_tasks, "_STREAM", "stream")
    monkeypatch.setattr(python_tasks, "map_in_arrow", lambda rows, _: rows._jdf.mapInArrow())
    with pytest.raises(UnsupportedSparkError) as caught:
        check_spark_internals(spark)
    assert [use.partition(":")[0] for use in caught.value.uses] == [
        "prepared Arrow functions",
        "the input of Python workers",
    ]
    assert caught.value.version == pyspark.__version__


def test_a_jvm_that_runs_is_not_started_again(spark: SparkSession) -> None:
    port = jvm.gateway_port()
    jvm.start_jvm(SparkConf())
    assert jvm.gateway_port() == port
    assert jvm.java_gateway(spark).gateway_parameters.port == port


@pytest.mark.usefixtures("spark")
def test_the_process_of_the_jvm_is_a_child_that_runs() -> None:
    process = jvm.jvm_process()
    assert process is not None
    assert process.poll() is None
    assert Path(f"/proc/{process.pid}").exists()


def test_signals_to_the_process_group_do_not_reach_the_jvm() -> None:
    """It would end before the application has stopped."""
    program = (
        "import os; from pyspark import SparkConf; from headwater_spark.spark_internals import jvm; "
        "jvm.start_jvm(SparkConf().setMaster('local[1]')); process = jvm.jvm_process(); "
        "print('group:', os.getpgid(process.pid) == process.pid)"
    )
    environment = {
        name: value for name, value in os.environ.items() if not name.startswith("PYSPARK_GATEWAY")
    }
    done = subprocess.run(
        [sys.executable, "-c", program], capture_output=True, text=True, check=True, env=environment
    )
    assert "group: True" in done.stdout


def test_the_clock_of_the_jvm_is_the_clock_of_this_machine(spark: SparkSession) -> None:
    before = int(time.time() * 1_000)
    assert before - 1 <= jvm.read_jvm_clock(spark) <= time.time() * 1_000 + 1


def test_the_slots_of_a_local_session_are_its_threads(spark: SparkSession) -> None:
    slots = jvm.task_slots(spark.sparkContext)()
    assert f"local[{slots}]" == spark.sparkContext.master


def test_executors_are_lost_after_the_timeout_of_the_network(spark: SparkSession) -> None:
    assert jvm.executor_timeout_seconds(spark) == 120, "the default of Spark"


def test_the_server_of_accumulators_prints_no_traceback(
    spark: SparkSession, capsys: pytest.CaptureFixture[str]
) -> None:
    jvm.silence_accumulators(spark.sparkContext)
    server: Any = spark.sparkContext._accumulatorServer
    server.handle_error(None, ("127.0.0.1", 1))
    assert capsys.readouterr() == ("", "")


def test_hadoop_writes_no_checksum_files(spark: SparkSession, tmp_path: Path) -> None:
    jvm.disable_checksum_files(spark)
    spark.range(1).write.json(str(tmp_path / "rows"))
    assert [path.name for path in (tmp_path / "rows").iterdir() if path.name.endswith(".crc")] == []


def test_a_folder_of_hadoop_is_listed_read_and_deleted(spark: SparkSession, tmp_path: Path) -> None:
    commits = tmp_path / "checkpoint" / "commits"
    commits.mkdir(parents=True)
    (commits / "0").write_text("v1\n{}", encoding="utf-8")
    (commits / "1").write_text("é", encoding="utf-8")
    folder = jvm.HadoopFolder(spark, str(tmp_path / "checkpoint"))
    assert sorted(folder.list_names("commits")) == ["0", "1"]
    assert (folder.read_text("commits/0"), folder.read_text("commits/1")) == ("v1\n{}", "é")
    folder.delete()
    assert not (tmp_path / "checkpoint").exists()
    folder.delete()


def test_a_prepared_function_is_called_for_each_data_frame(spark: SparkSession) -> None:
    def total(batches: Iterable[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        rows = [row for batch in batches for row in batch.to_pylist()]
        yield _text_batch(f"{sorted(rows[0])} {sum(row['id'] for row in rows)}")

    call = python_tasks.prepare_arrow_function(total, _RESULT, ["id"])
    for count, expected in ((3, 3), (4, 6)):
        rows = spark.range(0, count, 1, 1).selectExpr("id")
        assert [row.result for row in python_tasks.map_in_arrow(rows, call).collect()] == [
            f"['id'] {expected}"
        ]


def test_the_stream_of_a_worker_has_one_more_number_after_the_rows(spark: SparkSession) -> None:
    """`worker.task_input` relies on it: without this number, the rows have ended early."""

    def peek(batches: Iterable[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        stream = python_tasks.worker_stream()
        for _ in batches:
            pass
        yield _text_batch(str(len(stream.peek(1)) > 0))

    (row,) = spark.range(0, 10, 1, 1).mapInArrow(peek, _RESULT).collect()
    assert row.result == "True"


def test_only_a_worker_has_a_stream() -> None:
    python_tasks.check_worker_stream()
    with pytest.raises(LookupError, match=r"pyspark\.worker"):
        python_tasks.worker_stream()


def test_a_query_passes_the_number_of_its_batch(spark: SparkSession, tmp_path: Path) -> None:
    name = python_tasks.BATCH_PROPERTY
    seen: list[str] = []

    def number(batches: Iterable[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        context = TaskContext.get()
        assert context is not None
        for _ in batches:
            yield _text_batch(str(context.getLocalProperty(name)))

    def process(rows: DataFrame, batch: int) -> None:
        results = rows.selectExpr("value").mapInArrow(number, _RESULT).collect()
        seen.extend(f"{batch} {row.result}" for row in results[:1])

    query = (
        spark.readStream.format("rate-micro-batch")
        .options(rowsPerBatch=10, numPartitions=1)
        .load()
        .writeStream.foreachBatch(process)
        .option("checkpointLocation", str(tmp_path))
        .start()
    )
    try:
        assert until(lambda: len(seen) > 1 or not query.isActive, _SECONDS)
    finally:
        query.stop()
    assert seen[:2] == ["0 0", "1 1"]


def test_this_spark_can_wait_for_signals(spark: SparkSession) -> None:
    """Without it, idle queries keep polling; `tests/runtime/spark/test_idle_queries.py` has the rest."""
    assert InputSignals(spark).create() is not None


def test_workers_are_forked_from_our_daemon(spark: SparkSession) -> None:
    def command_of_parent(batches: Iterable[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        for _ in batches:
            yield _text_batch(Path(f"/proc/{os.getppid()}/cmdline").read_text(encoding="utf-8"))

    (row,) = spark.range(0, 1, 1, 1).mapInArrow(command_of_parent, _RESULT).collect()
    assert "headwater_spark.spark_internals.worker_daemon" in row.result.split("\0")


def _numbers(version: str) -> tuple[int, ...]:
    return tuple(map(int, version.split(".")))
