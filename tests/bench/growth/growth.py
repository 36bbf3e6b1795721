"""How costs grow with size: keys, sub-topologies, executors, hosts and topics.

`HEADWATER_BENCH_KEYS`, `HEADWATER_BENCH_SUBTOPOLOGIES`, `HEADWATER_BENCH_EXECUTORS`, `HEADWATER_BENCH_HOSTS`
and `HEADWATER_BENCH_TOPICS` replace the sizes of a series; an empty one omits it.
"""

from collections.abc import Iterator
from pathlib import Path

from rich.console import Console

from headwater.toolchain import PulumiToolchain
from headwater.toolchain.broker import Broker
from tests.bench.figures import Figure
from tests.bench.growth import executors, hosts, keys, subtopologies, topics
from tests.bench.runtime.comparison import WIDTH

_SERIES = (keys, subtopologies, executors, hosts, topics)


def run(folder: Path, _: PulumiToolchain, broker: Broker) -> Iterator[Figure]:
    """Yield the figures of each series; print a message instead of those that fail."""
    for series in _SERIES:
        try:
            yield from series.run(folder, broker)
        except Exception as error:  # noqa: BLE001 - the other figures must not be lost
            message = f"no more figures of {series.__name__}: {type(error).__name__}: {error}"
            Console(stderr=True, width=WIDTH).log(message)
