"""Processes that an interrupted start would leave behind."""

import subprocess
import sys
from pathlib import Path

import pytest

from spark_jobs.runtime.driver.orphans import no_orphans

_WAITING = (sys.executable, "-c", "import sys; sys.stdin.read()")


@pytest.mark.skipif(not Path("/proc/self/task").is_dir(), reason="the system does not tell of children")
def test_an_interrupted_start_ends_what_it_has_started_and_nothing_else() -> None:
    with subprocess.Popen(_WAITING, stdin=subprocess.PIPE) as older:
        started: list[subprocess.Popen[bytes]] = []
        with pytest.raises(KeyboardInterrupt):
            _start_and_be_interrupted(started)
        with started[0]:
            assert started[0].wait(60) != 0
        assert older.poll() is None


def _start_and_be_interrupted(started: "list[subprocess.Popen[bytes]]") -> None:
    with no_orphans():
        started.append(subprocess.Popen(_WAITING, stdin=subprocess.PIPE))
        raise KeyboardInterrupt


def test_what_was_started_well_goes_on() -> None:
    with no_orphans():
        started = subprocess.Popen(_WAITING, stdin=subprocess.PIPE)
    with started:
        assert started.poll() is None
