"""Where the time of a workload's batches goes: `python -m tests.bench.runtime.batch_profile NAME …`.

docs/benchmarks.md describes the output. The options set the number of records, and how many runs there are:
only the last one counts, when the JVM has compiled most of its code.
"""

import os
import tempfile
import time
from collections import defaultdict
from collections.abc import Mapping
from contextlib import ExitStack
from operator import itemgetter
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
from tests.bench.runtime.cases import FURTHER, OPERATORS, STATEFUL
from tests.bench.runtime.comparison import WIDTH
from tests.bench.runtime.ours import Headwater
from tests.bench.runtime.programs import Program
from tests.bench.runtime.streams import KafkaStreamsPeer
from tests.bench.runtime.topics import Topics
from tests.bench.runtime.workloads import CORES, Workload

_WORKLOADS: Mapping[str, Workload] = {each.name: each for each in (*OPERATORS, *STATEFUL, *FURTHER)}
_SMALL_PART = 10
"""The small run has a tenth of the records."""
_SMALL_SHARE = 0.01
"""Threads with less of the CPU time are not printed."""
_JVM_THREADS = {"C1 Comp": "compiler", "C2 Comp": "compiler", "GC ": "GC", "G1 ": "GC", "Executo": "tasks"}
"""The first characters of the name of a thread → what it does."""


@click.command()
@click.argument("names", nargs=-1, required=True, type=click.Choice(list(_WORKLOADS)))
@click.option(
    "--records", default=3_000_000, show_default=True, help="Records of a large run, of all sources."
)
@click.option("--runs", default=3, show_default=True, help="Runs of each workload; the last one counts.")
@click.option("--streams", is_flag=True, help="Run Kafka Streams, too.")
@click.option("--conf", multiple=True, metavar="KEY=VALUE", help="A setting of Spark.")
def main(names: tuple[str, ...], records: int, runs: int, conf: tuple[str, ...], *, streams: bool) -> None:
    """Print the time line of a batch, and the CPU time by process and thread."""
    configure_log(level="error")
    with tempfile.TemporaryDirectory(prefix="headwater-batches-") as name, ExitStack() as stack:
        folder = Path(name)
        broker = Broker(ensure_kafka(), folder / "kafka", Settings(heap_mb=512, sustained_load=True))
        servers = stack.enter_context(broker).bootstrap_servers
        spark = _session(folder, dict(each.partition("=")[::2] for each in conf))
        stack.callback(spark.stop)
        programs: list[Program] = []
        if streams:
            programs.append(stack.enter_context(KafkaStreamsPeer(servers, folder / "streams.log")))
        programs.append(Headwater(spark, servers, folder / "headwater"))
        topics = Topics(servers)
        for each in map(_WORKLOADS.__getitem__, names):
            sizes = records // _SMALL_PART, records
            for size in sizes:
                topics.job("first", each, size)  # writes the sources
            for number in range(1, runs + 1):
                for program in programs:
                    start = _profile(program, each, topics, sizes, number)
            _print_time_line(each, folder, start)


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


def _profile(
    program: Program, workload: Workload, topics: Topics, sizes: tuple[int, int], number: int
) -> float:
    """Print the CPU time of a record as the difference of a small and a large run; return when this began."""
    small = _run(program, workload, topics, sizes[0])
    start = time.time()
    large = _run(program, workload, topics, sizes[1])
    records = sizes[1] - sizes[0]
    used = {part: (large[part] - small.get(part, 0.0)) / records * 1e6 for part in large}
    parts = sorted(used.items(), key=itemgetter(1), reverse=True)
    every = sum(used.values())
    Console(width=WIDTH).print(
        f"{workload.name}, run {number}: {program.title}, {every:.2f} µs CPU per record: "
        + ", ".join(f"{part} {each:.2f}" for part, each in parts if abs(each) > _SMALL_SHARE * every)
        + f"; load {os.getloadavg()[0]:.1f}"
    )
    return start


def _run(program: Program, workload: Workload, topics: Topics, records: int) -> Mapping[str, float]:
    """Return the CPU seconds of a run until its last commit, by process and kind of thread."""
    job = topics.job(program.name, workload, records)
    before = cpu_time.thread_seconds(os.getpid())
    with program.running(job, in_bulk=True) as running:
        running.await_end()
        after = cpu_time.thread_seconds(os.getpid())
    used: dict[str, float] = defaultdict(float)
    for thread, seconds in cpu_time.used_by_threads(before, after).items():
        used[_kind(thread)] += seconds
    return used


def _kind(thread: cpu_time.Thread) -> str:
    if "kafka.Kafka" in thread.command:
        return "broker"
    for program, name in (("SparkSubmit", "Spark's JVM"), ("Peer.java", "JVM of Kafka Streams")):
        if program in thread.command:
            kinds = (kind for start, kind in _JVM_THREADS.items() if thread.name.startswith(start))
            return f"{name}: {next(kinds, 'other threads')}"
    if timed_daemon.__name__ in thread.command:
        return "worker: librdkafka" if thread.name.startswith("rdk:") else "worker: Python"
    return "driver"


def _print_time_line(workload: Workload, folder: Path, start: float) -> None:
    """Print where the time of the jobs since `start` went."""
    console = Console(width=WIDTH)
    (log,) = (folder / "events").iterdir()
    jobs = [job for job in read_jobs(log) if job.submitted > start]
    parts = divided_jobs(jobs, [span for span in read_spans(folder / "spans") if span.start > start])
    console.print(_table(workload.name, len(parts), mean_parts(parts)))
    durations = mean_parts(read_durations(log, start))
    console.print("Spark's micro-batches, ms:", {name: round(value) for name, value in durations.items()})


def _table(title: str, jobs: int, parts: Mapping[str, float]) -> Table:
    table = Table("part", "ms", "share", title=f"{title}: mean of {jobs} Spark jobs")
    whole = sum(parts.values()) or 1.0
    for name, text in PARTS.items():
        seconds = parts.get(name, 0.0)
        table.add_row(text, f"{seconds * 1000:.0f}", f"{seconds / whole:.0%}")
    return table


if __name__ == "__main__":
    main()
