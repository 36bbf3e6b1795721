"""`headwater run --live`: a table that is kept up to date, with the log lines of all processes above it."""

import os
import sys
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from threading import Event, Lock, Thread
from typing import IO, TYPE_CHECKING, Any

from headwater.report.runtime_table import runtime_rich

if TYPE_CHECKING:
    from rich.console import Console, RenderableType
    from rich.live import Live

_REFRESH_SECONDS = 0.5
_END = "\x00end"  # no program writes this
_FILES = (1, 2)  # standard output and standard error


@contextmanager
def live_table(read_status: Callable[[], Mapping[str, Any]]) -> Iterator[None]:
    """Update a table inside the block; print only the last one if standard output is not a terminal."""
    from rich.console import Console  # noqa: PLC0415 - only for --live
    from rich.live import Live  # noqa: PLC0415 - only for --live

    with _capture_output() as captured:
        console = Console(file=captured.terminal, highlight=False, width=_terminal_width(captured.terminal))
        ended, writing = Event(), Lock()
        with Live(console=console, auto_refresh=False, redirect_stdout=False, redirect_stderr=False) as shown:
            captured.forward_to(lambda line: _print_above(console, line, writing))
            thread = Thread(
                target=_refresh_table, args=(shown, read_status, ended, writing), name="live", daemon=True
            )
            thread.start()
            try:
                yield
            finally:
                ended.set()
                table = runtime_rich(read_status())
                captured.finish(lambda: _show_last(shown, table, writing))
                thread.join()


def _show_last(shown: "Live", table: "RenderableType", writing: Lock) -> None:
    with writing:
        shown.update(table)
        shown.stop()


def _refresh_table(
    shown: "Live", read_status: Callable[[], Mapping[str, Any]], ended: Event, writing: Lock
) -> None:
    while not ended.wait(_REFRESH_SECONDS):
        table = runtime_rich(read_status())
        with writing:
            if not ended.is_set():
                shown.update(table, refresh=shown.console.is_terminal)


def _print_above(console: "Console", line: str, writing: Lock) -> None:
    """Print a line above the table.

    Rich decides how many lines of the old table to erase before it writes, without a lock over both. Two
    threads that write at the same time could leave a part of a table behind.
    """
    from rich.text import Text  # noqa: PLC0415 - only for --live

    with writing:
        console.print(Text.from_ansi(line), soft_wrap=True)


def _terminal_width(terminal: IO[str]) -> int | None:
    """Return the width where Rich does not find it: it asks standard input, output and error only."""
    if not terminal.isatty() or os.isatty(0):
        return None
    return os.get_terminal_size(terminal.fileno()).columns or None


class _Captured:
    """Lines that this process and its child processes write to the terminal."""

    def __init__(self, terminal: IO[str], lines: IO[str] | None = None, writing: int | None = None) -> None:
        self.terminal = terminal
        self._lines = lines
        self._writing = writing
        self._finished = Event()
        self._forward: Callable[[str], None] = self._write
        self._write_last: Callable[[], None] = lambda: None

    def forward_to(self, forward: Callable[[str], None]) -> None:
        self._forward = forward

    def finish(self, write_last: Callable[[], None]) -> None:
        """Forward all lines that were written before, call `write_last`, and write further lines as they are.

        The thread that forwards lines calls `write_last`: child processes may write more at any time. This
        waits without a limit: lines that a busy machine has not forwarded would be lost with the process.
        """
        if self._writing is None:
            write_last()
            return
        self._write_last = write_last
        sys.stdout.flush()
        sys.stderr.flush()
        os.write(self._writing, f"{_END}\n".encode())
        self._finished.wait()

    def read(self) -> None:
        """Forward each line until no process can write any more; drop lines if the terminal is gone.

        Lines that are not read would block the processes that write them.
        """
        try:
            for line in self._lines or ():
                text = line.rstrip("\r\n")
                is_end = text.endswith(_END)
                text = text.removesuffix(_END)
                try:
                    if text or not is_end:
                        self._forward(text)
                    if is_end:
                        self._write_last()
                        self._forward = self._write
                except OSError:
                    self._forward = lambda _: None
                if is_end:
                    self._finished.set()
        finally:
            self._finished.set()

    def _write(self, line: str) -> None:
        self.terminal.write(f"{line}\n")
        self.terminal.flush()


@contextmanager
def _capture_output() -> Iterator[_Captured]:
    """Capture what is written to the terminal, also by child processes such as Spark's JVM.

    A line that another process writes would go into the table and leave a part of it behind. Files and pipes
    are not captured. Child processes keep the pipe: their last lines are written as they are.
    """
    files = [each for each in _FILES if os.isatty(each)]
    if 1 not in files:
        yield _Captured(sys.stdout)
        return
    sys.stdout.flush()
    sys.stderr.flush()
    saved = {each: os.dup(each) for each in files}
    reading, writing = os.pipe()
    terminal = os.fdopen(os.dup(1), "w", encoding="utf-8", errors="replace")
    captured = _Captured(terminal, os.fdopen(reading, encoding="utf-8", errors="replace"), writing)
    for each in files:
        os.dup2(writing, each)
    Thread(target=captured.read, name="terminal", daemon=True).start()
    try:
        yield captured
    finally:
        os.close(writing)
        for each, original in saved.items():
            os.dup2(original, each)
            os.close(original)
