"""Throughput and latency of a count with a number of processors, next to the same without one."""

import os
from collections.abc import Iterator
from pathlib import Path

import attrs
from pyspark.sql import SparkSession
from rich.console import Console

from tests.bench.figures import Figure
from tests.bench.runtime import latency, throughput
from tests.bench.runtime.comparison import WIDTH, length
from tests.bench.runtime.ours import Headwater
from tests.bench.runtime.programs import WithSetting
from tests.bench.runtime.topics import Topics
from tests.bench.runtime.workloads import Workload

_PARTITIONS = 4
_RECORDS = 1_200_000
_LATENCY_RECORDS = 100
_ROUNDS = 3
_GOALS = {_PARTITIONS: 0.97, _PARTITIONS // 2: 0.8}
"""Number of processors → goal, of the throughput without `processors`."""
_COUNT = Workload(
    name="count, one update per record, exactly once",
    operator="count",
    every_update=True,
    exactly_once=True,
    share=0.15,
)


def figures(spark: SparkSession, servers: str, folder: Path) -> Iterator[Figure]:
    """Yield a figure for each number of processors, and the latency with as many as partitions."""
    headwater = Headwater(spark, servers, folder / "throughput")
    programs = [WithSetting(headwater, "processors", processors) for processors in (None, *_GOALS)]
    rounds = min(_ROUNDS, int(os.environ.get("HEADWATER_BENCH_ROUNDS", _ROUNDS)))
    report = Console(stderr=True, width=WIDTH).log
    topics = Topics(servers, "throughput", _PARTITIONS)
    workload = attrs.evolve(_COUNT, rounds=rounds)
    rates = throughput.measure(workload, programs, topics, length(_RECORDS), report)
    for processors, goal in _GOALS.items():
        yield Figure(
            what=f"{_COUNT.name}: {processors} processors for {_PARTITIONS} partitions",
            unit="records/s",
            ours=rates[f"headwater-{processors}"].rate,
            peer="no number of processors set",
            theirs=rates["headwater-unset"].rate,
            goal=goal,
            is_rate=True,
        )
    number = int(os.environ.get("HEADWATER_BENCH_LATENCY_RECORDS", _LATENCY_RECORDS))
    workload = attrs.evolve(workload, share=1.0)
    latencies = latency.measure(workload, programs[:2], topics, number, report)
    yield Figure(
        what=f"latency p50: {_COUNT.name}: {_PARTITIONS} processors for {_PARTITIONS} partitions",
        unit="s",
        ours=latencies[f"headwater-{_PARTITIONS}"].p50,
        peer="no number of processors set",
        theirs=latencies["headwater-unset"].p50,
        goal=round(1 / _GOALS[_PARTITIONS], 2),
    )
