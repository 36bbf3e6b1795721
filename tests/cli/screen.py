"""A program on a terminal, and what the terminal shows afterwards."""

import os
import pty
import re
import signal
import struct
import subprocess
import termios
from collections.abc import Callable, Sequence
from contextlib import suppress
from fcntl import ioctl
from pathlib import Path
from select import select

_ROOT = Path(__file__).parents[2]
_WIDTH, _HEIGHT = 100, 20
_PAUSE_SECONDS = 0.2
_SEQUENCE = re.compile(r"\x1b\[([?0-9;]*)([A-Za-z])|([^\x1b])", re.DOTALL)


class Screen:
    """What a terminal shows, with the lines that have scrolled out at its top."""

    def __init__(self) -> None:
        self.lines = [""]
        self._row = self._column = 0

    def write(self, text: str) -> None:
        for parameter, command, character in _SEQUENCE.findall(text):
            if character:
                self._put(character)
            elif command == "A":
                top = max(0, len(self.lines) - _HEIGHT)
                self._row = max(top, self._row - int(parameter or 1))
            elif command == "K":
                self.lines[self._row] = "" if parameter == "2" else self.lines[self._row][: self._column]
            else:
                assert command in "mhl", (parameter, command)

    def _put(self, character: str) -> None:
        if character == "\r":
            self._column = 0
        elif character == "\n":
            self._row += 1
            self.lines += [""] * (self._row - len(self.lines) + 1)
        else:
            line = self.lines[self._row].ljust(self._column)
            self.lines[self._row] = line[: self._column] + character + line[self._column + 1 :]
            self._column += 1


def output_on_terminal(command: Sequence[str], *, interrupt_when: Callable[[], bool] | None = None) -> str:
    """Run a command whose standard output and error are a terminal, and return what it writes.

    It gets SIGINT, as by Ctrl-C, as soon as `interrupt_when` is true. It must end without an error.
    """
    reading, terminal = pty.openpty()
    ioctl(terminal, termios.TIOCSWINSZ, struct.pack("HHHH", _HEIGHT, _WIDTH, 0, 0))
    environment = {**os.environ, "TERM": "xterm-256color"}
    for name in ("NO_COLOR", "COLUMNS", "LINES"):
        environment.pop(name, None)
    with subprocess.Popen(
        command,
        cwd=_ROOT,
        stdin=subprocess.DEVNULL,
        stdout=terminal,
        stderr=terminal,
        env=environment,
    ) as process:
        os.close(terminal)
        content = b""
        with suppress(OSError):  # Linux's end of file of a terminal
            while True:
                is_written, _, _ = select(
                    [reading], [], [], None if interrupt_when is None else _PAUSE_SECONDS
                )
                if is_written:
                    if not (part := os.read(reading, 65_536)):
                        break
                    content += part
                if interrupt_when is not None and interrupt_when():
                    process.send_signal(signal.SIGINT)
                    interrupt_when = None
    os.close(reading)
    assert process.returncode == 0, content.decode()
    return content.decode()


def lines_on_screen(output: str) -> list[str]:
    """Return the lines that a terminal shows after `output`, also those that have scrolled out."""
    screen = Screen()
    screen.write(output)
    return [line.rstrip() for line in screen.lines]
