"""Records per second, and CPU time per record, from runs of two sizes: starts and stops cancel out."""

import math
import time
from collections.abc import Callable, Sequence
from statistics import median

import attrs

from tests.bench.cpu_time import benchmark_process, cpu_seconds, used
from tests.bench.runtime.programs import Program
from tests.bench.runtime.topics import Topics
from tests.bench.runtime.workloads import Workload

_MOST_TIMES = 64
_LARGEST_STEP = 4
_SHORTEST_SECONDS = 0.1
"""What a run takes at least without its start, which differs from run to run."""
_LEAST_SECONDS = 1.0
"""With a commit each second, a run may end up to a second late: a shorter difference shows nothing."""


@attrs.frozen
class Run:
    """One run of an application, from its start to its last commit.

    `cpu_seconds` is the CPU time of all programs of the benchmark with the broker: only one of them runs.
    """

    records: int
    seconds: float
    cpu_seconds: float = 0.0


@attrs.frozen
class Throughput:
    """The small and the large run of each round."""

    rounds: Sequence[tuple[Run, Run]]

    @property
    def rate(self) -> float:
        """Records per second in steady state, from median times; nan if they differ by less than a second."""
        (small, large), records = self._medians, self._more_records
        return records / (large - small) if large - small >= _LEAST_SECONDS else math.nan

    @property
    def rates(self) -> tuple[float, float] | None:
        """The smallest and the largest rate of a round; None if a round is too short for a rate."""
        if any(large.seconds <= small.seconds for small, large in self.rounds):
            return None
        found = [self._more_records / (large.seconds - small.seconds) for small, large in self.rounds]
        return min(found), max(found)

    @property
    def cpu_per_record(self) -> float:
        """The median CPU time of a record, in seconds."""
        return median(self._cpu_of_rounds)

    @property
    def cpu_range(self) -> tuple[float, float]:
        """The smallest and the largest CPU time per record of a round, in seconds."""
        return min(self._cpu_of_rounds), max(self._cpu_of_rounds)

    @property
    def start_up(self) -> float:
        """Seconds to start and stop."""
        return self._medians[0] - self.rounds[0][0].records / self.rate

    @property
    def records(self) -> int:
        """The number of records of the large run."""
        return self.rounds[0][1].records

    @property
    def _more_records(self) -> int:
        small, large = self.rounds[0]
        return large.records - small.records

    @property
    def _medians(self) -> tuple[float, float]:
        return median(small.seconds for small, _ in self.rounds), median(
            large.seconds for _, large in self.rounds
        )

    @property
    def _cpu_of_rounds(self) -> list[float]:
        return [(large.cpu_seconds - small.cpu_seconds) / self._more_records for small, large in self.rounds]


@attrs.frozen
class Length:
    """`records` of a run, or as many times as many as take at least `seconds`."""

    records: int
    seconds: float

    def times(self, seconds_for: Callable[[int], float]) -> int:
        """Return how many times as many records take long enough, a power of two.

        `seconds_for` runs a program with that many times as many records, and returns the seconds without
        the time of its start: of a run that consists of little else, two sizes do not differ.
        """
        times = 1
        while (seconds := seconds_for(times)) < self.seconds and times < _MOST_TIMES:
            missing = self.seconds / max(seconds, _SHORTEST_SECONDS)
            # Few records can take less time than the start before: then it is unknown how many are missing.
            times *= 2 ** math.ceil(math.log2(min(missing, _LARGEST_STEP, _MOST_TIMES / times)))
        return times


def measure(
    workload: Workload,
    programs: Sequence[Program],
    topics: Topics,
    length: Length,
    report: Callable[[str], None],
) -> dict[str, Throughput]:
    """Return name of program → throughput; programs run alternately: other load affects all of them."""

    def run(program: Program, records: int, when: str) -> Run:
        report(f"{workload.name}, {when}: {program.title}, {records:,} records")
        return run_of(program, workload, topics, records)

    few, many = workload.sizes(length.records)
    for each in programs:
        run(each, many, "warming up")  # a new JVM is so slow that this run shows nothing about the others

    def sizes_for(program: Program) -> tuple[int, int]:
        start = run(program, few, "warming up").seconds

        def seconds_for(times: int) -> float:
            return run(program, workload.sizes(length.records * times)[1], "warming up").seconds - start

        return workload.sizes(length.records * length.times(seconds_for))

    sizes = {each.name: sizes_for(each) for each in programs}
    rounds: dict[str, list[tuple[Run, Run]]] = {each.name: [] for each in programs}
    for number in range(1, workload.rounds + 1):
        for program in programs:
            small, large = (run(program, size, f"round {number}") for size in sizes[program.name])
            rounds[program.name].append((small, large))
    return {name: Throughput(of_program) for name, of_program in rounds.items()}


def run_of(program: Program, workload: Workload, topics: Topics, records: int) -> Run:
    """Run an application until its last commit."""
    job = topics.job(program.name, workload, records)
    root = benchmark_process()
    before, started = cpu_seconds(root), time.perf_counter()
    with program.running(job, in_bulk=True) as running:
        running.await_end()
        seconds = time.perf_counter() - started
        return Run(records, seconds, used(before, cpu_seconds(root)))
