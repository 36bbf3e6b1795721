"""Measure wall and CPU seconds of commands that run alternately, so that other load affects all of them."""

import resource
import statistics
import subprocess
import time
from collections.abc import Callable, Mapping, Sequence

import attrs


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


def compared(title: str, ours: Taken, theirs: Taken, name: str) -> str:
    """Return a line for each kind of time, with the ratio."""
    rows = (("", ours.wall, theirs.wall), (" of CPU", ours.cpu, theirs.cpu))
    return "\n".join(
        f"{title}: {mine:.2f} s{what}, {name} {other:.2f} s, ratio {mine / other:.2f}"
        for what, mine, other in rows
    )


def succeeds(command: Sequence[str]) -> bool:
    return subprocess.run(command, capture_output=True, check=False).returncode == 0


def _children_seconds() -> float:
    usage = resource.getrusage(resource.RUSAGE_CHILDREN)
    return usage.ru_utime + usage.ru_stime
