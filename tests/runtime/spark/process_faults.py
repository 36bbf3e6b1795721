"""Faults of the processes of an application, and of its broker."""

import random
import shutil
import time
from enum import Enum
from typing import TYPE_CHECKING

from headwater.toolchain.broker.readiness import until
from tests.runtime.spark.process_application import ProcessApplication, kill, kill_all, kill_worker
from tests.runtime.spark.processes import all_ended, descendants, executors, jvm

if TYPE_CHECKING:
    import subprocess

RESTART = 75
"""The exit code of a driver whose JVM is gone."""
_JVM_SECONDS = 60.0
"""How long the driver may run without its JVM, on a busy machine."""


class Fault(Enum):
    DRIVER = "the driver's process group is killed"
    DISK = "the driver's process group is killed, and its checkpoint and state are lost"
    JVM = "the JVM is killed alone"
    JVM_AND_DISK = "the JVM is killed alone, and the checkpoint and state of its driver are lost"
    WORKER = "a Python worker is killed"
    EXECUTOR = "an executor is killed"
    BROKER_KILL = "the broker is killed and started"
    BROKER_PAUSE = "the broker is paused"


def cause_fault(
    fault: Fault, application: ProcessApplication, process: "subprocess.Popen[bytes]", draw: random.Random
) -> None:
    """Cause a fault; a broker that was killed or paused runs again when this returns."""
    match fault:
        case Fault.DRIVER:
            kill_all(process)
        case Fault.DISK:
            kill_all(process)
            _lose_disk(application)
        case Fault.JVM:
            _kill_jvm(application, process)
        case Fault.JVM_AND_DISK:
            _kill_jvm(application, process)
            _lose_disk(application)
        case Fault.WORKER:
            kill_worker(process)
        case Fault.EXECUTOR:
            found = until(lambda: any(map(kill, executors(process.pid)[:1])), _JVM_SECONDS)
            assert found, application.log()
        case Fault.BROKER_KILL:
            application.broker.kill()
            application.broker.start()
        case Fault.BROKER_PAUSE:
            application.broker.pause()
            time.sleep(draw.uniform(0.5, 12))
            application.broker.resume()


def _lose_disk(application: ProcessApplication) -> None:
    for name in ("checkpoint", "state"):
        shutil.rmtree(application.folder / name)


def _kill_jvm(application: ProcessApplication, process: "subprocess.Popen[bytes]") -> None:
    """Kill the JVM; the driver ends with a problem and an exit code, and no process is left."""
    started, logged = [process.pid, *descendants(process.pid)], application.log_size()
    assert kill(jvm(process.pid))
    assert process.wait(_JVM_SECONDS) == RESTART, application.log()
    assert until(lambda: all_ended(started), _JVM_SECONDS)
    report = application.log(logged)
    assert "error[SparkEnded] Spark's JVM has ended." in report, report
    assert "killed by SIGKILL" in report, report
    assert "Traceback" not in report, report
