"""The process of Spark's JVM: it starts while Python imports the driver, and ends with a start that fails."""

import os
import signal
import subprocess
import threading
import time
from collections.abc import Callable, Iterable
from contextlib import suppress
from pathlib import Path
from typing import Self

from headwater_spark.spark_internals.jvm import jvm_process

_END_SECONDS = 2.0
_POLL_SECONDS = 0.02


class JvmStart:
    """A context in which Spark's JVM starts in a thread, while this one imports and checks.

    If the block ends before `wait` was called, or by an interrupt, the processes that the thread has started
    are ended (on Linux only). PySpark waits for a file from its JVM. If it stops waiting, it deletes the
    file's folder. The JVM cannot write the file any more, and then never starts to check whether Python is
    still running.

    Args:
        launch: Starts the JVM and waits until it answers.
    """

    def __init__(self, launch: Callable[[], None]) -> None:
        self._launch = launch
        self._failure: BaseException | None = None
        self._started: tuple[int, ...] = ()
        """The processes that the thread had started when it ended."""
        self._is_awaited = False
        self._thread = threading.Thread(target=self._run, name="jvm-start", daemon=True)

    def __enter__(self) -> Self:
        self._thread.start()
        return self

    def __exit__(self, kind: type[BaseException] | None, *_: object) -> None:
        if kind is KeyboardInterrupt:
            self._end(signal.SIGKILL)  # a process that hangs ignores SIGTERM
        elif not self._is_awaited:
            self._end(signal.SIGTERM)

    def wait(self) -> None:
        """Wait until the JVM answers; raise what `launch` raised."""
        self._thread.join()
        self._is_awaited = True
        if self._failure is not None:
            raise self._failure

    def _run(self) -> None:
        try:
            self._launch()
        except BaseException as error:  # noqa: BLE001 - raised again by `wait`
            self._failure = error
        self._started = _children(f"/proc/self/task/{threading.get_native_id()}")

    def _end(self, number: signal.Signals) -> None:
        """Signal the processes until the thread ends, which may start others meanwhile."""
        deadline = time.monotonic() + _END_SECONDS
        while self._thread.is_alive():
            _signal(_children(f"/proc/self/task/{self._thread.native_id}"), number)
            self._thread.join(_POLL_SECONDS)
            if time.monotonic() > deadline:
                number = signal.SIGKILL
        _signal(self._started, number)


def kill_jvm() -> None:
    """Kill the JVM that this process has started; with `spark-submit`, the JVM has started this process."""
    if (jvm := jvm_process()) is not None:
        jvm.kill()


def jvm_end() -> str:
    """Return how the JVM ended, as a phrase."""
    code = None
    if (jvm := jvm_process()) is not None:
        with suppress(subprocess.TimeoutExpired):
            code = jvm.wait(_END_SECONDS)
    match code:
        case None:
            return "the connection to its gateway was closed"
        case int() if code < 0:
            return f"killed by {signal.Signals(-code).name}"
        case _:
            return f"exit code {code}"


def _signal(processes: Iterable[int], number: signal.Signals) -> None:
    """Signal processes and their descendants: `spark-submit` is a script that starts Java."""
    for process in processes:
        children = [child for task in Path(f"/proc/{process}/task").glob("*") for child in _children(task)]
        with suppress(ProcessLookupError):
            os.kill(process, number)
        _signal(children, number)


def _children(task: Path | str) -> tuple[int, ...]:
    """Return the child processes of a thread; `task` is its folder in /proc."""
    try:
        return tuple(map(int, Path(task, "children").read_text(encoding="ascii").split()))
    except OSError:
        return ()
