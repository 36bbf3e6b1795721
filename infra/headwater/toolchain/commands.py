"""Runs programs of the toolchain with progress; their failures are errors of the toolchain."""

import os
import subprocess
import sys
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path

import attrs
import click
from rich.console import Console
from rich.markup import escape


class ToolchainError(click.ClickException):
    """A program could not be obtained or started. The text is for the operator and says what to do."""


def _no_detail(line: str) -> None:
    del line


class _StandardError(Console):
    """Prints to standard error; if its reader is gone, the command continues without output."""

    def on_broken_pipe(self) -> None:
        self.quiet = True
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stderr.fileno())


@attrs.frozen
class Progress:
    """Write progress to standard error, so that the output of commands stays clean."""

    console: Console = attrs.field(factory=lambda: _StandardError(stderr=True, highlight=False))

    def write_line(self, what: str) -> None:
        self.console.print(what, markup=False)

    @contextmanager
    def step(self, what: str, *, expected: str = "") -> Iterator[Callable[[str], None]]:
        """Announce `what` and its `expected` duration; the yielded function shows a detail behind it."""
        started = time.monotonic()
        announced = f"{what} (takes about {expected})" if expected else what
        if self.console.is_terminal:
            with self.console.status(escape(announced)) as status:
                width = max(self.console.width - len(announced) - len("⠋   …"), 0)
                yield lambda line: status.update(
                    f"{escape(announced)}  [dim]{escape(_shorten_line(line, width))}[/dim]"
                )
        else:
            self.write_line(f"{announced} …")
            yield _no_detail
        self.write_line(f"{what}: done in {_duration_text(time.monotonic() - started)}")


def _shorten_line(line: str, width: int) -> str:
    return line if len(line) <= width else f"{line[:width]}…"


def _duration_text(seconds: float) -> str:
    minutes, rest = divmod(seconds, 60)
    return f"{minutes:.0f} min {rest:.0f} s" if minutes else f"{rest:.1f} s"


_SHOWN_LINES = 20


def run_logged(
    command: Sequence[str | Path],
    *,
    log: Path,
    environment: Mapping[str, str],
    show: Callable[[str], None],
    failure: str,
    folder: Path | None = None,
) -> None:
    """Run `command` in `folder`; raises `ToolchainError` with `failure` and the end of the output."""
    log.parent.mkdir(parents=True, exist_ok=True)
    lines: list[str] = []
    with (
        log.open("w", encoding="utf-8") as written,
        subprocess.Popen(
            command,
            cwd=folder,
            env=dict(environment),
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            text=True,
            errors="replace",
        ) as process,
    ):
        assert process.stdout is not None  # noqa: S101 - piped above
        for line in process.stdout:
            written.write(line)
            lines = [*lines[1 - _SHOWN_LINES :], line.rstrip()]
            show(lines[-1])
    if process.returncode:
        tail = "\n".join(f"    {line}" for line in lines)
        raise ToolchainError(f"{failure} (exit code {process.returncode}).\n{tail}\n  Full output: {log}")
