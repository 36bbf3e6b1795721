"""End a process when the one that needs it is gone, however that one ended (SIGKILL included).

A shell waits at the other end of a pipe: it reads a second line when it is dismissed, and end-of-file
when we died.
"""

import subprocess

_END_UNLESS_DISMISSED = 'read -r pid && ! read -r dismissed && kill -KILL "$pid"'
_END_AFTER = 'while kill -0 "$1"; do sleep 1; done; kill -KILL "$2"'


class Guard:
    """Started before the process it guards, so that there is no moment without a guard."""

    def __init__(self) -> None:
        self._shell = subprocess.Popen(
            ["sh", "-c", _END_UNLESS_DISMISSED],
            stdin=subprocess.PIPE,
            stdout=subprocess.DEVNULL,
            stderr=subprocess.DEVNULL,
            text=True,
            start_new_session=True,
        )

    def watch(self, pid: int) -> None:
        self._tell(str(pid))

    def dismiss(self) -> None:
        self._tell("dismissed")
        self._shell.communicate()

    def _tell(self, line: str) -> None:
        assert self._shell.stdin is not None  # noqa: S101 - piped above
        self._shell.stdin.write(f"{line}\n")
        self._shell.stdin.flush()


def end_after(owner: int, pid: int) -> subprocess.Popen[bytes]:
    """Kill `pid` within a second of the end of `owner`, which need not be this process."""
    return subprocess.Popen(
        ["sh", "-c", _END_AFTER, "sh", str(owner), str(pid)],
        stdin=subprocess.DEVNULL,
        stdout=subprocess.DEVNULL,
        stderr=subprocess.DEVNULL,
        start_new_session=True,
    )
