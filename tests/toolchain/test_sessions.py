"""No process outlives a command that runs in a session, whoever is killed."""

import os
import signal
import subprocess
import sys
from pathlib import Path

import pytest

from headwater.toolchain import sessions
from headwater.toolchain.broker.readiness import until
from headwater.toolchain.sessions import kill_session, run_in_session, session_members

SECONDS = 60
# Like Pulumi's plugins: a child in a process group of its own, which notices nothing.
PLUGIN = (
    "import subprocess; subprocess.Popen(['sleep', '600'], process_group=0); print('ready', flush=True); "
)
RUN = """
import os, signal, sys
from pathlib import Path
from headwater.toolchain.sessions import run_in_session
signal.signal(signal.SIGINT, signal.default_int_handler)  # a job in the background ignores it
run_in_session([sys.executable, "-c", sys.argv[1]], folder=Path(), environment=os.environ)
"""


def run(program: str) -> tuple[int, str, str]:
    finished = run_in_session([sys.executable, "-c", program], folder=Path(), environment=os.environ)
    return finished.code, finished.output, finished.error


def test_code_and_output_are_returned() -> None:
    program = "import sys; print('out'); print('error', file=sys.stderr); sys.exit(3)"
    assert run(program) == (3, "out\n", "error\n")
    merged = run_in_session(
        [sys.executable, "-c", program], folder=Path(), environment=os.environ, is_error_in_output=True
    )
    assert sorted(merged.output.split()) == ["error", "out"]


def test_a_command_that_takes_too_long_is_killed_with_its_children(tmp_path: Path) -> None:
    leader = tmp_path / "leader"
    for timeout in (1, 10, 60):  # on a busy machine it may be killed before it has started
        with pytest.raises(subprocess.TimeoutExpired):
            run_in_session(
                ["sh", "-c", "sleep 600 & echo $$ > leader; sleep 600"],
                folder=tmp_path,
                environment=os.environ,
                timeout_seconds=timeout,
            )
        if leader.exists() and leader.read_text():
            break
    assert not session_members(int(leader.read_text()))


@pytest.mark.parametrize("end", ["", "import os; os.kill(os.getpid(), 9)"])
def test_children_end_with_the_command(end: str) -> None:
    code, output, _ = run(PLUGIN + "import os; print(os.getsid(0), flush=True); " + end)
    assert code == (-signal.SIGKILL if end else 0)
    ready, session = output.split()
    assert ready == "ready"
    assert not session_members(int(session))


def test_children_end_with_the_process_that_runs_the_command() -> None:
    waiting = PLUGIN + "import time; time.sleep(600)"
    runner = subprocess.Popen([sys.executable, "-c", RUN, waiting], start_new_session=True)
    try:
        assert until(lambda: len(_sleeping_sessions(runner.pid)) == 1, SECONDS)
        (session,) = _sleeping_sessions(runner.pid)
        runner.kill()
        runner.wait(SECONDS)
        assert until(lambda: not session_members(session), SECONDS)
    finally:
        kill_session(runner.pid)


def _sleeping_sessions(parent: int) -> set[int]:
    """Return the sessions of children of `parent` that have a child themselves."""
    try:
        children = Path(f"/proc/{parent}/task/{parent}/children").read_text().split()
        sessions = [int(child) for child in children if os.getsid(int(child)) == int(child)]
        return {each for each in sessions if len(session_members(each)) == 2 and _is_python(each)}
    except OSError:  # a process has ended meanwhile
        return set()


def _is_python(pid: int) -> bool:
    return b"time.sleep" in Path(f"/proc/{pid}/cmdline").read_bytes()


def test_an_interrupt_reaches_the_command(tmp_path: Path) -> None:
    interrupted, started = tmp_path / "interrupted", tmp_path / "started"
    waiting = (
        "import pathlib, time\n"
        "try:\n"
        f"    pathlib.Path({str(started)!r}).touch(); time.sleep(600)\n"
        "except KeyboardInterrupt:\n"
        f"    pathlib.Path({str(interrupted)!r}).touch()\n"
    )
    runner = subprocess.Popen(
        [sys.executable, "-c", RUN, waiting], start_new_session=True, stderr=subprocess.DEVNULL
    )
    try:
        assert until(started.exists, SECONDS)
        runner.send_signal(signal.SIGINT)
        assert runner.wait(SECONDS) != 0
        assert interrupted.exists()
    finally:
        kill_session(runner.pid)


def test_the_leader_of_a_session_is_killed_first(monkeypatch: pytest.MonkeyPatch) -> None:
    """Otherwise a CLI can notice that its plugin has ended, and remove its lock."""
    killed: list[int] = []
    members = iter([[8, 7, 9], []])
    monkeypatch.setattr(sessions, "session_members", lambda _: next(members))
    monkeypatch.setattr(os, "kill", lambda pid, _: killed.append(pid))
    kill_session(7)
    assert killed == [7, 8, 9]
