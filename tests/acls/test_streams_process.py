"""A JVM that does not end a run is replaced, so later runs do not fail."""

import os
import signal
from collections.abc import Iterator

import pytest

from tests.acls.streams_process import _END_SECONDS, StreamsProcess

pytestmark = [pytest.mark.oracle, pytest.mark.slow]

_DOCUMENT = {
    "application": {"id": "ended"},
    "topology": [{"stream": {"topic": "in"}}, {"to": {"topic": "out"}}],
}
_INVALID = {"bootstrap.servers": "127.0.0.1:1", "processing.guarantee": "never"}


@pytest.fixture(scope="module")
def process() -> Iterator[StreamsProcess]:
    process = StreamsProcess()
    yield process
    process.close()


def pid_of_refused_run(process: StreamsProcess) -> int:
    """Run an application that Kafka Streams refuses; return the process id of its JVM."""
    with process.running(_DOCUMENT, _INVALID) as run:
        run.until(lambda: bool(run.failures))
        pid = process.pid
    assert "ConfigException" in run.failures[0]
    assert pid is not None
    return pid


def test_runs_share_a_jvm(process: StreamsProcess) -> None:
    first = pid_of_refused_run(process)
    assert pid_of_refused_run(process) == first


def test_a_jvm_that_does_not_end_a_run_is_replaced(process: StreamsProcess) -> None:
    stopped = pid_of_refused_run(process)
    os.kill(stopped, signal.SIGSTOP)
    os.waitid(
        os.P_PID, stopped, os.WSTOPPED | os.WNOWAIT
    )  # its threads may run for a moment after the signal
    process._end_seconds = 0.5
    with process.running(_DOCUMENT, _INVALID):
        pass  # the JVM does not even read the request
    assert process.pid is None
    process._end_seconds = _END_SECONDS
    assert pid_of_refused_run(process) != stopped


def test_a_jvm_that_was_killed_is_replaced(process: StreamsProcess) -> None:
    with process.running(_DOCUMENT, _INVALID) as run:
        killed = process.pid
        assert killed is not None
        os.kill(killed, signal.SIGKILL)
        run.until(lambda: run.has_ended)
    assert run.jvm_has_ended
    assert pid_of_refused_run(process) != killed
