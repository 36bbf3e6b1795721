"""The Spark session: redaction, and processes that an interrupted start would leave behind."""

import subprocess
import sys
from pathlib import Path

import pytest

from spark_jobs.runtime.driver.session import SessionSettings, kill_children_on_interrupt
from tests.runtime.spark.processes import is_running
from toolchain.broker.readiness import until

_WAITING = (sys.executable, "-c", "import sys; sys.stdin.read()")


def test_spark_redacts_secrets() -> None:
    settings = SessionSettings(application="a").spark()
    for name in ("spark.redaction.regex", "spark.sql.redaction.options.regex"):
        for word in ("password", "jaas", "keystore", "ssl[.]key", "secret"):
            assert word in settings[name]


@pytest.mark.skipif(not Path("/proc/self/task").is_dir(), reason="only Linux lists child processes")
def test_interrupted_start_terminates_its_own_children_only() -> None:
    with subprocess.Popen(_WAITING, stdin=subprocess.PIPE) as older:
        started: list[subprocess.Popen[bytes]] = []
        with pytest.raises(KeyboardInterrupt):
            _start_and_be_interrupted(started)
        with started[0]:
            assert started[0].wait(60) != 0
        assert older.poll() is None


@pytest.mark.skipif(not Path("/proc/self/task").is_dir(), reason="only Linux lists child processes")
def test_interrupted_start_terminates_children_of_children_that_hang() -> None:
    """`spark-submit` is a script: when it is killed, the Java that it has started would remain."""
    command = ("bash", "-c", "sleep 600 & kill -STOP $!; echo $!; wait")
    started: list[subprocess.Popen[bytes]] = []
    pids: list[int] = []

    def start() -> None:
        with kill_children_on_interrupt():
            started.append(subprocess.Popen(command, stdout=subprocess.PIPE))
            assert started[0].stdout is not None
            pids.append(int(started[0].stdout.readline()))
            raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        start()
    with started[0]:
        assert started[0].wait(60) != 0
    assert until(lambda: not is_running(pids[0]), 60)


def _start_and_be_interrupted(started: "list[subprocess.Popen[bytes]]") -> None:
    with kill_children_on_interrupt():
        started.append(subprocess.Popen(_WAITING, stdin=subprocess.PIPE))
        raise KeyboardInterrupt


def test_children_keep_running_after_a_successful_start() -> None:
    with kill_children_on_interrupt():
        started = subprocess.Popen(_WAITING, stdin=subprocess.PIPE)
    with started:
        assert started.poll() is None
