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
from tests.runtime.spark.processes import all_ended, with_command

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
            if self._can_be_hit(process):
                self.cause(fault)
                if self.draw.random() > _IN_ONE_PASS:
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
            self._end_due_faults()
            return time.monotonic() >= due or process.poll() is not None

        assert until(is_over, seconds + _END_SECONDS)
        return process

    def cause(self, fault: Fault) -> None:
        """Cause a fault on one of the hosts; what ends it later happens while the command continues."""
        host = self.draw.choice(self._hosts_with_python() or self.cluster.workers)
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

    def _can_be_hit(self, process: "subprocess.Popen[bytes]") -> bool:
        """Wait until a task runs, or has run, in an executor; return False if the command has ended.

        On a busy machine, executors that are killed more often than they start execute nothing.
        """

        def has_python() -> bool:
            self._end_due_faults()
            is_on_spark = _FIRST_JOB in self.output()
            return process.poll() is not None or bool(self._hosts_with_python()) or not is_on_spark

        assert until(has_python, _END_SECONDS), self.output()[-6000:]
        return process.poll() is None

    def _await_progress(self, process: "subprocess.Popen[bytes]") -> None:
        """Wait until another pass begins: no command survives if each execution of a task is killed."""
        passes = self._passes()

        def has_continued() -> bool:
            self._end_due_faults()
            return process.poll() is not None or self._passes() > passes

        assert until(has_continued, _END_SECONDS), self.output()[-6000:]

    def _passes(self) -> int:
        """Return how many passes have begun, other than to repeat one."""
        found = [line for line in self.output().splitlines() if line.endswith(("tasks", "changelog"))]
        again = sum("checking entries of" in line for line in found)  # twice for each topic
        return len(set(found)) + again

    def _hosts_with_python(self) -> list[Host]:
        return [host for host in self.cluster.workers if self._find(host, *_PYTHON)]

    def end_faults(self) -> None:
        """End the faults that last, and wait until no process of an executor runs: none can write later."""
        for _, end in self._due:
            end()
        self._due.clear()
        paused = [*self._paused]
        assert until(lambda: all_ended(paused), _END_SECONDS), "a process that was paused does not end"

    def _end_due_faults(self) -> None:
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

    @staticmethod
    def _find(host: Host, *texts: str) -> list[int]:
        return with_command(host.processes(), *texts)
