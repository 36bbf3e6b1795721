"""End the process on SIGTERM and SIGINT: orderly, and within a time limit even if the job hangs."""

import os
import signal
import socket
import sys
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from types import FrameType
from typing import Final, Self

import structlog

from headwater.model.problems import Problem, ProblemCode

RESTART: Final = 75
"""The exit code of a job that may work when it is started again (EX_TEMPFAIL of sysexits.h)."""
_SIGNALS = (signal.SIGTERM, signal.SIGINT)
_REPORT_SECONDS = 5.0
_FORWARD_SECONDS = 0.2  # with `--live`, a thread of this process forwards standard error to the terminal

_log = structlog.get_logger(__name__)


class Termination:
    """A context in which SIGTERM and SIGINT stop the job, and end the process `seconds` later at the latest.

    Before `handling`, a signal raises `KeyboardInterrupt` in the main thread; the context ends it if the
    signal was SIGTERM. The time limit does not depend on the main thread, which may wait for an answer that
    never arrives: Python writes the number of a signal to a socket at once, and a thread reads it. Only the
    main thread gets signals; in another one the context has no effect.

    Args:
        name: of the job, for the error text.
        on_expiry: ends the processes that the job has started, when the time limit is over.
    """

    def __init__(self, name: str, seconds: float, on_expiry: Callable[[], None] = lambda: None) -> None:
        self.signal: signal.Signals | None = None
        self._name = name
        self._seconds = seconds
        self._on_expiry = on_expiry
        self._stop: Callable[[], None] | None = None
        self._received = threading.Event()
        self._has_begun = threading.Event()
        self._has_expired = threading.Event()
        self._expiry = threading.Lock()
        """Acquired when the first time limit is over: the stop and a part of it may have one each."""
        self._reader, self._writer = socket.socketpair()
        self._wakeup_before = -1
        self._handlers: dict[signal.Signals, object] = {}

    def __enter__(self) -> Self:
        if threading.current_thread() is threading.main_thread():
            self._handlers = {number: signal.getsignal(number) for number in _SIGNALS}
            self._install()
            self._writer.settimeout(0)  # `set_wakeup_fd` requires it
            self._wakeup_before = signal.set_wakeup_fd(self._writer.fileno(), warn_on_full_buffer=False)
            threading.Thread(target=self._watch, name="termination", daemon=True).start()
        return self

    def __exit__(self, kind: type[BaseException] | None, *_: object) -> bool:
        if self._handlers:
            signal.set_wakeup_fd(self._wakeup_before)
            for number, handler in self._handlers.items():
                signal.signal(number, handler)  # type: ignore[arg-type]  # what `getsignal` returned
        self._writer.close()
        self._end_if_expired()
        return kind is KeyboardInterrupt and self.signal is signal.SIGTERM

    @contextmanager
    def handling(self, stop: Callable[[], None]) -> Iterator[None]:
        """Call `stop` in a thread when a signal arrives, inside the block; signals after it have no effect.

        PySpark replaces the handler of SIGINT when it starts; this installs it again.
        """
        self._stop = stop
        if self._handlers:
            self._install()
        try:
            yield
        finally:
            self._stop = _nothing

    def is_requested(self, seconds: float = 0) -> bool:
        """Return whether a signal has arrived, or arrives within `seconds`."""
        return self._received.wait(seconds)

    def begin(self) -> None:
        """Start the time limit, after which the process ends with an error; it cannot be stopped."""
        if not self._has_begun.is_set():
            self._has_begun.set()
            self._timer().start()

    @contextmanager
    def limited(self) -> Iterator[None]:
        """Limit the time that the block takes; without a time limit for the rest of the process."""
        timer = self._timer()
        timer.start()
        try:
            yield
        finally:
            timer.cancel()
            self._end_if_expired()

    def _install(self) -> None:
        for number in _SIGNALS:
            signal.signal(number, self._handle)

    def _handle(self, number: int, _: FrameType | None) -> None:
        """Interrupt the main thread if no job runs. It must not log: this thread may be writing a line."""
        self.signal = self.signal or signal.Signals(number)
        if self._stop is None:
            raise KeyboardInterrupt

    def _watch(self) -> None:
        with self._reader:
            while number := self._reader.recv(1):
                if number[0] in _SIGNALS:
                    self._request(signal.Signals(number[0]))

    def _request(self, number: signal.Signals) -> None:
        if self._received.is_set():
            return
        self.signal = self.signal or number
        self._received.set()
        self.begin()
        if (stop := self._stop) is not None:
            _log.info("stopping", signal=number.name)
            stop()

    def _timer(self) -> threading.Timer:
        timer = threading.Timer(self._seconds, self._expire)
        timer.daemon = True
        return timer

    def _expire(self) -> None:
        """End the process. The report is limited, too: another thread may keep a lock that it needs."""
        if not self._expiry.acquire(blocking=False):
            return
        self._has_expired.set()
        report = threading.Thread(target=self._report, daemon=True)
        report.start()
        report.join(_REPORT_SECONDS)
        os._exit(RESTART)

    def _end_if_expired(self) -> None:
        """Leave the end of the process to `_expire`: ending what the job waits for has released the job."""
        if self._has_expired.is_set():
            threading.Event().wait()

    def _report(self) -> None:
        with suppress(Exception):
            self._on_expiry()
        from headwater.report.problem_output import print_problems  # noqa: PLC0415 - only when something is wrong

        with suppress(OSError):
            print_problems([not_stopped(self._name, self._seconds)])
            sys.stderr.flush()
        time.sleep(_FORWARD_SECONDS)


def not_stopped(name: str, seconds: float) -> Problem:
    """Return the problem that a job did not stop in time."""
    return Problem(
        code=ProblemCode.NOT_STOPPED,
        application=name,
        summary="The process was ended before it had stopped.",
        expected=f"an end within {seconds:g} s (--stop-timeout-ms)",
        found="a request to Spark, Kafka or user code that has not returned",
        why="Running transactions are aborted and repeated at the next start, as after SIGKILL.",
        fix="Start again: processing resumes where it stopped. If this happens repeatedly, check whether the "
        "brokers answer and whether the machine has enough memory.",
    )


def _nothing() -> None:
    """Do nothing: the job has ended."""
