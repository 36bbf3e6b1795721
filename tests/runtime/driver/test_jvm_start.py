"""Spark's JVM starts in a thread, and a start that fails or is interrupted leaves no process behind."""

import subprocess
import sys
import threading
from pathlib import Path

import pytest

from headwater.toolchain.broker.readiness import until
from headwater_spark.driver.spark_session.jvm import JvmStart
from tests.runtime.spark.processes import is_running

_WAITING = (sys.executable, "-c", "import sys; sys.stdin.read()")
_IGNORING_SIGTERM = ("bash", "-c", "trap '' TERM; echo ready; read")
_DELETING = """
import pathlib, signal, sys
file = pathlib.Path(sys.argv[1])
file.touch()
signal.signal(signal.SIGTERM, lambda *_: sys.exit(f"deleted: {file.unlink()}"))
print("ready", flush=True)
sys.stdin.read()
"""
# `spark-submit` is a script: when it is killed, the Java that it has started would remain.
_WITH_A_HANGING_CHILD = ("bash", "-c", "sleep 600 & kill -STOP $!; echo $!; wait")

only_linux = pytest.mark.skipif(
    not Path("/proc/self/task").is_dir(), reason="only Linux lists child processes"
)


class Launch:
    """Starts a process instead of a JVM, and waits for its end if `answers` is false."""

    def __init__(self, command: tuple[str, ...], *, answers: bool = False) -> None:
        self._command, self._answers = command, answers
        self.is_started = threading.Event()
        self.process: subprocess.Popen[str]

    def __call__(self) -> None:
        self.process = subprocess.Popen(
            self._command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True
        )
        self.is_started.set()
        if not self._answers:
            self.process.wait()
            raise RuntimeError("it has ended")

    def exit_code(self) -> int:
        with self.process as process:
            return process.wait(60)


def _fail(launch: Launch, failure: BaseException) -> None:
    with JvmStart(launch):
        assert launch.is_started.wait(60)
        raise failure


@only_linux
@pytest.mark.parametrize("failure", [KeyboardInterrupt(), ValueError()])
@pytest.mark.parametrize("answers", [False, True])
def test_failed_start_ends_its_own_processes_only(failure: BaseException, *, answers: bool) -> None:
    launch = Launch(_WAITING, answers=answers)
    with subprocess.Popen(_WAITING, stdin=subprocess.PIPE) as older:
        with pytest.raises(type(failure)):
            _fail(launch, failure)
        assert launch.exit_code() != 0
        assert older.poll() is None


@only_linux
@pytest.mark.parametrize("failure", [KeyboardInterrupt(), ValueError()])
@pytest.mark.parametrize("answers", [False, True])
def test_ended_process_can_delete_its_temporary_files(
    tmp_path: Path, failure: BaseException, *, answers: bool
) -> None:
    file = tmp_path / "file"
    launch = Launch((sys.executable, "-c", _DELETING, str(file)), answers=answers)

    def fail() -> None:
        with JvmStart(launch):
            assert launch.is_started.wait(60)
            assert launch.process.stdout is not None
            assert launch.process.stdout.readline()
            assert file.exists()
            raise failure

    with pytest.raises(type(failure)):
        fail()
    assert launch.exit_code() != 0
    assert not file.exists()


@only_linux
def test_process_that_is_started_late_is_ended_too() -> None:
    released = threading.Event()
    launch = Launch(_WAITING)

    def launch_late() -> None:
        released.wait(60)
        launch()

    def be_interrupted() -> None:
        with JvmStart(launch_late):
            threading.Timer(0.1, released.set).start()  # while the context ends
            raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        be_interrupted()
    assert launch.exit_code() != 0


@only_linux
def test_interrupt_kills_children_of_children_that_hang() -> None:
    launch = Launch(_WITH_A_HANGING_CHILD)
    pids = []

    def be_interrupted() -> None:
        with JvmStart(launch):
            assert launch.is_started.wait(60)
            assert launch.process.stdout is not None
            pids.append(int(launch.process.stdout.readline()))
            raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        be_interrupted()
    assert launch.exit_code() != 0
    assert until(lambda: not is_running(pids[0]), 60)


@only_linux
def test_process_that_ignores_sigterm_is_killed() -> None:
    launch = Launch(_IGNORING_SIGTERM)

    def fail() -> None:
        with JvmStart(launch):
            assert launch.is_started.wait(60)
            assert launch.process.stdout is not None
            assert launch.process.stdout.readline()
            raise ZeroDivisionError

    with pytest.raises(ZeroDivisionError):
        fail()
    assert launch.exit_code() != 0


def test_processes_keep_running_after_a_successful_start() -> None:
    launch = Launch(_WAITING, answers=True)
    with JvmStart(launch) as jvm:
        jvm.wait()
    with launch.process as started:
        assert started.poll() is None


def test_failure_of_the_launch_is_raised() -> None:
    launch = Launch(("false",))
    with JvmStart(launch) as jvm, pytest.raises(RuntimeError, match="it has ended"):
        jvm.wait()
    assert launch.exit_code() != 0
