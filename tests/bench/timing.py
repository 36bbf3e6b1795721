"""Measure wall and CPU seconds of commands that run alternately, so that other load affects all of them."""

import os
import resource
import statistics
import subprocess
import time
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path

import attrs
import click

from tests.bench.figures import Figure


@attrs.frozen
class Taken:
    """Median wall and CPU seconds; `cpu` is that of ended child processes."""

    wall: float
    cpu: float


def take_turns(programs: Mapping[str, Callable[[], object]], rounds: int) -> dict[str, Taken]:
    """Run each program `rounds` times, alternately; the programs start processes and wait for them.

    The cores that other processes used (brokers, and other load) are printed, and how much each program read
    from disks, because its files were not in memory: elapsed time depends on both.
    """
    taken: dict[str, list[tuple[float, float]]] = {name: [] for name in programs}
    read = dict.fromkeys(programs, 0.0)
    machine = _machine_seconds()
    for _ in range(rounds):
        for name, program in programs.items():
            start, used, before = time.monotonic(), _children_seconds(), _children_megabytes()
            program()
            read[name] += _children_megabytes() - before
            taken[name].append((time.monotonic() - start, _children_seconds() - used))
    elapsed, own = (
        sum(seconds) for seconds in zip(*(pair for pairs in taken.values() for pair in pairs), strict=True)
    )
    others = (_machine_seconds() - machine - own) / elapsed
    from_disks = ", ".join(f"{name} {megabytes / rounds:.0f} MB" for name, megabytes in read.items())
    click.echo(
        f"other processes used {others:.1f} of {os.cpu_count()} cores; from disks in a run: {from_disks}",
        err=True,
    )
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


def _children_megabytes() -> float:
    """Return how much ended child processes have read from disks; a block has 512 bytes."""
    return resource.getrusage(resource.RUSAGE_CHILDREN).ru_inblock * 512 / 1e6


def _machine_seconds() -> float:
    """Return the CPU seconds of all processes since the machine started, without idle time."""
    _, *ticks = Path("/proc/stat").read_text(encoding="ascii").split("\n", 1)[0].split()
    user, nice, system, _idle, _iowait, *interrupts = map(int, ticks[:8])
    return sum((user, nice, system, *interrupts)) / os.sysconf("SC_CLK_TCK")
