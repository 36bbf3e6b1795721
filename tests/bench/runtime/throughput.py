"""Records per second from two runs of different size: the time to start and stop cancels out."""

import math
import time
from collections.abc import Callable, Sequence
from functools import partial
from statistics import median

import attrs

from tests.bench.runtime.programs import Program
from tests.bench.runtime.topics import Topics
from tests.bench.runtime.workloads import Workload

_MOST_TIMES = 64


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


@attrs.frozen
class Length:
    """`records` of a run, or as many times as many as take at least `seconds`."""

    records: int
    seconds: float

    def times(self, seconds_for: Callable[[int], float]) -> int:
        """Return how many times as many records take long enough, a power of two.

        `seconds_for` runs a program with that many times as many records, and returns the seconds.
        """
        times = 1
        while (seconds := seconds_for(times)) < self.seconds and times < _MOST_TIMES:
            times *= 2 ** math.ceil(math.log2(min(self.seconds / seconds, _MOST_TIMES / times)))
        return times


def measure(
    workload: Workload,
    programs: Sequence[Program],
    topics: Topics,
    length: Length,
    report: Callable[[str], None],
) -> dict[str, Throughput]:
    """Return name of program → throughput; programs run alternately: other load affects all of them."""

    def taken(program: Program, records: int, when: str) -> float:
        report(f"{workload.name}, {when}: {program.title}, {records:,} records")
        return seconds_of(program, workload, topics, records)

    def warm_up(program: Program, times: int) -> float:
        return taken(program, workload.sizes(length.records * times)[1], "warming up")

    sizes = {
        each.name: workload.sizes(length.records * length.times(partial(warm_up, each))) for each in programs
    }
    seconds: dict[tuple[str, int], list[float]] = {}
    for round_ in range(workload.rounds):
        for program in programs:
            for size in sizes[program.name]:
                found = taken(program, size, f"round {round_ + 1}")
                seconds.setdefault((program.name, size), []).append(found)
    return {
        name: Throughput(*((size, median(seconds[name, size])) for size in both))
        for name, both in sizes.items()
    }


def seconds_of(program: Program, workload: Workload, topics: Topics, records: int) -> float:
    """Return the time from the start of the application to its last commit."""
    job = topics.job(program.name, workload, records)
    started = time.perf_counter()
    with program.running(job, in_bulk=True) as running:
        running.await_end()
        return time.perf_counter() - started
