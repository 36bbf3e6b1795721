"""Measure wall and CPU seconds of commands that run alternately, so that other load affects all of them."""

import resource
import statistics
import subprocess
import time
from collections.abc import Callable, Mapping, Sequence

import attrs

from tests.bench.figures import Figure


@attrs.frozen
class Taken:
    """Median wall and CPU seconds; `cpu` is that of ended child processes."""

    wall: float
    cpu: float


def take_turns(programs: Mapping[str, Callable[[], object]], rounds: int) -> dict[str, Taken]:
    """Run each program `rounds` times, alternately; the programs start processes and wait for them."""
    taken: dict[str, list[tuple[float, float]]] = {name: [] for name in programs}
    for _ in range(rounds):
        for name, program in programs.items():
            start, used = time.monotonic(), _children_seconds()
            program()
            taken[name].append((time.monotonic() - start, _children_seconds() - used))
    return {name: Taken(*map(statistics.median, zip(*pairs, strict=True))) for name, pairs in taken.items()}


def compared(
    what: str, ours: Taken, theirs: Taken, peer: str, wall_goal: float | None = None
) -> tuple[Figure, ...]:
    """Return a figure for each kind of time."""
    return (
        Figure(what=what, unit="s", ours=ours.wall, peer=peer, theirs=theirs.wall, goal=wall_goal),
        Figure(what=f"{what}: CPU time", unit="s", ours=ours.cpu, peer=peer, theirs=theirs.cpu),
    )


def succeeds(command: Sequence[str]) -> bool:
    return subprocess.run(command, capture_output=True, check=False).returncode == 0


def _children_seconds() -> float:
    usage = resource.getrusage(resource.RUSAGE_CHILDREN)
    return usage.ru_utime + usage.ru_stime
