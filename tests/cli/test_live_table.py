"""The table of `headwater run --live` on a terminal, while other processes write to the same terminal."""

import os
import pty
import re
import struct
import subprocess
import sys
import termios
from fcntl import ioctl
from pathlib import Path

_ROOT = Path(__file__).parents[2]
_WIDTH, _HEIGHT = 100, 20
_LINES = 60
_PROGRAM = f"""
import os, subprocess, sys, time
from infra.cli.live_table import live_table

writer = "import sys, time\\nfor n in range({_LINES}):\\n" + (
    "    print(f'spark {{n}} ' + 'x' * 70, file=sys.stderr, flush=True); time.sleep(0.02)"
)
reads = 0

def status():
    global reads
    reads += 1
    part = dict(id="0", state="RUNNING", parallelism=2, recordsPerSecond=1.0, recordsRead=reads)
    part |= dict(recordsWritten=1, lag=0, stateBytes=0, sources=["orders"], failure="")
    return dict(application="app", state="RUNNING", problems=[], subtopologies=[part] * 3)

with live_table(status):
    child = subprocess.Popen([sys.executable, "-c", writer])
    for n in range({_LINES}):
        print("python", n, file=sys.stderr)
        time.sleep(0.02)
    child.wait()
    while reads < 3:
        time.sleep(0.05)
print("ended")
"""
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


def _shown(program: str) -> list[str]:
    """Return the lines that a terminal shows after a program that writes to it."""
    reading, terminal = pty.openpty()
    ioctl(terminal, termios.TIOCSWINSZ, struct.pack("HHHH", _HEIGHT, _WIDTH, 0, 0))
    environment = {**os.environ, "TERM": "xterm-256color"}
    for name in ("NO_COLOR", "COLUMNS", "LINES"):
        environment.pop(name, None)
    with subprocess.Popen(
        [sys.executable, "-c", program],
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
    screen = Screen()
    screen.write(content.decode())
    return [line.rstrip() for line in screen.lines]


def test_lines_of_other_processes_are_above_one_table() -> None:
    shown = _shown(_PROGRAM)
    assert [line for line in shown if line.startswith("spark")] == [
        f"spark {number} {'x' * 70}" for number in range(_LINES)
    ]
    assert [line for line in shown if line.startswith("python")] == [
        f"python {number}" for number in range(_LINES)
    ]
    assert sum(line.startswith("sub-topology") for line in shown) == 1
    assert sum(line.split() == ["app", "RUNNING"] for line in shown) == 1
    table = shown.index("app  RUNNING")
    assert shown[table + 5] == "ended"
    assert not any(line.startswith(("spark", "python")) for line in shown[table:])


def test_only_the_last_table_is_printed_without_a_terminal() -> None:
    done = subprocess.run(
        [sys.executable, "-c", _PROGRAM], cwd=_ROOT, capture_output=True, text=True, check=True
    )
    assert done.stdout.count("sub-topology") == 1
    assert done.stdout.endswith("ended\n")
    assert done.stderr.count("spark") == _LINES
