"""Programs in sessions of their own, which end with this process.

Pulumi's CLI starts the language host and the plugins in process groups of their own. If the CLI is killed,
they notice it only after minutes. But they stay in its session.
"""

import os
import signal
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator, Mapping, Sequence
from contextlib import suppress
from pathlib import Path

import attrs

# A shell reads from a pipe: a second line if it is dismissed, end-of-file if this process has ended.
_WAIT = 'read -r target && ! read -r dismissed && "$@" "$target"'


class Guard:
    """Run `command` with the watched target as its last argument, unless dismissed.

    The guard starts before the target exists, so the target is never without a guard.
    """

    def __init__(self, *command: str) -> None:
        self._shell = subprocess.Popen(
            ["sh", "-c", _WAIT, "sh", *command],
            stdin=subprocess.PIPE,
            stdout=subprocess.DEVNULL,
            stderr=subprocess.DEVNULL,
            text=True,
            start_new_session=True,
        )

    def watch(self, target: str) -> None:
        self._write(target)

    def dismiss(self) -> None:
        self._write("dismissed")
        self._shell.communicate()

    def _write(self, line: str) -> None:
        assert self._shell.stdin is not None  # noqa: S101 - piped above
        self._shell.stdin.write(f"{line}\n")
        self._shell.stdin.flush()


_INTERRUPTED_SECONDS = 10
_KILL_SECONDS = 30
_PAUSE_SECONDS = 0.01
_KILL_SESSION = (
    "import sys; from headwater.toolchain.sessions import kill_session; kill_session(int(sys.argv[1]))"
)
_PROCESSES = Path("/proc")


@attrs.frozen
class Finished:
    """The exit code and the output of a command."""

    code: int
    output: str
    error: str


def run_in_session(
    command: Sequence[str | Path],
    *,
    folder: Path,
    environment: Mapping[str, str],
    is_error_in_output: bool = False,
    timeout_seconds: float | None = None,
) -> Finished:
    """Run `command` without input and wait for it. No process that it started outlives it or this process.

    An interrupt (Ctrl-C) is passed on to the command, which gets some seconds to end.

    Raises:
        subprocess.TimeoutExpired: The command did not end in time, and was killed.
    """
    guard = Guard(sys.executable, "-c", _KILL_SESSION)
    # Files, because a child that outlives the command would keep a pipe open.
    with tempfile.TemporaryFile() as output, tempfile.TemporaryFile() as error:
        process = subprocess.Popen(
            command,
            cwd=folder,
            env=dict(environment),
            stdin=subprocess.DEVNULL,
            stdout=output,
            stderr=subprocess.STDOUT if is_error_in_output else error,
            start_new_session=True,
        )
        try:
            guard.watch(str(process.pid))
            _wait_for_end(process, timeout_seconds)
        finally:
            kill_session(process.pid)
            process.wait()
            guard.dismiss()
        output.seek(0)
        error.seek(0)
        return Finished(
            process.returncode, output.read().decode(errors="replace"), error.read().decode(errors="replace")
        )


def _wait_for_end(process: "subprocess.Popen[bytes]", timeout_seconds: float | None) -> None:
    try:
        process.wait(timeout_seconds)
    except KeyboardInterrupt:
        process.send_signal(signal.SIGINT)
        with suppress(subprocess.TimeoutExpired):
            process.wait(_INTERRUPTED_SECONDS)
        raise


def kill_session(leader: int) -> None:
    """Kill all processes of the session that the process `leader` started, and wait until they have ended.

    Raises `TimeoutError` if some are still there after half a minute.
    """
    deadline = time.monotonic() + _KILL_SECONDS
    while members := session_members(leader):
        if time.monotonic() > deadline:
            raise TimeoutError(f"these processes cannot be killed: {sorted(members)}")
        # The leader first: it must not notice that the others were killed, and end in an orderly way.
        for pid in sorted(members, key=lambda member: member != leader):
            with suppress(ProcessLookupError):
                os.kill(pid, signal.SIGKILL)
        time.sleep(_PAUSE_SECONDS)


def session_members(leader: int) -> frozenset[int]:
    """Return the processes of a session, without those that have ended and wait for their parent."""
    return frozenset(pid for pid in _running_processes() if _session_of(pid) == leader)


def _session_of(pid: int) -> int | None:
    try:
        return os.getsid(pid)
    except OSError:
        return None


def _running_processes() -> Iterator[int]:
    if not (_PROCESSES / "self" / "stat").exists():
        listed = subprocess.run(["ps", "-Ao", "pid=,stat="], capture_output=True, text=True, check=True)
        rows = (line.split() for line in listed.stdout.splitlines())
        yield from (int(pid) for pid, state in rows if not state.startswith("Z"))
        return
    for entry in _PROCESSES.iterdir():
        if entry.name.isdigit():
            with suppress(OSError):
                # pid (name) state …: the name may contain spaces and parentheses.
                state = (entry / "stat").read_text(errors="replace").rpartition(")")[2].split()[0]
                if state not in ("Z", "X"):
                    yield int(entry.name)
