"""Output of commands on a terminal, and their exit codes."""

import errno
import json
import os
import signal
import sys
import time
from collections.abc import Iterable, Iterator, Mapping
from contextlib import contextmanager
from enum import IntEnum
from pathlib import Path
from types import FrameType
from typing import TYPE_CHECKING, Any, TextIO

import click

from headwater.model.problems import Problem, errors

if TYPE_CHECKING:
    from rich.console import RenderableType


class ExitCode(IntEnum):
    """The README lists these in a table; a test compares the two."""

    DONE = 0
    PROBLEMS = 1
    DRIFT = 2
    REFUSED = 3
    USAGE = 64
    BUG = 70
    RESTART = 75
    INTERRUPTED = 130

    @property
    def meaning(self) -> str:
        return _MEANINGS[self]


_MEANINGS = {
    ExitCode.DONE: "success (warnings may have been printed)",
    ExitCode.PROBLEMS: "an error: problems in the documents, a file, cluster or service that could not "
    "be read, a check or request that failed, or an application that stopped (`run`)",
    ExitCode.DRIFT: "the cluster differs from what is declared (`drift`, "
    "`processors status`) or imported (`import`), or an upgrade or edit changes something "
    "(`upgrade`, `change`)",
    ExitCode.REFUSED: "the plan is refused and nothing would be changed (`plan`), "
    "or the comparison is not complete (`drift`, `upgrade`, `change`)",
    ExitCode.USAGE: "invalid command line",
    ExitCode.BUG: "an error in Headwater itself",
    ExitCode.RESTART: "Spark's JVM has ended, or the process did not stop in time: start it again "
    "(`run`, `agent run`)",
    ExitCode.INTERRUPTED: "interrupted (Ctrl-C)",
}


def print_problems(problems: Iterable[Problem], *, after_result: bool = False) -> None:
    """Print all problems to standard error, in colors on a terminal; `after_result`: below an empty line."""
    if found := tuple(problems):
        from headwater.report import problems as problem_output  # noqa: PLC0415 - slow, only for problems

        problem_output.print_problems(found, after_result=after_result)


@contextmanager
def show_activity(what: str) -> Iterator[None]:
    """Show on a terminal that `what` takes time, on standard error; nothing stays there afterwards."""
    if not sys.stderr.isatty():
        yield
        return
    from rich.console import Console  # noqa: PLC0415 - slow, only on a terminal

    with Console(stderr=True, highlight=False).status(what):
        yield


def print_rich(result: "RenderableType") -> None:
    """Print a result, in colors on a terminal; lines are not wrapped."""
    from headwater.report.problems import output_console  # noqa: PLC0415 - slow, only on a terminal

    output_console().print(result)


def print_line(line: str, *, err: bool = False) -> None:
    """Print a line; if its reader is gone, the line is discarded, and the command continues."""
    try:
        click.echo(line, err=err)
    except BrokenPipeError:
        discard_output(sys.stderr if err else sys.stdout)


def exit_for(problems: Iterable[Problem], code: ExitCode = ExitCode.PROBLEMS) -> int:
    """Return `code` if one of the problems is an error, otherwise 0."""
    return code if errors(problems) else ExitCode.DONE


def print_json(document: Mapping[str, Any]) -> None:
    write_text(json_text(document), None)


def json_text(document: Mapping[str, Any]) -> str:
    return json.dumps(document, indent=2, ensure_ascii=False) + "\n"


def write_text(text: str, output: Path | None) -> None:
    """Write exactly `text` to standard output or to a file, as UTF-8 whatever the locale is.

    The folder of the file is created if it does not exist. File names that are not UTF-8 are written with
    escapes. If the reader of standard output is gone, the output is discarded: the exit code still says what
    the command found. Raises `click.ClickException` if the text cannot be written.
    """
    if output is None or str(output) == "-":
        _write_standard_output(text)
        return
    try:
        output.parent.mkdir(parents=True, exist_ok=True)
        output.write_text(text, encoding="utf-8", errors="backslashreplace", newline="")
    except OSError as error:
        raise click.ClickException(
            f"{output} cannot be written: {error.strerror}.\n  Choose another file by --output."
        ) from None


def unwritable_output(error: OSError) -> click.ClickException:
    """Discard the buffered output and return the error to show."""
    discard_output(sys.stdout)
    return click.ClickException(
        f"The output cannot be written: {error.strerror}.\n  Free space there, or redirect it elsewhere."
    )


def unusable_file(error: OSError) -> click.ClickException:
    """Return the error to show for a file or folder that a command could not read or write."""
    return click.ClickException(
        f"{os.fsdecode(error.filename)} cannot be used: {error.strerror}.\n"
        "  Check that it exists and that this user may read and write it, or name another one."
    )


def discard_output(stream: TextIO) -> None:
    """Discard the buffered output: it cannot be written, and the interpreter would fail again on exit."""
    os.dup2(os.open(os.devnull, os.O_WRONLY), stream.fileno())


def _write_standard_output(text: str) -> None:
    try:
        sys.stdout.flush()
        sys.stdout.buffer.write(text.encode(errors="backslashreplace"))
        sys.stdout.buffer.flush()
    except OSError as error:
        if error.errno != errno.EPIPE:
            raise unwritable_output(error) from None
        discard_output(sys.stdout)


def repeat_every(interval: float) -> Iterator[None]:
    """Yield at once, and again after each `interval` seconds, until Ctrl-C raises `KeyboardInterrupt`.

    Python ignores exceptions in finalizers and in callbacks of weak references, also `KeyboardInterrupt`. So
    the signal is remembered, and raised again after the iteration in which it was lost. Call it in the main
    thread.
    """
    interrupted = False

    def interrupt(_: int, __: FrameType | None) -> None:
        nonlocal interrupted
        interrupted = True
        raise KeyboardInterrupt

    before = signal.signal(signal.SIGINT, interrupt)
    try:
        while not interrupted:
            yield
            if not interrupted:
                time.sleep(interval)
        raise KeyboardInterrupt
    finally:
        signal.signal(signal.SIGINT, before)
