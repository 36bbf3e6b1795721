"""How a process ends: on signals, after problems, and with Spark's JVM."""

import gc
import os
import signal
import socket
import sys
import threading
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from pathlib import Path
from types import FrameType
from typing import Final, Self

import click
import structlog

from headwater.model.problems import Problem, ProblemCode, ProblemsError

RESTART: Final = 75
"""The exit code of a job that may work when it is started again (EX_TEMPFAIL of sysexits.h)."""
_SIGNALS = (signal.SIGTERM, signal.SIGINT)
_REPORT_SECONDS = 5.0
_FORWARD_SECONDS = 0.2
"""With `--live`, a thread of this process forwards standard error to the terminal."""

_log = structlog.get_logger(__name__)


class Termination:
    """A context in which SIGTERM and SIGINT stop the job, and end the process `seconds` later at the latest.

    Before `handle_signals`, a signal raises `KeyboardInterrupt` in the main thread; the context ends it if
    the signal was SIGTERM. The time limit does not depend on the main thread, which may wait for an answer
    that never arrives: Python writes the number of a signal to a socket at once, and a thread reads it. Only
    the main thread gets signals; in another one the context has no effect.

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
            self._install_handlers()
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
    def handle_signals(self, stop: Callable[[], None]) -> Iterator[None]:
        """Call `stop` in a thread when a signal arrives, inside the block; signals after it have no effect.

        PySpark replaces the handler of SIGINT when it starts; this installs it again.
        """
        self._stop = stop
        if self._handlers:
            self._install_handlers()
        try:
            yield
        finally:
            self._stop = _do_nothing

    def is_requested(self, seconds: float = 0) -> bool:
        """Return whether a signal has arrived, or arrives within `seconds`."""
        return self._received.wait(seconds)

    def begin(self) -> None:
        """Start the time limit, after which the process ends with an error; it cannot be stopped."""
        if not self._has_begun.is_set():
            self._has_begun.set()
            self._start_timer().start()

    @contextmanager
    def limit_time(self) -> Iterator[None]:
        """Limit the time that the block takes; without a time limit for the rest of the process."""
        timer = self._start_timer()
        timer.start()
        try:
            yield
        finally:
            timer.cancel()
            self._end_if_expired()

    def _install_handlers(self) -> None:
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

    def _start_timer(self) -> threading.Timer:
        timer = threading.Timer(self._seconds, self._end_process)
        timer.daemon = True
        return timer

    def _end_process(self) -> None:
        """End the process. The report is limited, too: another thread may keep a lock that it needs."""
        if not self._expiry.acquire(blocking=False):
            return
        self._has_expired.set()
        report = threading.Thread(target=self._report, daemon=True)
        report.start()
        report.join(_REPORT_SECONDS)
        os._exit(RESTART)

    def _end_if_expired(self) -> None:
        """Leave the end to `_end_process`: ending what the job waits for has released the job."""
        if self._has_expired.is_set():
            threading.Event().wait()

    def _report(self) -> None:
        with suppress(Exception):
            self._on_expiry()
        from headwater.report.problems import print_problems  # noqa: PLC0415 - only when something is wrong

        with suppress(OSError):
            print_problems([_not_stopped(self._name, self._seconds)])
            sys.stderr.flush()
        time.sleep(_FORWARD_SECONDS)


def _not_stopped(name: str, seconds: float) -> Problem:
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


def _do_nothing() -> None:
    """Do nothing: the job has ended."""


_FAILED = 1
_USAGE = 64
_INTERRUPTED = 130


def run_program(command: click.Command, arguments: Sequence[str] | None = None) -> int:
    """Run a job as a program of its own and return the exit code.

    Problems go to standard error. Exit code 0: stopped, or done; 1: problems; 64: invalid command line; 75:
    Spark ended, start the job again; 130: interrupted before the job ran.
    """
    name = Path(sys.argv[0]).name if arguments is None else command.name
    try:
        code = command.main(arguments, prog_name=name, standalone_mode=False)
    except click.ClickException as error:
        with _reader_may_be_gone():
            error.show()
        return _USAGE if isinstance(error, click.UsageError) else error.exit_code
    except (click.Abort, KeyboardInterrupt):
        with _reader_may_be_gone():
            click.echo("Interrupted.", err=True)
        return _INTERRUPTED
    except ProblemsError as error:
        from headwater.report.problems import print_problems  # noqa: PLC0415 - only when something is wrong

        with suppress(OSError):  # with `spark-submit`, a JVM that has ended was the reader
            print_problems(error.problems)
        return RESTART if error.is_temporary else _FAILED
    finally:
        # The garbage collections at the end of the process take a tenth of a second and free nothing.
        gc.freeze()
    return code if isinstance(code, int) else 0


@contextmanager
def _reader_may_be_gone() -> Iterator[None]:
    """Discard what is written to standard error if it has no reader: the exit code stays the same."""
    try:
        yield
    except BrokenPipeError:
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stderr.fileno())


_LOCAL = "127.0.0.1"
_PORT_VARIABLE = "PYSPARK_GATEWAY_PORT"
_CONNECT_SECONDS = 10.0


class GatewayWatch:
    """Keeps a connection to Spark's gateway, which the operating system closes when the JVM ends.

    A JVM that hangs keeps the connection. The gateway reads nothing from it: a command must begin with its
    secret.
    """

    def __init__(self, port: int) -> None:
        self._port = port
        self._ended = threading.Event()
        self._lock = threading.Lock()
        self._on_end: Callable[[], None] | None = None
        self._connection: socket.socket | None = None
        self._is_closed = False

    def __enter__(self) -> Self:
        threading.Thread(target=self._watch, name="gateway", daemon=True).start()
        return self

    def __exit__(self, *_: object) -> None:
        with self._lock:
            self._is_closed = True
            connection = self._connection
        if connection is not None:
            with suppress(OSError):  # the gateway, or the thread below, has closed it
                connection.shutdown(socket.SHUT_RDWR)

    def has_ended(self, seconds: float = 0) -> bool:
        """Return whether the JVM has ended, or ends within `seconds`."""
        return self._ended.wait(seconds)

    def on_end(self, call: Callable[[], None]) -> None:
        """Call `call` when the JVM ends, in a thread; at once if it has ended."""
        with self._lock:
            self._on_end = call
            is_late = self._ended.is_set()
        if is_late:
            call()

    def _watch(self) -> None:
        try:
            with socket.create_connection((_LOCAL, self._port), _CONNECT_SECONDS) as connection:
                connection.settimeout(None)
                with self._lock:
                    self._connection = connection
                while not self._is_closed and connection.recv(1):
                    pass
        except OSError:
            pass  # refused or reset
        with self._lock:
            if self._is_closed:
                return
            self._ended.set()
            call = self._on_end
        if call is not None:
            call()


def gateway_port_of(environment: Mapping[str, str]) -> int | None:
    """Return the port of the gateway if `spark-submit` has started this process."""
    port = environment.get(_PORT_VARIABLE, "")
    return int(port) if port.isascii() and port.isdigit() else None


def spark_ended(name: str, found: str) -> Problem:
    """Return the problem that Spark's JVM has ended; `found` says how."""
    return Problem(
        code=ProblemCode.SPARK_ENDED,
        application=name,
        summary="Spark's JVM has ended.",
        expected="a JVM that runs as long as the application",
        found=found,
        why="Spark processes no records without it. No record is lost: uncommitted transactions are aborted.",
        fix="Start again: processing resumes where it stopped. If the operating system has killed the JVM "
        "for lack of memory (its log says so), add memory or reduce spark.driver.memory, --max-records and "
        "--max-bytes.",
    )
