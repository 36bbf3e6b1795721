"""Stream threads: throughput and latency by their number, and how soon a change takes effect.

`HEADWATER_BENCH_RECORDS` and `HEADWATER_BENCH_SECONDS` are the least records and seconds of a full run,
`HEADWATER_BENCH_LATENCY_RECORDS` the number of records of a percentile, `HEADWATER_BENCH_ROUNDS` the maximum
number of rounds.
"""

import os
from collections.abc import Callable, Iterator, Mapping, Sequence
from pathlib import Path

import attrs
from rich.console import Console
from rich.table import Table

from headwater.control.logs import configure_log
from headwater.toolchain import PulumiToolchain
from headwater.toolchain.broker import Broker
from headwater.toolchain.broker.readiness import until
from tests.bench.figures import Figure
from tests.bench.runtime import latency, throughput
from tests.bench.runtime.comparison import WIDTH, length, session
from tests.bench.runtime.latency import Latency
from tests.bench.runtime.ours import Headwater
from tests.bench.runtime.programs import Program, WithSetting
from tests.bench.runtime.streams import KafkaStreamsPeer
from tests.bench.runtime.thread_changes import (
    batches_until_added,
    batches_until_removed,
    recorded_batches,
)
from tests.bench.runtime.throughput import Length, Throughput
from tests.bench.runtime.topics import Topics
from tests.bench.runtime.workloads import CORES, Workload

_RECORDS = 1_200_000
_LATENCY_RECORDS = 100
_ROUNDS = 5
_GAIN = 0.85
"""Of Kafka Streams' own gain."""
_SLOTS = 0.97
"""Of the throughput without `num.stream.threads`; of latencies, its inverse."""
_BATCHES = 2
"""Until a change of the threads has taken effect."""
_EXECUTORS = "local-cluster[2,1,1024]"
"""Master and workers of a standalone cluster, whose two executors are processes with one core."""
_SHARE_OF_A_BATCH = 200
_SECONDS = 120
_MAP = Workload(name="map", operator="map")
_COUNT = Workload(
    name="count, one update per record, exactly once",
    operator="count",
    every_update=True,
    exactly_once=True,
    share=0.15,
)

Rates = Mapping[str, Throughput]
"""Program and number of threads → throughput."""


@attrs.frozen
class _Bench:
    folder: Path
    servers: str
    topics: Topics
    length: Length
    rounds: int
    report: Callable[[str], None]

    def on_slots(
        self, streams: Program
    ) -> tuple[dict[str, Rates], dict[str, Latency], list[tuple[int, int]]]:
        """Return the rates and latencies in one process with `CORES` slots, and the batches of changes."""
        with session() as spark:
            headwater = Headwater(spark, self.servers, self.folder / "headwater")
            programs = [WithSetting(headwater, "threads", threads) for threads in (1, 2, CORES, None)]
            programs += [WithSetting(streams, "threads", threads) for threads in (1, 2)]
            rates = {each.name: self._rates(each, programs) for each in (_MAP, _COUNT)}
            number = int(os.environ.get("HEADWATER_BENCH_LATENCY_RECORDS", _LATENCY_RECORDS))
            workload = attrs.evolve(_MAP, rounds=self.rounds)
            latencies = latency.measure(workload, programs[2:4], self.topics, number, self.report)
            return rates, latencies, self._changes(headwater)

    def on_executors(self) -> Rates:
        """Return the rates on two executors with one core each."""
        with session(_EXECUTORS) as spark:
            headwater = Headwater(spark, self.servers, self.folder / "executors")
            return self._rates(_MAP, [WithSetting(headwater, "threads", threads) for threads in (1, 2)])

    def _rates(self, workload: Workload, programs: Sequence[Program]) -> Rates:
        measured = attrs.evolve(workload, rounds=self.rounds)
        return throughput.measure(measured, programs, self.topics, self.length, self.report)

    def _changes(self, headwater: Headwater) -> list[tuple[int, int]]:
        """Return for each round the batches until an added thread takes part, and a removed one is gone."""
        workload = attrs.evolve(_MAP, threads=1)
        job = self.topics.job("changes", workload, self.length.records)
        of_a_batch = max(2, self.length.records // _SHARE_OF_A_BATCH)
        with recorded_batches() as batches, headwater.started(job, of_a_batch) as application:
            if not until(lambda: len(batches) > 0, _SECONDS):
                raise RuntimeError("no batch has ended")
            return [
                (batches_until_added(application, batches), batches_until_removed(application, batches))
                for _ in range(self.rounds)
            ]


def run(folder: Path, _: PulumiToolchain, broker: Broker) -> Iterator[Figure]:
    """Print a table with the rates, and yield the figures."""
    configure_log(level="error")
    servers = broker.bootstrap_servers
    bench = _Bench(
        folder=folder,
        servers=servers,
        topics=Topics(servers, "threads"),
        length=length(_RECORDS),
        rounds=min(_ROUNDS, int(os.environ.get("HEADWATER_BENCH_ROUNDS", _ROUNDS))),
        report=Console(stderr=True, width=WIDTH).log,
    )
    with KafkaStreamsPeer(servers, folder / "streams.log") as streams:
        rates, latencies, changes = bench.on_slots(streams)
    theirs = {name: rate for name, rate in rates[_MAP.name].items() if name.startswith(streams.name)}
    executors = {**theirs, **bench.on_executors()}
    shown = rates | {f"{_MAP.name}, two executors with one core": executors}
    Console(width=WIDTH).print(_table(shown))
    for name, by_program in shown.items():
        yield gain(name, by_program)
    for name, by_program in rates.items():
        yield slots(name, by_program)
    yield _latency(latencies)
    yield from _batches(changes)


def gain(name: str, figures: Rates) -> Figure:
    """Return our gain from 1 to 2 threads next to that of Kafka Streams."""
    ours, theirs = (
        figures[f"{program}-2"].rate / figures[f"{program}-1"].rate for program in ("headwater", "streams")
    )
    what = f"{name}: gain from 1 to 2 threads"
    return Figure(
        what=what, unit="times", ours=ours, peer="Kafka Streams", theirs=theirs, goal=_GAIN, is_rate=True
    )


def slots(name: str, figures: Rates) -> Figure:
    """Return the rate with as many threads as slots next to that without `num.stream.threads`."""
    return Figure(
        what=f"{name}: threads = slots",
        unit="records/s",
        ours=figures[f"headwater-{CORES}"].rate,
        peer="no number of threads set",
        theirs=figures["headwater-unset"].rate,
        goal=_SLOTS,
        is_rate=True,
    )


def _latency(figures: Mapping[str, Latency]) -> Figure:
    return Figure(
        what="latency p50: map, threads = slots",
        unit="s",
        ours=figures[f"headwater-{CORES}"].p50,
        peer="no number of threads set",
        theirs=figures["headwater-unset"].p50,
        goal=round(1 / _SLOTS, 2),
    )


def _batches(changes: Sequence[tuple[int, int]]) -> Iterator[Figure]:
    """Yield the largest numbers of all rounds."""
    for what, numbers in zip(
        ("a thread that was added takes part", "a thread that was removed is gone"),
        zip(*changes, strict=True),
        strict=True,
    ):
        yield Figure(what=what, unit="batches", ours=max(numbers), goal=_BATCHES)


def _table(figures: Mapping[str, Rates]) -> Table:
    caption = f"2 partitions; Headwater: local[{CORES}], so {CORES} slots, or {_EXECUTORS}"
    table = Table(
        title="stream threads\nthousand records/s",
        title_justify="left",
        caption=caption,
        caption_justify="left",
    )
    table.add_column("", no_wrap=True)
    for heading in ("threads", "Headwater", "Kafka Streams"):
        table.add_column(heading, justify="right", no_wrap=True)
    for name, by_program in figures.items():
        for threads in ("1", "2", str(CORES), "unset"):
            rates = [_rate(by_program.get(f"{program}-{threads}")) for program in ("headwater", "streams")]
            table.add_row(name if threads == "1" else "", threads, *rates)
    return table


def _rate(figure: Throughput | None) -> str:
    return "-" if figure is None else f"{figure.rate / 1000:,.0f}"
