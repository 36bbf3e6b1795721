"""CPU time of running processes, from /proc."""

import multiprocessing
import os
from collections.abc import Mapping
from contextlib import suppress
from pathlib import Path

import attrs

ENDED = "ended threads"
_TICK = 1 / os.sysconf("SC_CLK_TCK")


@attrs.frozen
class Thread:
    """A thread of a process with a command line; `number` 0 = all threads of the process that have ended."""

    process: int
    number: int
    command: str = attrs.field(eq=False)
    name: str = attrs.field(eq=False)


def benchmark_process() -> int:
    """Return the process of the benchmark, of which all programs and the broker are descendants.

    It is the parent of a process that measures a single workload.
    """
    parent = multiprocessing.parent_process()
    return os.getpid() if parent is None or parent.pid is None else parent.pid


def cpu_seconds(root: int) -> Mapping[int, float]:
    """Return the CPU time of a process and its descendants, each with its children that have ended."""
    return {pid: sum(map(int, fields[11:15])) * _TICK for pid, fields in _tree(root).items()}


def own_seconds(root: int) -> Mapping[int, float]:
    """Return the CPU time of a process and its descendants, each without its children that have ended."""
    return {pid: _own_seconds(fields) for pid, fields in _tree(root).items()}


def used(before: Mapping[int, float], after: Mapping[int, float]) -> float:
    """Return the CPU time between two calls of `cpu_seconds`.

    Spark ends a Python worker that was idle for a minute, and its parent does not wait for it, so the kernel
    forgets its CPU time. What it has used until the first call must not be subtracted from the others' time.
    """
    return sum(seconds - before.get(pid, 0.0) for pid, seconds in after.items())


def _tree(root: int) -> Mapping[int, list[str]]:
    """Return a process and its descendants, with the fields of `_stat`."""
    fields = {int(each.name): _stat(each) for each in Path("/proc").iterdir() if each.name.isdigit()}
    tree = [root]
    for pid in tree:
        tree += [child for child, stat in fields.items() if stat and int(stat[1]) == pid]
    return {pid: fields[pid] for pid in tree if fields.get(pid)}


def _stat(process: Path) -> list[str]:
    """Return the fields of /proc/PID/stat from the state on; none if the process has ended."""
    try:
        return (process / "stat").read_text().rpartition(")")[2].split()
    except OSError:
        return []


def thread_seconds(root: int) -> Mapping[Thread, float]:
    """Return the CPU time of the threads of a process and its descendants."""
    found: dict[Thread, float] = {}
    for pid, fields in _tree(root).items():
        with suppress(OSError):  # the process has ended
            command = Path(f"/proc/{pid}/cmdline").read_text().replace("\0", " ")
            ended = _own_seconds(fields)
            for task in Path(f"/proc/{pid}/task").iterdir():
                with suppress(OSError):  # this thread has ended meanwhile: the others are still read
                    name, seconds = (task / "comm").read_text().strip(), _own_seconds(_stat(task))
                    found[Thread(pid, int(task.name), command, name)] = seconds
                    ended -= seconds
            found[Thread(pid, 0, command, ENDED)] = ended
    return found


def used_by_threads(before: Mapping[Thread, float], after: Mapping[Thread, float]) -> Mapping[Thread, float]:
    """Return the CPU time between two calls of `thread_seconds`, without processes that have ended."""
    used = {thread: seconds - before.get(thread, 0.0) for thread, seconds in after.items()}
    for thread, seconds in before.items():
        ended = attrs.evolve(thread, number=0)
        if thread not in after and ended in used:
            used[ended] -= seconds
    return used


def _own_seconds(stat: list[str]) -> float:
    """Return the CPU time without children that have ended; 0 if there is no such process or thread."""
    return sum(map(int, stat[11:13])) * _TICK
