"""Health follows progress: a real application whose worker or JVM hangs is neither ready nor live.

Starting an application takes ten seconds of CPU time, so the tests share one. The last test ends it. After a
test that failed, the next one starts another.
"""

import os
import re
import signal
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import ExitStack, closing, contextmanager, suppress
from typing import TYPE_CHECKING, Any

import attrs
import pytest

from headwater.toolchain.broker import local
from headwater.toolchain.broker.readiness import until
from tests.control.conftest import HttpClient
from tests.runtime.spark.kafka_topics import Topics
from tests.runtime.spark.process_application import kill
from tests.runtime.spark.processes import all_ended, descendants, jvm, python_workers
from tests.runtime.spark.programs import Application

if TYPE_CHECKING:
    import subprocess

pytestmark = [pytest.mark.broker, pytest.mark.spark, pytest.mark.slow, pytest.mark.timeout(900)]

_START_SECONDS = 240.0
_SECONDS = 120.0
_END_SECONDS = 120.0
_RESTART = 75
_RECORDS = 10
_FAILURE_SECONDS = 2.0
_ATTEMPTS = 10
_ANSWER_SECONDS = 30.0
"""An answer takes some milliseconds, but longer on a busy machine; one that asks the JVM never arrives."""


@attrs.frozen
class Running:
    """An application in a process that the tests share, and its endpoint."""

    application: Application
    process: "subprocess.Popen[bytes]"
    client: HttpClient

    @property
    def pid(self) -> int:
        return self.process.pid

    def is_healthy(self) -> bool:
        """Return whether the process runs, is live and ready; after a failed test, that may take a while."""

        def is_known() -> bool:
            with suppress(OSError):  # it may end just now
                return self.process.poll() is not None or self.answers(200)
            return False

        return until(is_known, _SECONDS) and self.process.poll() is None

    def answers(self, status: int) -> bool:
        return {self.client.get(f"/health/{path}").status for path in ("live", "ready")} == {status}

    def reason(self) -> str:
        return str(self.client.get("/health/live").json["reason"])

    def subtopologies(self) -> list[dict[str, Any]]:
        return list(self.client.get("/status").json["runtime"]["subtopologies"])

    def timed(self, path: str) -> str:
        """Return the answer, which must arrive at once."""
        begin = time.monotonic()
        text = self.client.get(path).text
        assert time.monotonic() - begin < _ANSWER_SECONDS, path
        return text

    def has_read(self, records: Sequence[int]) -> bool:
        """Return whether the sub-topologies have read at least as many records, and there are no others."""
        parts = self.subtopologies()
        return all(
            part["recordsRead"] >= least and part["lag"] == 0
            for part, least in zip(parts, records, strict=True)
        )

    def put_and_await(self) -> None:
        """Write records and wait until all sub-topologies have processed them."""
        expected = [part["recordsRead"] + _RECORDS for part in self.subtopologies()]
        self.application.put(_RECORDS)
        assert until(lambda: self.has_read(expected), _SECONDS), self.client.get("/status").text

    @contextmanager
    def stopped(self, pids: Sequence[int]) -> Iterator[None]:
        """Stop processes, and let them continue after the block."""
        for pid in pids:
            with suppress(ProcessLookupError):  # a worker that Spark has ended meanwhile
                os.kill(pid, signal.SIGSTOP)
        try:
            yield
        finally:
            for pid in pids:
                with suppress(ProcessLookupError):
                    os.kill(pid, signal.SIGCONT)


@attrs.define
class _Shared:
    """The application that the tests share."""

    start: Callable[[ExitStack], Running]
    running: Running | None = None
    _processes: ExitStack = attrs.field(factory=ExitStack)

    def healthy(self) -> Running:
        """Return the application; start another one if an earlier test has ended or damaged it."""
        if self.running is None or not self.running.is_healthy():
            self.close()
            self.running = self.start(self._processes)
        return self.running

    def close(self) -> None:
        self.running = None
        self._processes.close()


@pytest.fixture(scope="module")
def shared(
    kafka: local.LocalBroker,
    spark_jars: tuple[str, ...],
    tmp_path_factory: pytest.TempPathFactory,
    unique: Callable[[str], str],
) -> Iterator[_Shared]:
    servers = kafka.bootstrap_servers

    def start(processes: ExitStack) -> Running:
        folder = tmp_path_factory.mktemp("health")
        application = Application(Topics(servers), servers, ",".join(spark_jars), folder, unique("app"))
        application.prepare("automatic", "max.poll.interval.ms: 4000")
        command = [*application.headwater_run(), "--http", "127.0.0.1:0", "--log-format", "json"]
        command += ["--stop-timeout-ms", "3000"]
        process = processes.enter_context(application.process(command, "one"))
        assert until(lambda: application.endpoint("one"), _START_SECONDS), application.log("one")
        started = Running(application, process, HttpClient(application.endpoint("one")))
        is_ready = until(lambda: started.client.get("/health/ready").status == 200, _START_SECONDS)
        assert is_ready, application.log("one")
        return started

    with closing(_Shared(start)) as created:
        yield created


@pytest.fixture
def running(shared: _Shared) -> Running:
    return shared.healthy()


def test_application_whose_worker_hangs_is_not_healthy_until_it_continues(running: Running) -> None:
    running.put_and_await()  # starts the workers
    workers = python_workers(running.pid)
    assert workers
    with running.stopped(workers):
        running.application.put(_RECORDS)
        assert until(lambda: running.answers(503), _SECONDS)
        assert "has made no progress for" in running.reason()
        waiting = [part["waitsFor"] for part in running.subtopologies() if part["stalled"]]
        assert waiting
        assert all(str(text).startswith("batch ") for text in waiting)
    assert until(lambda: running.answers(200), _SECONDS), running.client.get("/status").text


def test_application_whose_jvm_hangs_is_not_healthy_until_it_continues(running: Running) -> None:
    with running.stopped([jvm(running.pid)]):
        running.application.put(_RECORDS)
        assert until(lambda: running.answers(503), _SECONDS)
        assert "It waits for" in running.reason()
    assert until(lambda: running.answers(200), _SECONDS), running.client.get("/status").text


def test_endpoint_answers_at_once_while_the_jvm_hangs_after_a_java_error(running: Running) -> None:
    """The text of a Java error is asked of the JVM; a stall is reported just then.

    The failed query may wait for its restart, or run as long as the JVM has not reported its end.
    """
    running.put_and_await()
    for _ in range(_ATTEMPTS):
        assert until(lambda: _fail_with_java_error(running), _SECONDS), running.application.log("one")
        with running.stopped([jvm(running.pid)]):
            failed = [part["failure"] for part in running.subtopologies() if part["failure"]]
            if not failed:  # a batch has succeeded before the JVM stopped
                continue
            _check_answers(running, failed)
            break
    else:
        pytest.fail("a batch has succeeded after each failure")
    assert until(lambda: running.answers(200), _SECONDS), running.client.get("/status").text


def _check_answers(running: Running, failed: Sequence[str]) -> None:
    assert all("org.apache.spark" in text or "Python worker" in text for text in failed), failed
    running.application.put(_RECORDS)
    assert until(lambda: "headwater_runtime_stalled" in running.timed("/metrics"), _SECONDS)
    assert until(lambda: re.search(r"runtime_stalled{.*} 1[.]0", running.timed("/metrics")), _SECONDS)
    for path in ("/status", "/health/live", "/health/ready", "/control/threads", "/control/processors"):
        running.timed(path)


def _fail_with_java_error(running: Running) -> bool:
    """Kill workers again and again while batches run; return whether a query has failed."""
    running.application.put(_RECORDS)

    def fails() -> bool:
        for worker in python_workers(running.pid):
            kill(worker)
        return any(part["failure"] for part in running.subtopologies())

    return until(fails, _FAILURE_SECONDS)


def test_application_without_input_stays_healthy(running: Running) -> None:
    running.put_and_await()
    assert not until(lambda: not running.answers(200), 8.0), running.reason()


def test_sigterm_ends_a_process_whose_jvm_hangs(running: Running) -> None:
    started = list(descendants(running.pid))
    os.kill(jvm(running.pid), signal.SIGSTOP)
    running.process.send_signal(signal.SIGTERM)
    assert running.process.wait(_END_SECONDS) == _RESTART
    assert until(lambda: all_ended(started), _END_SECONDS)
    log = running.application.log("one")
    assert "error[NotStopped] The process was ended before it had stopped." in log
