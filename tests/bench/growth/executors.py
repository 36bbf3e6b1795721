"""Growth with the number of executors on one machine, each with one core and one partition."""

from collections.abc import Iterator
from pathlib import Path

from rich.console import Console

from spark_jobs.control.logs import configure_log
from tests.bench.figures import Figure
from tests.bench.growth.series import sizes
from tests.bench.runtime import throughput
from tests.bench.runtime.comparison import WIDTH, length, session
from tests.bench.runtime.ours import Headwater
from tests.bench.runtime.topics import Topics
from tests.bench.runtime.workloads import Workload
from toolchain.broker import Broker

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


def run(folder: Path, broker: Broker) -> Iterator[Figure]:
    configure_log(level="error")
    report = Console(stderr=True, width=WIDTH).log
    for number in sizes("EXECUTORS", _EXECUTORS):
        topics = Topics(broker.bootstrap_servers, f"growth-{number}", number)
        with session(f"local-cluster[{number},1,1024]") as spark:
            headwater = Headwater(spark, broker.bootstrap_servers, folder / f"executors-{number}")
            runs = length(_RECORDS, _SECONDS)
            rates = throughput.measure(_COUNT, [headwater], topics, runs, report)
        yield Figure(
            what=_COUNT.name,
            unit="records/s",
            ours=rates[headwater.name].rate,
            is_rate=True,
            size=number,
            units="executors",
        )
