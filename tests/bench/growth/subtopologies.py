"""Growth with the number of sub-topologies of an application: maps in a row.

Each number is a new application: its start, what it costs while it is idle, and the latency of a record.
"""

import random
import statistics
import time
from collections.abc import Iterator
from pathlib import Path

from headwater.toolchain.broker import Broker
from tests.bench.chain import Chain, SingleRecords
from tests.bench.cpu_time import cpu_seconds, used
from tests.bench.figures import Figure
from tests.bench.growth.series import sizes

_SUBTOPOLOGIES = (1, 2, 4, 8, 16)
_UNITS = "sub-topologies"
_WARM_UP_SECONDS, _IDLE_SECONDS = 8.0, 20.0
_WARM_UP_RECORDS, _RECORDS = 10, 11
_LONGEST_PAUSE_SECONDS = 0.1
"""The maximum of a random pause before each record."""


def run(folder: Path, broker: Broker) -> Iterator[Figure]:
    chosen = sizes("SUBTOPOLOGIES", _SUBTOPOLOGIES)
    if chosen:
        # It fills the page cache, and creates the archive of classes if there is none.
        first = Chain("growth-first", 1, broker.bootstrap_servers)
        first.create_topics()
        with first.running(folder):
            pass
    for number in chosen:
        chain = Chain(f"growth-{number}", number, broker.bootstrap_servers)
        chain.create_topics()
        for what, unit, ours in _measured(chain, folder, broker):
            yield Figure(what=what, unit=unit, ours=ours, size=number, units=_UNITS)


def _measured(chain: Chain, folder: Path, broker: Broker) -> Iterator[tuple[str, str, float]]:
    started = time.monotonic()
    with chain.running(folder) as process, chain.records() as records:
        yield "start to RUNNING", "s", time.monotonic() - started
        yield "start to RUNNING: CPU time", "s", used({}, cpu_seconds(process.pid))
        records.warm_up()
        time.sleep(_WARM_UP_SECONDS)
        before = cpu_seconds(process.pid), cpu_seconds(broker.pid)
        time.sleep(_IDLE_SECONDS)
        after = cpu_seconds(process.pid), cpu_seconds(broker.pid)
        for program, start, end in zip(("driver", "broker"), before, after, strict=True):
            percent = used(start, end) / _IDLE_SECONDS * 100
            yield f"idle: CPU of the {program}", "% of a core", percent
        yield "latency p50 of one record", "s", _median_latency(records)


def _median_latency(records: SingleRecords) -> float:
    pauses = random.Random(0)  # noqa: S311 - no secret
    taken = []
    for number in range(_WARM_UP_RECORDS + _RECORDS):
        time.sleep(pauses.uniform(0, _LONGEST_PAUSE_SECONDS))
        taken.append(records.seconds(number))
    return statistics.median(taken[_WARM_UP_RECORDS:])
