"""A program on a terminal, and what the terminal shows afterwards."""

import os
import pty
import re
import struct
import subprocess
import termios
from collections.abc import Sequence
from fcntl import ioctl
from pathlib import Path

_ROOT = Path(__file__).parents[2]
_WIDTH, _HEIGHT = 100, 20
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


def output_on_terminal(command: Sequence[str]) -> str:
    """Run a command whose standard output and error are a terminal, and return what it writes."""
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
    ):
        os.close(terminal)
        content = b""
        try:
            while part := os.read(reading, 65_536):
                content += part
        except OSError:  # Linux's end of file of a terminal
            pass
    os.close(reading)
    return content.decode()


def lines_on_screen(output: str) -> list[str]:
    """Return the lines that a terminal shows after `output`, also those that have scrolled out."""
    screen = Screen()
    screen.write(output)
    return [line.rstrip() for line in screen.lines]
