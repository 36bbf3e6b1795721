"""Signals end a process: orderly if it can, and within its time limit if it cannot."""

import signal
import socket
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

from headwater.command_line import RESTART, GatewayWatch
from headwater.toolchain.broker.readiness import until

_ROOT = Path(__file__).parents[2]
_SECONDS = 60
_HEAD = """
import ctypes, sys, threading, time
from headwater.command_line import Termination, termination as module
from headwater.control.logs import configure_log
configure_log()
module._REPORT_SECONDS = 60.0  # a busy machine imports the modules of the report slowly
lock = ctypes.create_string_buffer(64)
def block():
    "Wait for a mutex that this thread has: no signal handler of Python runs any more."
    libc = ctypes.CDLL(None)
    libc.pthread_mutex_lock(lock)
    print("ready", flush=True)
    libc.pthread_mutex_lock(lock)
stop, released, ended = threading.Event(), threading.Event(), threading.Event()
def release():
    "Let the job end, and give it the time to do so."
    released.set()
    ended.wait(1)
with Termination("job", LIMIT, on_expiry=release) as termination:
"""
_ORDERLY = """
    with termination.handle_signals(stop.set):
        print("ready", flush=True)
        stop.wait()
print("stopped", termination.signal.name, flush=True)
"""
_EARLY = """
    print("ready", flush=True)
    time.sleep(600)
print("stopped", termination.signal.name, flush=True)
"""
_DEAF = """
    with termination.handle_signals(lambda: print("asked", flush=True)):
        block()
"""
_DEAF_BLOCK = """
    with termination.handle_signals(lambda: print("asked", flush=True)), termination.limit_time():
        block()
"""
_LATE = """
    with termination.handle_signals(stop.set):
        print("ready", flush=True)
        stop.wait()
threading.Thread(target=block).start()  # keeps the interpreter from ending
"""
_SLOW_END = """
    with termination.limit_time():
        block()
"""
_RELEASED = """
    with termination.handle_signals(stop.set):
        print("ready", flush=True)
        released.wait()
ended.set()
"""
_RELEASED_BLOCK = """
    print("ready", flush=True)
    with termination.limit_time():
        released.wait()
    ended.set()
"""
_UNLIMITED = """
    with termination.limit_time():
        pass
    print("ready", flush=True)
    time.sleep(3 * LIMIT)
print("ended", flush=True)
"""


@contextmanager
def _process(code: str, limit: float = 0.5) -> Iterator["subprocess.Popen[str]"]:
    text = (_HEAD + code).replace("LIMIT", str(limit))
    with subprocess.Popen(
        [sys.executable, "-c", text],
        cwd=_ROOT,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
    ) as process:
        try:
            assert process.stdout is not None
            assert process.stdout.readline() == "ready\n"
            yield process
        finally:
            process.kill()


@pytest.mark.parametrize("code", [_ORDERLY, _EARLY])
@pytest.mark.slow
def test_sigterm_stops_the_job_orderly(code: str) -> None:
    with _process(code, limit=60) as process:
        process.send_signal(signal.SIGTERM)
        output, _ = process.communicate(timeout=_SECONDS)
    assert (process.returncode, output) == (0, "stopped SIGTERM\n")


@pytest.mark.slow
def test_ctrl_c_before_the_job_runs_is_an_interruption() -> None:
    with _process(_EARLY, limit=60) as process:
        process.send_signal(signal.SIGINT)
        _, errors = process.communicate(timeout=_SECONDS)
    assert process.returncode != 0
    assert "KeyboardInterrupt" in errors


@pytest.mark.parametrize(
    ("code", "number"), [(_DEAF, signal.SIGTERM), (_DEAF, signal.SIGINT), (_DEAF_BLOCK, signal.SIGTERM)]
)
@pytest.mark.slow
def test_a_job_that_hangs_in_foreign_code_ends_within_its_limit(code: str, number: signal.Signals) -> None:
    with _process(code) as process:
        process.send_signal(number)
        output, errors = process.communicate(timeout=_SECONDS)
    assert (process.returncode, output) == (RESTART, "asked\n")
    assert errors.count("error[NotStopped] The process was ended before it had stopped.") == 1
    assert "an end within 0.5 s (--stop-timeout-ms)" in errors


@pytest.mark.slow
def test_the_limit_holds_until_the_process_has_ended() -> None:
    with _process(_LATE) as process:
        process.send_signal(signal.SIGTERM)
        assert process.wait(_SECONDS) == RESTART


@pytest.mark.slow
def test_a_block_can_be_limited_without_a_signal() -> None:
    with _process(_SLOW_END) as process:
        assert process.wait(_SECONDS) == RESTART


@pytest.mark.parametrize(("code", "number"), [(_RELEASED, signal.SIGTERM), (_RELEASED_BLOCK, None)])
@pytest.mark.slow
def test_a_job_that_the_expiry_releases_ends_with_its_error(code: str, number: signal.Signals | None) -> None:
    """Killing the JVM releases a job that waits for it, while the error is still to be printed."""
    with _process(code) as process:
        if number is not None:
            process.send_signal(number)
        _, errors = process.communicate(timeout=_SECONDS)
    assert process.returncode == RESTART
    assert "error[NotStopped]" in errors


@pytest.mark.slow
def test_the_limit_of_a_block_ends_with_it() -> None:
    with _process(_UNLIMITED) as process:
        output, _ = process.communicate(timeout=_SECONDS)
    assert (process.returncode, output) == (0, "ended\n")


def test_closed_connection_is_the_end_of_the_gateway() -> None:
    with socket.create_server(("127.0.0.1", 0)) as server:
        ended: list[str] = []
        with GatewayWatch(server.getsockname()[1]) as gateway:
            gateway.on_end(lambda: ended.append("ended"))
            connection, _ = server.accept()
            assert not gateway.has_ended()
            connection.close()
            assert gateway.has_ended(_SECONDS)
            assert until(lambda: ended == ["ended"], _SECONDS)
            gateway.on_end(lambda: ended.append("late"))
            assert ended == ["ended", "late"]


def test_closed_watch_reports_no_end() -> None:
    with socket.create_server(("127.0.0.1", 0)) as server:
        with GatewayWatch(server.getsockname()[1]) as gateway:
            connection, _ = server.accept()
        with connection:
            assert connection.recv(1) == b""
        assert not gateway.has_ended(0.1)


def test_refused_connection_is_the_end_of_the_gateway() -> None:
    with socket.create_server(("127.0.0.1", 0)) as server:
        port = server.getsockname()[1]
    with GatewayWatch(port) as gateway:
        assert gateway.has_ended(_SECONDS)
