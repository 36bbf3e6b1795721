"""Growth with the number of executors on one machine, each with one core and one partition."""

import os
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from rich.console import Console

from headwater.control.logs import configure_log
from headwater.toolchain.broker import Broker
from tests.bench.cpu_time import cpu_seconds, used
from tests.bench.figures import Figure
from tests.bench.growth.series import sizes
from tests.bench.runtime import throughput
from tests.bench.runtime.comparison import WIDTH, length, session
from tests.bench.runtime.ours import Headwater
from tests.bench.runtime.programs import Program, Running
from tests.bench.runtime.topics import Topics
from tests.bench.runtime.workloads import Job, Workload

_EXECUTORS = (1, 2, 4)
_RECORDS, _SECONDS = 1_000_000, 0.0
"""A fixed number: the first run in a session takes long, whatever its number of records is."""
_COUNT = Workload(
    name="count, one update per record, exactly once",
    operator="count",
    every_update=True,
    exactly_once=True,
    rounds=3,
)


class _WithCpuTime:
    """A program, and the CPU time of this process and its descendants while it runs."""

    def __init__(self, program: Program) -> None:
        self.name, self.title = program.name, program.title
        self._program = program
        self._cpu = self._wall = 0.0

    @contextmanager
    def running(self, job: Job, *, in_bulk: bool) -> Iterator[Running]:
        before, started = cpu_seconds(os.getpid()), time.monotonic()
        with self._program.running(job, in_bulk=in_bulk) as running:
            yield running
        self._cpu += used(before, cpu_seconds(os.getpid()))
        self._wall += time.monotonic() - started

    @property
    def cores(self) -> float:
        """How many cores all runs together kept busy."""
        return self._cpu / self._wall


def run(folder: Path, broker: Broker) -> Iterator[Figure]:
    configure_log(level="error")
    report = Console(stderr=True, width=WIDTH).log
    for number in sizes("EXECUTORS", _EXECUTORS):
        topics = Topics(broker.bootstrap_servers, f"growth-{number}", number)
        with session(f"local-cluster[{number},1,1024]") as spark:
            headwater = _WithCpuTime(
                Headwater(spark, broker.bootstrap_servers, folder / f"executors-{number}")
            )
            runs = length(_RECORDS, _SECONDS)
            rates = throughput.measure(_COUNT, [headwater], topics, runs, report)
        yield _figure(_COUNT.name, rates[headwater.name].rate, "records/s", number)
        # The broker is a child of this process, as Spark's JVM is.
        yield _figure("cores in use by driver, executors and broker", headwater.cores, "cores", number)


def _figure(what: str, ours: float, unit: str, executors: int) -> Figure:
    is_rate = unit == "records/s"
    return Figure(what=what, unit=unit, ours=ours, is_rate=is_rate, size=executors, units="executors")
