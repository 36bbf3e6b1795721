"""Have something done when this process is gone, however it ended (SIGKILL included)."""

import subprocess

# A shell waits at the other end of a pipe: it reads a second line when dismissed, end-of-file when we died.
_WAIT = 'read -r target && ! read -r dismissed && "$@" "$target"'


class Guard:
    """Runs `command` with the watched target as its last argument, unless dismissed.

    It is started before the target exists, so that there is no moment without a guard.
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
        self._tell(target)

    def dismiss(self) -> None:
        self._tell("dismissed")
        self._shell.communicate()

    def _tell(self, line: str) -> None:
        assert self._shell.stdin is not None  # noqa: S101 - piped above
        self._shell.stdin.write(f"{line}\n")
        self._shell.stdin.flush()
