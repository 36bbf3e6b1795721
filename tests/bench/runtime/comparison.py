"""Compare the runtime with plain PySpark and a Kafka Streams program, in turns on one broker.

Each workload has a new process, with new JVMs of Spark and Kafka Streams, as an application has: what ran
before cannot change its figures. docs/benchmarks.md describes the measurements.
`HEADWATER_BENCH_RECORDS` and `HEADWATER_BENCH_SECONDS` are the least records and seconds of a full run,
`HEADWATER_BENCH_LATENCY_RECORDS` the number of records of a percentile, `HEADWATER_BENCH_ROUNDS` the number
of rounds, `HEADWATER_BENCH_WORKLOADS` the names of the workloads to run, separated by semicolons.
"""

import multiprocessing
import os
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import ProcessPoolExecutor
from contextlib import contextmanager
from functools import partial
from pathlib import Path
from typing import TypeVar

import attrs
from pyspark.sql import SparkSession
from rich.console import Console

from headwater.control.logs import configure_log
from headwater.toolchain import PulumiToolchain, ensure_spark_jars
from headwater.toolchain.broker import Broker
from headwater_spark.driver.spark_session.jvm import kill_jvm
from headwater_spark.driver.spark_session.session import SessionSettings, ship_packages, start_session
from tests.bench.figures import Figure
from tests.bench.runtime import latency, throughput
from tests.bench.runtime.cases import AT_ONCE, FURTHER, KEYS, LATENCY, OPERATORS, STATEFUL
from tests.bench.runtime.ours import Headwater
from tests.bench.runtime.plain import PlainPySpark
from tests.bench.runtime.streams import KafkaStreamsPeer
from tests.bench.runtime.tables import (
    latency_figures,
    latency_table,
    throughput_figures,
    throughput_table,
)
from tests.bench.runtime.topics import Created, Topics
from tests.bench.runtime.workloads import CORES, Workload

_RECORDS = 4_000_000
_SECONDS = 8.0
_LATENCY_RECORDS = 100
_NUMBERS_OF_WORKLOAD = 10_000
"""More than the runs and sources of a workload."""
WORKLOADS = "HEADWATER_BENCH_WORKLOADS"
WIDTH = 150

_Result = TypeVar("_Result")


@attrs.define
class _Bench:
    folder: Path
    servers: str
    created: Created = attrs.field(factory=Created)

    def throughput(self, title: str, workloads: Sequence[Workload]) -> Iterator[Figure]:
        """Print a table of rates, and yield the figures as soon as each workload is measured."""
        measured = []
        for each, by_program in self._results(
            workloads, partial(throughput.measure, length=length(_RECORDS))
        ):
            measured.append((each, by_program))
            yield from throughput_figures(each, by_program)
        if measured:
            Console(width=WIDTH).print(throughput_table(title, measured))

    def latency(self, records: int) -> Iterator[Figure]:
        """Print a table of latencies, and yield the figures as soon as each workload is measured."""
        measured = []
        for each, by_program in self._results(LATENCY, partial(latency.measure, records=records)):
            measured.append((each, by_program))
            yield from latency_figures(each, by_program)
        if measured:
            Console(width=WIDTH).print(latency_table(measured))

    def _results(
        self, workloads: Sequence[Workload], measure: Callable[..., _Result]
    ) -> Iterator[tuple[Workload, _Result]]:
        """Yield what is measured for each workload; print a message instead if one fails."""
        for each in selected(workloads):
            try:
                result = self._measure(each, measure)
            except Exception as error:  # noqa: BLE001 - the figures of the other workloads must not be lost
                message = f"no figures of {each.name}: {type(error).__name__}: {error}"
                Console(stderr=True, width=WIDTH).log(message)
                self.created.number += _NUMBERS_OF_WORKLOAD  # its process has used some of them
            else:
                yield each, result

    def _measure(self, workload: Workload, measure: Callable[..., _Result]) -> _Result:
        """Measure a workload in a new process."""
        with ProcessPoolExecutor(1, multiprocessing.get_context("spawn")) as processes:
            running = processes.submit(
                _measure_here, workload, measure, self.folder, self.servers, self.created
            )
            result, self.created = running.result()
        return result


def run_operators(folder: Path, _: PulumiToolchain, broker: Broker) -> Iterator[Figure]:
    """Compare rates of maps and counts, and of independent sub-topologies."""
    bench = _Bench(folder, broker.bootstrap_servers)
    yield from bench.throughput("operators", OPERATORS)
    yield from bench.throughput("independent sub-topologies", AT_ONCE)


def run_keys(folder: Path, _: PulumiToolchain, broker: Broker) -> Iterator[Figure]:
    """Compare rates of counts with different distributions of keys."""
    yield from _Bench(folder, broker.bootstrap_servers).throughput("count by distribution of keys", KEYS)


def run_stateful(folder: Path, _: PulumiToolchain, broker: Broker) -> Iterator[Figure]:
    """Compare rates of windows, joins, and several operators."""
    yield from _Bench(folder, broker.bootstrap_servers).throughput("windows and joins", STATEFUL)


def run_further(folder: Path, _: PulumiToolchain, broker: Broker) -> Iterator[Figure]:
    """Compare rates of an aggregate to JSON, a processor with a store, and a join with a global table."""
    yield from _Bench(folder, broker.bootstrap_servers).throughput("further operators", FURTHER)


def run_latency(folder: Path, _: PulumiToolchain, broker: Broker) -> Iterator[Figure]:
    """Compare the time from a record to its result."""
    records = int(os.environ.get("HEADWATER_BENCH_LATENCY_RECORDS", _LATENCY_RECORDS))
    yield from _Bench(folder, broker.bootstrap_servers).latency(records)


def _measure_here(
    workload: Workload, measure: Callable[..., _Result], folder: Path, servers: str, created: Created
) -> tuple[_Result, Created]:
    """Start Spark and the JVM of Kafka Streams, measure a workload, and return what was created, too."""
    configure_log(level="error")
    log = folder / f"streams-{created.number}.log"
    try:
        with session() as spark, KafkaStreamsPeer(servers, log) as streams:
            topics = Topics(servers, created=created)
            plain = [PlainPySpark(spark, servers, folder / "plain", topics)] * workload.has_plain_peer
            programs = [*plain, streams, Headwater(spark, servers, folder / "headwater")]
            report = Console(stderr=True, width=WIDTH).log
            return measure(workload, programs, topics, report=report), topics.created
    finally:
        kill_jvm()


def selected(workloads: Sequence[Workload]) -> list[Workload]:
    """Return the workloads that `HEADWATER_BENCH_WORKLOADS` names, or all of them, with the number of rounds
    that `HEADWATER_BENCH_ROUNDS` sets.

    Raises:
        ValueError: A name is in none of the benchmarks.
    """
    names = [name.strip() for name in os.environ.get(WORKLOADS, "").split(";") if name.strip()]
    known = {each.name for each in (*OPERATORS, *AT_ONCE, *KEYS, *STATEFUL, *FURTHER, *LATENCY)}
    if unknown := set(names) - known:
        raise ValueError(f"{WORKLOADS}: unknown {sorted(unknown)}; known are {sorted(known)}")
    rounds = os.environ.get("HEADWATER_BENCH_ROUNDS")
    return [
        each if rounds is None else attrs.evolve(each, rounds=int(rounds))
        for each in workloads
        if not names or each.name in names
    ]


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
    conf = {
        "spark.driver.memory": "2g",
        "spark.ui.enabled": "false",
        "spark.sql.shuffle.partitions": "2",
    }
    spark = start_session(
        SessionSettings(
            application="bench",
            master=master,
            jars=tuple(map(str, ensure_spark_jars())),
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
