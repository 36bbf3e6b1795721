"""Records per second from two runs of different size: the time to start and stop cancels out."""

import math
import time
from collections.abc import Callable, Sequence
from statistics import median

import attrs

from tests.bench.runtime.programs import Program
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
    workload: Workload,
    programs: Sequence[Program],
    topics: Topics,
    records: int,
    report: Callable[[str], None],
) -> dict[str, Throughput]:
    """Return name of program → throughput; programs run alternately: other load affects all of them."""
    small, large = workload.sizes(records)
    seconds: dict[tuple[str, int], list[float]] = {}
    for round_ in range(workload.rounds):
        for program in programs:
            for size in (small, large):
                report(f"{workload.name}, round {round_ + 1}: {program.title}, {size:,} records")
                taken = seconds_of(program, workload, topics, size)
                seconds.setdefault((program.name, size), []).append(taken)
    return {
        program.name: Throughput(
            (small, median(seconds[program.name, small])), (large, median(seconds[program.name, large]))
        )
        for program in programs
    }


def seconds_of(program: Program, workload: Workload, topics: Topics, records: int) -> float:
    """Return the time from the start of the application to its last commit."""
    job = topics.job(program.name, workload, records)
    started = time.perf_counter()
    with program.running(job, in_bulk=True) as running:
        running.await_end()
        return time.perf_counter() - started
