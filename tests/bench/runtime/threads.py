"""Throughput by number of stream threads: the gain from one to two, and threads = slots against none set.

`HEADWATER_BENCH_RECORDS` is the number of records of the largest run, `HEADWATER_BENCH_ROUNDS` the maximum
number of rounds.
"""

import os
from collections.abc import Iterator, Mapping, Sequence
from contextlib import AbstractContextManager
from pathlib import Path

import attrs
from rich.console import Console
from rich.table import Table

from spark_jobs.control.logs import configure_log
from tests.bench.figures import Figure
from tests.bench.runtime import throughput
from tests.bench.runtime.comparison import WIDTH, session
from tests.bench.runtime.ours import Headwater
from tests.bench.runtime.programs import Program, Running
from tests.bench.runtime.streams import KafkaStreamsPeer
from tests.bench.runtime.throughput import Throughput
from tests.bench.runtime.topics import Topics
from tests.bench.runtime.workloads import CORES, Job, Workload
from toolchain import PulumiToolchain
from toolchain.broker import Broker

_RECORDS = 8_000_000
_ROUNDS = 5
_GAIN = 0.85
"""Of Kafka Streams' own gain."""
_SLOTS = 0.97
"""Of the throughput without `num.stream.threads`."""
_WORKLOADS = (
    Workload(name="map", operator="map", rounds=_ROUNDS),
    Workload(
        name="count, one update per record, exactly once",
        operator="count",
        every_update=True,
        exactly_once=True,
        share=0.15,
        rounds=_ROUNDS,
    ),
)


class WithThreads:
    """A program with a number of stream threads; None = not set."""

    def __init__(self, program: Program, threads: int | None) -> None:
        self.name = f"{program.name}-{threads or 'unset'}"
        self.title = f"{program.title} with {threads or 'unset'} stream threads"
        self._program = program
        self._threads = threads

    def running(self, job: Job, *, in_bulk: bool) -> AbstractContextManager[Running]:
        workload = attrs.evolve(job.workload, threads=self._threads)
        return self._program.running(attrs.evolve(job, workload=workload), in_bulk=in_bulk)


def run(folder: Path, _: PulumiToolchain, broker: Broker) -> Iterator[Figure]:
    """Print a table with the rates and the two ratios of each workload, and yield the ratios."""
    configure_log(level="error")
    records = int(os.environ.get("HEADWATER_BENCH_RECORDS", _RECORDS))
    rounds = int(os.environ.get("HEADWATER_BENCH_ROUNDS", _ROUNDS))
    servers = broker.bootstrap_servers
    with session() as spark, KafkaStreamsPeer(servers, folder / "streams.log") as streams:
        topics, progress = Topics(servers, "threads"), Console(stderr=True, width=WIDTH)
        headwater = Headwater(spark, servers, folder / "headwater")
        programs: list[Program] = [WithThreads(headwater, threads) for threads in (1, 2, CORES, None)]
        programs += [WithThreads(streams, threads) for threads in (1, 2)]
        for workload in _WORKLOADS:
            for program in programs[1::2]:
                progress.log(f"warming up: {workload.name}, {program.title}")
                throughput.seconds_of(program, workload, topics, workload.sizes(records)[1])
        figures = [
            (each, throughput.measure(each, programs, topics, records, progress.log))
            for each in (attrs.evolve(each, rounds=min(each.rounds, rounds)) for each in _WORKLOADS)
        ]
        Console(width=WIDTH).print(_table(figures))
        for workload, by_program in figures:
            yield from _figures(workload.name, *gains(by_program))


def gains(figures: Mapping[str, Throughput]) -> tuple[float, float, float]:
    """Return our gain from 1 to 2 threads, that of Kafka Streams, and threads = slots against unset."""
    rates = {name: figure.rate for name, figure in figures.items()}
    return (
        rates["headwater-2"] / rates["headwater-1"],
        rates["streams-2"] / rates["streams-1"],
        rates[f"headwater-{CORES}"] / rates["headwater-unset"],
    )


def _figures(name: str, ours: float, theirs: float, slots: float) -> tuple[Figure, Figure]:
    return (
        Figure(
            what=f"{name}: gain from 1 to 2 threads",
            unit="times",
            ours=ours,
            peer="Kafka Streams",
            theirs=theirs,
            goal=_GAIN,
            is_rate=True,
        ),
        Figure(
            what=f"{name}: threads = slots, as a multiple of none set",
            unit="times",
            ours=slots,
            goal=_SLOTS,
            is_rate=True,
        ),
    )


def _table(figures: Sequence[tuple[Workload, Mapping[str, Throughput]]]) -> Table:
    caption = f"2 partitions; Headwater: local[{CORES}], so {CORES} slots"
    table = Table(
        title="stream threads\nthousand records/s",
        title_justify="left",
        caption=caption,
        caption_justify="left",
    )
    table.add_column("", no_wrap=True)
    for heading in ("threads", "Headwater", "Kafka Streams", "gain ours / Streams", "slots / unset"):
        table.add_column(heading, justify="right", no_wrap=True)
    for workload, by_program in figures:
        for row in _rows(workload, by_program):
            table.add_row(*row)
    return table


def _rows(workload: Workload, figures: Mapping[str, Throughput]) -> Iterator[tuple[str, ...]]:
    ours, theirs, slots = gains(figures)
    gain = f"{ours:.2f} / {theirs:.2f} = {ours / theirs:.2f} (goal {_GAIN})"
    notes = {"2": (gain, ""), str(CORES): ("", f"{slots:.2f} (goal {_SLOTS})")}
    for threads in ("1", "2", str(CORES), "unset"):
        rates = (_rate(figures.get(f"{program}-{threads}")) for program in ("headwater", "streams"))
        yield (workload.name if threads == "1" else "", threads, *rates, *notes.get(threads, ("", "")))


def _rate(figure: Throughput | None) -> str:
    return "-" if figure is None else f"{figure.rate / 1000:,.0f}"
