"""A reshard as a command on a standalone cluster of Spark, and the faults that happen while it runs."""

import logging
import random
import signal
import sys
import time
from collections.abc import Callable, Mapping, Sequence
from enum import Enum
from pathlib import Path
from typing import TYPE_CHECKING

import attrs

from headwater.toolchain.broker.readiness import until
from tests.runtime.hosts.cluster import SparkHosts
from tests.runtime.hosts.network import Host, send_signal
from tests.runtime.spark.open_transactions import ongoing_transactions
from tests.runtime.spark.processes import all_ended, is_stopped, with_command

if TYPE_CHECKING:
    import subprocess

_log = logging.getLogger(__name__)
_EXECUTOR, _PYTHON = ("java", "CoarseGrainedExecutorBackend"), ("pyspark.daemon",)
_WORKER = ("java", "deploy.worker.Worker")
_HEARTBEAT_SECONDS = 12
"""A silent executor is lost after this time, not after 45 s."""
_PAUSE_SECONDS = (16.0, 40.0)
"""Spark gives up a silent executor after 12 to 15 s. Its worker waits for up to 10 s until it kills it."""
_BROKER_PAUSE_SECONDS = 20.0
_END_SECONDS = 600.0
_IN_ONE_PASS = 0.3
"""The part of the faults after which the next one may happen in the same pass."""
_FIRST_JOB = "reading the changelog topics, tasks"
_WRITER = "-headwater-reshard-"
"""In the transactional ids of tasks."""
_MOMENTS, _MOMENT_SECONDS = 200, 0.02
_ON_SPARK = 0.7
"""The part of the interrupted commands that are run again with Spark."""
DONE, FAILED = 0, 1
_CONTINUED = ("ReshardIncomplete", "RequestNotAnswered", "NotRunnable", "ClusterUnreachable", "Timeout")
"""The codes of problems after which the command is run again."""


class Fault(Enum):
    EXECUTOR = "an executor is killed"
    PYTHON = "the Python processes of an executor are killed"
    PAUSED_EXECUTOR = "an executor is paused until Spark has given it up"
    ZOMBIE = "an executor is killed; its Python processes are paused, and continue later"
    WORKER = "a worker is killed with its executor, and replaced"
    DAEMON = "the daemon of a worker is killed, and replaced"
    DRIVER = "the driver is killed"
    BROKER = "the broker is killed, and started again"
    PAUSED_BROKER = "the broker is paused"

    @property
    def is_of_executors(self) -> bool:
        """Whether the command has to succeed in spite of it."""
        return self not in (Fault.DRIVER, Fault.BROKER, Fault.PAUSED_BROKER)


@attrs.define
class ClusterReshard:
    """Runs the command on `host`, until it succeeds. `counts` is source topic → new partition count."""

    cluster: SparkHosts
    host: Host
    document: Path
    counts: Mapping[str, int]
    draw: random.Random
    tasks: int = 3
    executions: int = 0
    caused: list[Fault] = attrs.field(factory=list)
    _due: list[tuple[float, Callable[[], None]]] = attrs.field(factory=list)
    """When to end which fault."""
    _paused: list[int] = attrs.field(factory=list)
    _begin: int = 0

    def start(self, *, on_spark: bool = True) -> "subprocess.Popen[bytes]":
        command = [sys.executable, "-m", "headwater.cli", "reshard", str(self.document)]
        for topic, count in self.counts.items():
            command += ["--partitions", f"{topic}={count}"]
        command += ["--bootstrap-server", self.cluster.servers]
        if on_spark:
            timeout = f"spark.storage.blockManagerHeartbeatTimeoutMs={_HEARTBEAT_SECONDS}s"
            command += ["--spark", "--master", self.cluster.master, "--tasks", str(self.tasks)]
            command += [*self.cluster.spark_options(self.host), "--conf", timeout]
        self._begin = len(self.cluster.log(self.host))
        self.executions += 1
        return self.cluster.start_program(self.host, command)

    def output(self) -> str:
        """Return what the last command has printed."""
        return self.cluster.log(self.host)[self._begin :]

    def run(self, faults: Sequence[Fault], seconds: float, *, without_spark: bool = True) -> None:
        """Run the command, cause the faults one after the other, and run it again if it was interrupted.

        `seconds` is how long to wait for the next fault at most. `without_spark`: an interrupted command may
        be run again without Spark.
        """
        process = self.start()
        assert until(lambda: process.poll() is not None or _FIRST_JOB in self.output(), _END_SECONDS)
        for fault in faults:
            process = self._run_for(process, self.draw.uniform(0.0, seconds), without_spark=without_spark)
            if self.cause(fault, process) and self.draw.random() > _IN_ONE_PASS:
                self._await_progress(process)
        while process.poll() != DONE:
            process = self._run_for(process, _END_SECONDS, without_spark=without_spark)
            assert process.poll() is not None, f"the command does not end: {self.output()[-6000:]}"
        self.end_faults()

    def _run_for(
        self, process: "subprocess.Popen[bytes]", seconds: float, *, without_spark: bool
    ) -> "subprocess.Popen[bytes]":
        """Wait for the end of the command, at most for so long; return the next one if it was interrupted."""
        if process.poll() not in (None, DONE):
            self._check_interruption(process.returncode)
            process = self.start(on_spark=not without_spark or self.draw.random() < _ON_SPARK)
        due = time.monotonic() + seconds

        def is_over() -> bool:
            self.end_due_faults()
            return time.monotonic() >= due or process.poll() is not None

        assert until(is_over, seconds + _END_SECONDS)
        return process

    def cause_in_pass(
        self, fault: Fault, process: "subprocess.Popen[bytes]", text: str, *, writes: bool
    ) -> bool:
        """Cause a fault in the pass for which `text` was printed; return False if another one has begun.

        The Python processes of all executors are stopped meanwhile. In a pass that `writes`, the fault hits
        an executor with an open transaction.
        """
        self._stop(self._python_processes())
        try:
            if process.poll() is not None or text not in self._pass_lines()[-1]:
                return False
            host = self._run_until_transaction(text) if writes else None
            return (host is not None or not writes) and self.cause(fault, process, host)
        finally:
            send_signal(signal.SIGCONT, self._python_processes())

    def _run_until_transaction(self, text: str) -> Host | None:
        """Let the Python processes of one host run until it has an open transaction; return the host.

        They run for a moment, and are stopped again. None = another pass has begun. The transactions that are
        open at the start do not count until they have ended: they may be open on another host.
        """
        before, due = self._transactions(), time.monotonic() + _END_SECONDS
        while time.monotonic() < due:
            for host in self.cluster.workers:
                for _ in range(_MOMENTS):
                    python = self._find(host, *_PYTHON)
                    send_signal(signal.SIGCONT, python)
                    time.sleep(_MOMENT_SECONDS)  # not a wait: so long they run
                    self._stop(python)
                    found = self._transactions()
                    if found - before:
                        return host
                    before &= found
                    if text not in self._pass_lines()[-1]:
                        return None
        return None

    def _python_processes(self) -> list[int]:
        return [pid for host in self.cluster.workers for pid in self._find(host, *_PYTHON)]

    def _transactions(self) -> set[str]:
        """Return the transactional ids of open transactions of tasks."""
        found = ongoing_transactions(self.cluster.servers)
        return {each for each in found if _WRITER in each}

    @staticmethod
    def _stop(pids: Sequence[int]) -> None:
        send_signal(signal.SIGSTOP, pids)
        assert until(lambda: all(map(is_stopped, pids)), _END_SECONDS)

    def cause(self, fault: Fault, process: "subprocess.Popen[bytes]", host: Host | None = None) -> bool:
        """Cause a fault on `host`, or on one with tasks; what ends it later happens during the command.

        Return False if there is nothing that it can hit: the command has ended, or runs without executors.
        """
        hosts = self._await_hosts_with_tasks(process) if host is None else [host]
        if process.poll() is not None or (fault.is_of_executors and not hosts):
            return False
        host = self.draw.choice(hosts or self.cluster.workers)
        executors, python = self._find(host, *_EXECUTOR), self._find(host, *_PYTHON)
        said = [line for line in self.output().splitlines() if ": " in line and "spark" not in line][-1:]
        _log.info("%s on %s, with %d Python processes, after %s", fault.value, host.name, len(python), said)
        self.caused.append(fault)
        match fault:
            case Fault.EXECUTOR:
                send_signal(signal.SIGKILL, executors)
            case Fault.PYTHON:
                send_signal(signal.SIGKILL, python)
            case Fault.PAUSED_EXECUTOR:
                self._pause([*executors, *python])
            case Fault.ZOMBIE:
                self._pause(python)
                send_signal(signal.SIGKILL, executors)
            case Fault.WORKER:
                host.kill()
                self.cluster.start_worker(host)
            case Fault.DAEMON:
                send_signal(signal.SIGKILL, self._find(host, *_WORKER))
                self.cluster.start_worker(host)
            case Fault.DRIVER:
                self.host.kill()
            case Fault.BROKER:
                self.cluster.broker.kill()
                self.cluster.broker.start()
            case Fault.PAUSED_BROKER:
                self.cluster.broker.pause()
                self._due.append((time.monotonic() + _BROKER_PAUSE_SECONDS, self.cluster.broker.resume))
        return True

    def _await_hosts_with_tasks(self, process: "subprocess.Popen[bytes]") -> list[Host]:
        """Wait until a task runs, or has run, in an executor that is not paused; return the hosts of such.

        There are none if the command has ended, or runs without Spark, or without a job so far. On a busy
        machine, executors that are killed more often than they start execute nothing.
        """
        hosts: list[Host] = []

        def is_over() -> bool:
            self.end_due_faults()
            hosts[:] = [each for each in self.cluster.workers if self._has_tasks(each)]
            return process.poll() is not None or bool(hosts) or _FIRST_JOB not in self.output()

        assert until(is_over, _END_SECONDS), self.output()[-6000:]
        return hosts

    def _await_progress(self, process: "subprocess.Popen[bytes]") -> None:
        """Wait until another pass begins: no command survives if each execution of a task is killed."""
        passes = self._passes()

        def has_continued() -> bool:
            self.end_due_faults()
            return process.poll() is not None or self._passes() > passes

        assert until(has_continued, _END_SECONDS), self.output()[-6000:]

    def _pass_lines(self) -> list[str]:
        """Return what was printed when a pass began, or began again."""
        return [line for line in self.output().splitlines() if line.endswith(("tasks", "changelog"))]

    def _passes(self) -> int:
        """Return how many passes have begun, other than to repeat one."""
        found = self._pass_lines()
        again = sum("checking entries of" in line for line in found)  # twice for each topic
        return len(set(found)) + again

    def _has_tasks(self, host: Host) -> bool:
        return bool(self._find(host, *_EXECUTOR) and self._find(host, *_PYTHON))

    def end_faults(self) -> None:
        """End the faults that last, and wait until no process of an executor runs: none can write later."""
        for _, end in self._due:
            end()
        self._due.clear()
        paused = [*self._paused]
        assert until(lambda: all_ended(paused), _END_SECONDS), "a process that was paused does not end"

    def end_due_faults(self) -> None:
        """End the faults whose time is over."""
        now = time.monotonic()
        for each in [each for each in self._due if each[0] <= now]:
            self._due.remove(each)
            each[1]()

    def _check_interruption(self, code: int) -> None:
        """Check that the command was interrupted by a fault that it cannot survive, and names it."""
        assert not all(fault.is_of_executors for fault in self.caused), self.output()[-6000:]
        if code == FAILED:
            assert any(f"error[{each}]" in self.output() for each in _CONTINUED), self.output()[-6000:]
        else:
            assert Fault.DRIVER in self.caused, (code, self.output()[-6000:])

    def _pause(self, pids: Sequence[int]) -> None:
        send_signal(signal.SIGSTOP, pids)
        self._paused.extend(pids)
        end = time.monotonic() + self.draw.uniform(*_PAUSE_SECONDS)
        self._due.append((end, lambda: send_signal(signal.SIGCONT, pids)))

    def _find(self, host: Host, *texts: str) -> list[int]:
        """Return the processes of a host whose commands have the texts, but no paused ones."""
        return [pid for pid in with_command(host.processes(), *texts) if pid not in self._paused]
