"""The process of Spark's JVM: its start while Python imports the driver, its end, and whether it answers."""

import os
import signal
import subprocess
import threading
import time
from collections.abc import Callable, Iterable
from contextlib import suppress
from pathlib import Path
from threading import Event, Thread
from typing import Self

import attrs
import structlog

from headwater_spark.spark_internals.jvm import jvm_process

_log = structlog.get_logger(__name__)
_END_SECONDS = 2.0
_POLL_SECONDS = 0.02
_INTERVAL_SECONDS = 1.0
_ASK_SECONDS = 0.5
"""Less than the interval: an answer arrives between two observations."""
_LONGEST_STEP_SECONDS = 2.0
"""More time between two observations is not counted: the process itself was paused."""
_LOGGED_SECONDS = 5.0


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
        if kind is KeyboardInterrupt or not self._is_awaited:
            self._end()

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
        self._started = _child_processes(f"/proc/self/task/{threading.get_native_id()}")

    def _end(self) -> None:
        """End the processes of the thread, which may start others meanwhile.

        Java deletes its temporary files on SIGTERM. A process that hangs ignores SIGTERM, and is killed.
        """
        deadline = time.monotonic() + _END_SECONDS
        signaled: set[int] = set()
        while self._thread.is_alive():
            number = signal.SIGTERM if time.monotonic() < deadline else signal.SIGKILL
            children = _child_processes(f"/proc/self/task/{self._thread.native_id}")
            signaled |= _signal_processes(children, number)
            self._thread.join(_POLL_SECONDS)
        signaled |= _signal_processes(self._started, signal.SIGTERM)
        while any(map(_is_running, signaled)) and time.monotonic() < deadline:
            time.sleep(_POLL_SECONDS)
        _signal_processes(filter(_is_running, signaled), signal.SIGKILL)


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


def _signal_processes(processes: Iterable[int], number: signal.Signals) -> set[int]:
    """Signal and return processes and their descendants: `spark-submit` is a script that starts Java."""
    signaled: set[int] = set()
    for process in processes:
        children = [
            child for task in Path(f"/proc/{process}/task").glob("*") for child in _child_processes(task)
        ]
        with suppress(ProcessLookupError):
            os.kill(process, number)
        signaled |= {process, *_signal_processes(children, number)}
    return signaled


def _is_running(process: int) -> bool:
    try:
        stat = Path(f"/proc/{process}/stat").read_text(encoding="utf-8", errors="replace")
    except OSError:
        return False
    return not stat.rpartition(") ")[2].startswith("Z")  # a zombie has ended


def _child_processes(task: Path | str) -> tuple[int, ...]:
    """Return the child processes of a thread; `task` is its folder in /proc."""
    try:
        return tuple(map(int, Path(task, "children").read_text(encoding="ascii").split()))
    except OSError:
        return ()


@attrs.define(kw_only=True, eq=False)
class JvmWatch:
    """One thread calls `run`, any thread reads `silent_seconds`. `ask` returns an answer of the JVM."""

    _ask: Callable[[], object]
    _clock: Callable[[], float] = time.monotonic
    silent_seconds: float = attrs.field(default=0.0, init=False)
    """How long the JVM has not answered; 0 = it answers."""
    _answers: int = attrs.field(default=0, init=False)
    _observed: int = attrs.field(default=0, init=False)
    _at: float = attrs.field(init=False)

    def __attrs_post_init__(self) -> None:
        self._at = self._clock()

    def run(self, stopping: Event) -> None:
        """Observe the JVM until `stopping` is set; never waits for an answer."""
        # One thread: each thread has a connection of its own. One without an answer ends with the process.
        Thread(target=self._ask_repeatedly, args=(stopping,), name="jvm-answers", daemon=True).start()
        while not stopping.wait(_INTERVAL_SECONDS):
            self.observe()

    def observe(self) -> None:
        """Count the time since the last answer."""
        now = self._clock()
        step, self._at = min(now - self._at, _LONGEST_STEP_SECONDS), now
        has_answered, self._observed = self._observed != self._answers, self._answers
        before = self.silent_seconds
        self.silent_seconds = 0.0 if has_answered else before + step
        if before < _LOGGED_SECONDS <= self.silent_seconds:
            _log.warning("Spark's JVM does not answer", seconds=round(self.silent_seconds))

    def _ask_repeatedly(self, stopping: Event) -> None:
        while not stopping.wait(_ASK_SECONDS):
            with suppress(Exception):  # an error is an answer; the JVM's end is noticed elsewhere (`gateway`)
                self._ask()
            self._answers += 1
