"""Records per second from two runs of different size: the time to start and stop cancels out."""

import math
import time
from collections.abc import Callable, Sequence
from statistics import median

import attrs

from tests.bench.runtime.sides import Side
from tests.bench.runtime.topics import Topics
from tests.bench.runtime.workloads import Workload


@attrs.frozen
class Throughput:
    """`small` and `large`: (records, median seconds from the start of the application to the last commit)."""

    small: tuple[int, float]
    large: tuple[int, float]

    @property
    def rate(self) -> float:
        """Records per second in steady state; nan if the runs are too short."""
        seconds = self.large[1] - self.small[1]
        return (self.large[0] - self.small[0]) / seconds if seconds > 0 else math.nan

    @property
    def start_up(self) -> float:
        """Seconds to start and stop."""
        return self.small[1] - self.small[0] / self.rate


def measure(
    workload: Workload, sides: Sequence[Side], topics: Topics, records: int, report: Callable[[str], None]
) -> dict[str, Throughput]:
    """Return name of side → throughput; the sides take turns, so that other load affects all of them."""
    small, large = workload.sizes(records)
    seconds: dict[tuple[str, int], list[float]] = {}
    for round_ in range(workload.rounds):
        for side in sides:
            for size in (small, large):
                report(f"{workload.name}, round {round_ + 1}: {side.title}, {size:,} records")
                taken = seconds_of(side, workload, topics, size)
                seconds.setdefault((side.name, size), []).append(taken)
    return {
        side.name: Throughput(
            (small, median(seconds[side.name, small])), (large, median(seconds[side.name, large]))
        )
        for side in sides
    }


def seconds_of(side: Side, workload: Workload, topics: Topics, records: int) -> float:
    """Return the time from the start of the application to its last commit."""
    job = topics.job(side.name, workload, records)
    started = time.perf_counter()
    with side.running(job, in_bulk=True) as running:
        running.await_end()
        return time.perf_counter() - started
