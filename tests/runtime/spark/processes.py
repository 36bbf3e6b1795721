"""The processes of a Spark application on this machine, from Linux's /proc."""

import os
import signal
from collections.abc import Iterable, Iterator
from contextlib import suppress
from pathlib import Path

from headwater.toolchain.broker.readiness import until

_STOP_SECONDS = 90.0
_PYTHON_WORKERS = ("pyspark.daemon", "worker_daemon")
"""Spark's daemon of Python workers, and that of local sessions."""
_EXECUTOR = "CoarseGrainedExecutorBackend"


def python_workers(driver: int) -> list[int]:
    """Return the Python workers of `driver`, without the daemon that forks them."""
    # Not the JVM, whose options name the daemon: else the daemon would count as a worker.
    daemons = {
        pid for pid in descendants(driver) if _program(pid) != "java" and _is_python_worker(_command(pid))
    }
    return [pid for pid in daemons if _parent(pid) in daemons]


def jvm(driver: int) -> int:
    """Return the JVM that the Python process `driver` has started."""
    [found] = [pid for pid in _children(driver) if _program(pid) == "java"]
    return found


def kill_groups(driver: int) -> None:
    """Kill a driver, its JVM and Spark's executors at once; Python workers have groups of their own.

    Without that, the JVM, which has a session of its own, would end in order: when its driver has ended.
    """
    for group in (driver, *filter(_leads_session, list(_children(driver)))):
        with suppress(ProcessLookupError):
            os.killpg(group, signal.SIGKILL)


def _leads_session(pid: int) -> bool:
    try:
        return os.getsid(pid) == pid
    except ProcessLookupError:
        return False


def python_driver(submit: int) -> int:
    """Return the Python process that the JVM of `spark-submit` has started."""
    # A child of the JVM has the JVM's command until it executes its own.
    children = [pid for pid in _children(submit) if _program(pid).startswith("python")]
    commands = {pid: _command(pid) for pid in children}
    [found] = [pid for pid, each in commands.items() if "spark_jobs" in each and not _is_python_worker(each)]
    return found


def is_running(pid: int) -> bool:
    """Return whether a process exists and is not a zombie."""
    try:
        return Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0] != "Z"
    except OSError:
        return False


def is_stopped(pid: int) -> bool:
    """Return whether a signal has stopped a process, or it has ended."""
    try:
        return Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0] in "TZ"
    except OSError:
        return True


def stop_all(driver: int) -> None:
    """Stop a driver, its JVM and their child processes; a child may be started meanwhile."""

    def is_all_stopped() -> bool:
        found = [driver, *descendants(driver)]
        for pid in found:
            with suppress(ProcessLookupError):
                os.kill(pid, signal.SIGSTOP)
        return all(map(is_stopped, found))

    assert until(is_all_stopped, _STOP_SECONDS)


def continue_all(driver: int) -> None:
    """Let a driver and its child processes continue."""
    for pid in (*descendants(driver), driver):
        with suppress(ProcessLookupError):
            os.kill(pid, signal.SIGCONT)


def with_command(pids: Iterable[int], *texts: str) -> list[int]:
    """Return the processes whose command has each of the texts."""
    return [pid for pid in pids if all(text in _command(pid) for text in texts)]


def all_ended(pids: Iterable[int]) -> bool:
    return not any(map(is_running, pids))


def executors(driver: int) -> list[int]:
    return [pid for pid in descendants(driver) if _EXECUTOR in _command(pid) and "java" in _command(pid)]


def descendants(ancestor: int) -> Iterator[int]:
    parents = {pid: _parent(pid) for pid in _all()}
    for pid in parents:
        above = parents.get(pid, 0)
        while above and above != ancestor:
            above = parents.get(above, 0)
        if above == ancestor:
            yield pid


def _is_python_worker(command: str) -> bool:
    return any(each in command for each in _PYTHON_WORKERS)


def _children(parent: int) -> Iterator[int]:
    return (pid for pid in _all() if _parent(pid) == parent)


def _all() -> list[int]:
    return [int(entry.name) for entry in Path("/proc").iterdir() if entry.name.isdigit()]


def _parent(pid: int) -> int:
    try:
        status = Path(f"/proc/{pid}/stat").read_text()
    except OSError:
        return 0
    return int(status.rpartition(")")[2].split()[1])


def _program(pid: int) -> str:
    return _command(pid).partition(" ")[0].rpartition("/")[2]


def _command(pid: int) -> str:
    try:
        return Path(f"/proc/{pid}/cmdline").read_bytes().replace(b"\0", b" ").decode(errors="replace")
    except OSError:
        return ""
