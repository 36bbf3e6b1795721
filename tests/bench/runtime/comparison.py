"""Compare the runtime with plain PySpark and a Kafka Streams program, in turns on one broker.

docs/benchmarks.md describes the measurements. `HEADWATER_BENCH_RECORDS` and `HEADWATER_BENCH_SECONDS` are the
least records and seconds of a full run, `HEADWATER_BENCH_LATENCY_RECORDS` the number of records of a
percentile, `HEADWATER_BENCH_ROUNDS` the number of rounds.
"""

import os
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path

import attrs
from pyspark.sql import SparkSession
from rich.console import Console

from headwater.control.logs import configure_log
from headwater.toolchain import PulumiToolchain, ensure_spark_jars
from headwater.toolchain.broker import Broker
from headwater_spark.driver.spark_session.session import SessionSettings, ship_packages, start_session
from tests.bench.figures import Figure
from tests.bench.runtime import latency, throughput
from tests.bench.runtime.cases import AT_ONCE, KEYS, LATENCY, OPERATORS, STATEFUL
from tests.bench.runtime.ours import Headwater
from tests.bench.runtime.plain import PlainPySpark
from tests.bench.runtime.programs import Program
from tests.bench.runtime.streams import KafkaStreamsPeer
from tests.bench.runtime.tables import (
    latency_figures,
    latency_table,
    throughput_figures,
    throughput_table,
)
from tests.bench.runtime.topics import Topics
from tests.bench.runtime.workloads import CORES, Workload

_RECORDS = 4_000_000
_SECONDS = 10.0
_LATENCY_RECORDS = 100
WIDTH = 150


@attrs.frozen
class _Bench:
    programs: Sequence[Program]
    topics: Topics
    shown: Console
    progress: Console

    def throughput(self, title: str, workloads: Sequence[Workload]) -> Iterator[Figure]:
        """Print a table of rates, and yield the figures as soon as each workload is measured."""
        measured = []
        for each in with_rounds(workloads):
            programs = self._programs(each)
            by_program = throughput.measure(each, programs, self.topics, length(_RECORDS), self._report)
            measured.append((each, by_program))
            yield from throughput_figures(each, by_program)
        self.shown.print(throughput_table(title, measured))

    def latency(self, records: int) -> Iterator[Figure]:
        """Print a table of latencies, and yield the figures as soon as each workload is measured."""
        measured = []
        for each in with_rounds(LATENCY):
            by_program = latency.measure(each, self._programs(each), self.topics, records, self._report)
            measured.append((each, by_program))
            yield from latency_figures(each, by_program)
        self.shown.print(latency_table(measured))

    def _programs(self, workload: Workload) -> list[Program]:
        return [
            program
            for program in self.programs
            if workload.has_plain_peer or program.name != PlainPySpark.name
        ]

    def _report(self, text: str) -> None:
        self.progress.log(text)


def run_operators(folder: Path, _: PulumiToolchain, broker: Broker) -> Iterator[Figure]:
    """Compare rates of maps and counts, and of independent sub-topologies."""
    with _bench(folder, broker) as bench:
        yield from bench.throughput("operators", OPERATORS)
        yield from bench.throughput("independent sub-topologies", AT_ONCE)


def run_keys(folder: Path, _: PulumiToolchain, broker: Broker) -> Iterator[Figure]:
    """Compare rates of counts with different distributions of keys."""
    with _bench(folder, broker) as bench:
        yield from bench.throughput("count by distribution of keys", KEYS)


def run_stateful(folder: Path, _: PulumiToolchain, broker: Broker) -> Iterator[Figure]:
    """Compare rates of windows, joins, and several operators."""
    with _bench(folder, broker) as bench:
        yield from bench.throughput("windows and joins", STATEFUL)


def run_latency(folder: Path, _: PulumiToolchain, broker: Broker) -> Iterator[Figure]:
    """Compare the time from a record to its result."""
    with _bench(folder, broker) as bench:
        yield from bench.latency(int(os.environ.get("HEADWATER_BENCH_LATENCY_RECORDS", _LATENCY_RECORDS)))


@contextmanager
def _bench(folder: Path, broker: Broker) -> Iterator[_Bench]:
    """Start Spark and the JVM of Kafka Streams."""
    configure_log(level="error")
    with session() as spark, KafkaStreamsPeer(broker.bootstrap_servers, folder / "streams.log") as streams:
        topics = Topics(broker.bootstrap_servers)
        plain = PlainPySpark(spark, broker.bootstrap_servers, folder / "plain", topics)
        headwater = Headwater(spark, broker.bootstrap_servers, folder / "headwater")
        shown, progress = Console(width=WIDTH), Console(stderr=True, width=WIDTH)
        yield _Bench((plain, streams, headwater), topics, shown, progress)


def with_rounds(workloads: Sequence[Workload]) -> list[Workload]:
    """Return the workloads with the number of rounds that `HEADWATER_BENCH_ROUNDS` sets, if it is set."""
    rounds = os.environ.get("HEADWATER_BENCH_ROUNDS")
    return [each if rounds is None else attrs.evolve(each, rounds=int(rounds)) for each in workloads]


def length(records: int, seconds: float = _SECONDS) -> throughput.Length:
    """Return how many records a run has, by default at least `records` and as many as take `seconds`."""
    return throughput.Length(
        int(os.environ.get("HEADWATER_BENCH_RECORDS", records)),
        float(os.environ.get("HEADWATER_BENCH_SECONDS", seconds)),
    )


@contextmanager
def session(master: str = f"local[{CORES}]") -> Iterator[SparkSession]:
    """Start Spark as all programs use it."""
    # Plain PySpark keeps its state in this heap, also for a while after its query has ended.
    conf = {"spark.driver.memory": "2g", "spark.ui.enabled": "false"}
    spark = start_session(
        SessionSettings(
            application="bench",
            master=master,
            jars=tuple(map(str, ensure_spark_jars())),
            shuffle_partitions=2,
            conf=conf,
        )
    )
    # Failures are raised here; an interrupted batch is not an error.
    spark.sparkContext.setLogLevel("FATAL")
    ship_packages(spark)
    try:
        yield spark
    finally:
        spark.stop()
