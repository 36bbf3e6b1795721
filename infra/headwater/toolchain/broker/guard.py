"""Run a command when this process has ended, even by SIGKILL."""

import subprocess

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
