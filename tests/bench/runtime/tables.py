"""Results as tables: one row per workload, one column per program, then our ratio to each and its target."""

import math
from collections.abc import Iterator, Mapping, Sequence

from rich.table import Table

from tests.bench.figures import Figure
from tests.bench.runtime.latency import Latency
from tests.bench.runtime.throughput import Throughput
from tests.bench.runtime.workloads import CORES, PARTITIONS, Workload

_OURS = "headwater"
_PROGRAMS = {"plain": "plain PySpark", "streams": "Kafka Streams", _OURS: "Headwater"}
_NOTHING = "-"
_CAPTION = (
    f"{PARTITIONS} partitions; Kafka Streams: {PARTITIONS} threads; both others: one Spark, local[{CORES}]"
)


def throughput_table(title: str, figures: Sequence[tuple[Workload, Mapping[str, Throughput]]]) -> Table:
    """Return a table of steady state, and the time to start and stop; ratio > 1: Headwater is faster."""
    table = _table(f"{title}\nthousand records/s (+ seconds to start and stop)", "records")
    for workload, by_program in figures:
        rates = {name: each.rate for name, each in by_program.items()}
        table.add_row(
            workload.name,
            f"{by_program[_OURS].records:,}",
            *(_throughput(by_program.get(program)) for program in _PROGRAMS),
            _ratio(rates, "plain", workload.of_plain),
            _ratio(rates, "streams", workload.of_streams),
        )
    return table


def latency_table(figures: Sequence[tuple[Workload, Mapping[str, Latency]]]) -> Table:
    """Return a table of latencies; ratio of medians < 1: Headwater is faster."""
    table = _table("one record at a time\np50 / p99, milliseconds")
    for workload, by_program in figures:
        medians = {name: each.p50 for name, each in by_program.items()}
        table.add_row(
            workload.name,
            *(_latency(by_program.get(program)) for program in _PROGRAMS),
            _ratio(medians, "plain", workload.of_plain),
            _ratio(medians, "streams", workload.of_streams),
        )
    return table


def throughput_figures(workload: Workload, by_program: Mapping[str, Throughput]) -> Iterator[Figure]:
    """Yield the rate and the CPU time per record of a workload next to each other program's."""
    ours = by_program[_OURS]
    for program, goal in (("plain", workload.of_plain), ("streams", workload.of_streams)):
        theirs = by_program.get(program)
        if theirs is None:
            continue
        yield Figure(
            what=workload.name,
            unit="records/s",
            ours=ours.rate,
            our_range=ours.rates,
            peer=_PROGRAMS[program],
            theirs=theirs.rate,
            their_range=theirs.rates,
            goal=goal,
            is_rate=True,
        )
        yield Figure(
            what=f"{workload.name}: CPU time per record",
            unit="s",
            ours=ours.cpu_per_record,
            our_range=ours.cpu_range,
            peer=_PROGRAMS[program],
            theirs=theirs.cpu_per_record,
            their_range=theirs.cpu_range,
        )


def latency_figures(workload: Workload, by_program: Mapping[str, Latency]) -> Iterator[Figure]:
    """Yield both percentiles of a workload next to each other program's."""
    goals = {"plain": (workload.of_plain, None), "streams": (workload.of_streams, workload.p99_of_streams)}
    for program, of_program in goals.items():
        if program not in by_program:
            continue
        for percentile, goal in zip(("p50", "p99"), of_program, strict=True):
            yield Figure(
                what=f"latency {percentile}: {workload.name}",
                unit="s",
                ours=getattr(by_program[_OURS], percentile),
                peer=_PROGRAMS[program],
                theirs=getattr(by_program[program], percentile),
                goal=goal,
            )


def _table(title: str, *more: str) -> Table:
    table = Table(title=title, title_justify="left", caption=_CAPTION, caption_justify="left")
    table.add_column("", no_wrap=True)
    for heading in (*more, *_PROGRAMS.values(), "ours / plain", "ours / Streams"):
        table.add_column(heading, justify="right", no_wrap=True)
    return table


def _throughput(figure: Throughput | None) -> str:
    if figure is None:
        return _NOTHING
    if math.isnan(figure.rate):
        return "too few records"
    return f"{figure.rate / 1000:,.0f} (+{max(figure.start_up, 0):.1f})"


def _latency(figure: Latency | None) -> str:
    return _NOTHING if figure is None else f"{figure.p50 * 1000:,.0f} / {figure.p99 * 1000:,.0f}"


def _ratio(figures: Mapping[str, float], other: str, goal: float | None = None) -> str:
    ratio = figures[_OURS] / figures.get(other, math.nan)
    target = "" if goal is None else f" (goal {goal:.1f})"
    return _NOTHING if math.isnan(ratio) else f"{ratio:.2f}{target}"
