"""Where the time of a workload's batches goes: `python -m tests.bench.runtime.batch_profile NAME …`.

docs/benchmarks.md describes the output. The options set the number of records, and how many runs there are:
only the last one counts, when the JVM has compiled its code.
"""

import os
import re
import tempfile
import time
from collections import defaultdict
from collections.abc import Callable, Mapping
from functools import partial
from pathlib import Path

import click
from pyspark.sql import SparkSession
from rich.console import Console
from rich.table import Table

from headwater.control.logs import configure_log
from headwater.toolchain import ensure_kafka, ensure_spark_jars
from headwater.toolchain.broker import Broker, Settings
from headwater_spark.driver.spark_session.session import SessionSettings, start_session
from tests.bench import cpu_time
from tests.bench.runtime import timed_daemon
from tests.bench.runtime.batch_times import (
    PARTS,
    divided_jobs,
    mean_parts,
    read_durations,
    read_jobs,
    read_spans,
)
from tests.bench.runtime.cases import OPERATORS, STATEFUL
from tests.bench.runtime.comparison import WIDTH
from tests.bench.runtime.ours import Headwater
from tests.bench.runtime.throughput import Run, run_of
from tests.bench.runtime.topics import Topics
from tests.bench.runtime.workloads import CORES, Workload

_WORKLOADS: Mapping[str, Workload] = {each.name: each for each in (*OPERATORS, *STATEFUL)}
_SMALL_SHARE = 0.01
"""Threads with less of the CPU time are not printed."""


@click.command()
@click.argument("names", nargs=-1, required=True, type=click.Choice(list(_WORKLOADS)))
@click.option("--records", default=3_000_000, show_default=True, help="Records of a run, of all sources.")
@click.option("--runs", default=3, show_default=True, help="Runs of each workload; the last one counts.")
@click.option("--conf", multiple=True, metavar="KEY=VALUE", help="A setting of Spark.")
def main(names: tuple[str, ...], records: int, runs: int, conf: tuple[str, ...]) -> None:
    """Print the time line of a batch, and the CPU time by process and thread."""
    configure_log(level="error")
    with tempfile.TemporaryDirectory(prefix="headwater-batches-") as name:
        folder = Path(name)
        with Broker(ensure_kafka(), folder / "kafka", Settings(heap_mb=512, sustained_load=True)) as broker:
            spark = _session(folder, dict(each.partition("=")[::2] for each in conf))
            topics = Topics(broker.bootstrap_servers)
            program = Headwater(spark, broker.bootstrap_servers, folder / "headwater")
            for each in map(_WORKLOADS.__getitem__, names):
                topics.job(program.name, each, records)  # writes the sources
                _profile(each, folder, runs, partial(run_of, program, each, topics, records))
            spark.stop()


def _session(folder: Path, conf: Mapping[str, str]) -> SparkSession:
    for part in ("events", "spans"):
        (folder / part).mkdir()
    os.environ[timed_daemon.FOLDER] = str(folder / "spans")
    root = str(Path(__file__).parents[3])
    os.environ["PYTHONPATH"] = os.pathsep.join(filter(None, (root, os.environ.get("PYTHONPATH"))))
    spark = start_session(
        SessionSettings(
            application="bench",
            master=f"local[{CORES}]",
            jars=tuple(map(str, ensure_spark_jars())),
            conf={
                "spark.driver.memory": "2g",
                "spark.ui.enabled": "false",
                "spark.sql.shuffle.partitions": "2",
                "spark.python.daemon.module": timed_daemon.__name__,
                "spark.eventLog.enabled": "true",
                "spark.eventLog.dir": (folder / "events").as_uri(),
                "spark.eventLog.rolling.enabled": "false",
                "spark.eventLog.compress": "false",
                "spark.eventLog.buffer.kb": "1",
                **conf,
            },
        )
    )
    spark.sparkContext.setLogLevel("FATAL")
    return spark


def _profile(workload: Workload, folder: Path, runs: int, run_once: Callable[[], Run]) -> None:
    console = Console(width=WIDTH)
    for number in range(1, runs + 1):
        before = cpu_time.thread_seconds(os.getpid())
        start = time.time()
        run = run_once()
        records = run.records
        used = _used_by_thread(before, cpu_time.thread_seconds(os.getpid()))
        console.print(
            f"{workload.name}, run {number}: {records / run.seconds:,.0f} records/s with start and stop, "
            f"{run.cpu_seconds / records * 1e6:.2f} µs CPU per record, load {os.getloadavg()[0]:.1f}"
        )
        console.print(
            "  "
            + ", ".join(
                f"{name} {seconds / records * 1e6:.2f}"
                for name, seconds in used.items()
                if seconds > _SMALL_SHARE * run.cpu_seconds
            )
        )
    (log,) = (folder / "events").iterdir()
    jobs = [job for job in read_jobs(log) if job.submitted > start]
    parts = divided_jobs(jobs, [span for span in read_spans(folder / "spans") if span.start > start])
    console.print(_table(workload.name, len(parts), mean_parts(parts)))
    durations = mean_parts(read_durations(log, start))
    console.print("Spark's micro-batches, ms:", {name: round(value) for name, value in durations.items()})


def _used_by_thread(
    before: Mapping[tuple[str, str, int], float], after: Mapping[tuple[str, str, int], float]
) -> Mapping[str, float]:
    """Return CPU seconds by process and kind of thread, the largest first."""
    used: dict[str, float] = defaultdict(float)
    for (command, thread, number), seconds in after.items():
        used[_kind(command, thread)] += seconds - before.get((command, thread, number), 0.0)
    return dict(sorted(used.items(), key=lambda item: -item[1]))


def _kind(command: str, thread: str) -> str:
    if "kafka.Kafka" in command:
        return "broker"
    if "SparkSubmit" in command:
        return f"JVM: {re.split('[-#]', thread)[0].rstrip('0123456789. ')}"
    if timed_daemon.__name__ in command:
        return "worker: librdkafka" if thread.startswith("rdk:") else "worker: Python"
    return "driver"


def _table(title: str, jobs: int, parts: Mapping[str, float]) -> Table:
    table = Table("part", "ms", "share", title=f"{title}: mean of {jobs} Spark jobs")
    whole = sum(parts.values()) or 1.0
    for name, text in PARTS.items():
        seconds = parts.get(name, 0.0)
        table.add_row(text, f"{seconds * 1000:.0f}", f"{seconds / whole:.0%}")
    return table


if __name__ == "__main__":
    main()
