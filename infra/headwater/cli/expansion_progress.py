"""The progress of an expansion of processors on standard error: a bar on a terminal, else lines."""

import time
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any, Protocol

import attrs
import click

from headwater.planner.phrases import count_phrase, seconds_phrase
from headwater.report.printable import printable

if TYPE_CHECKING:
    from rich.progress import Progress, TaskID

_LINE_SECONDS = 5.0


class ExpansionProgress(Protocol):
    def show(self, status: Mapping[str, Any]) -> None:
        """Show the status of an expansion."""
        ...

    def note(self, line: str) -> None:
        """Print a line above the progress."""
        ...


@contextmanager
def expansion_progress(application: str) -> Iterator[ExpansionProgress]:
    """Show the progress inside the block."""
    from rich.console import Console  # noqa: PLC0415 - only for waiting

    console = Console(stderr=True, highlight=False)
    if not console.is_terminal:
        yield _Lines(printable(application))
        return
    from rich.progress import BarColumn, Progress, TextColumn, TimeRemainingColumn  # noqa: PLC0415 - same

    with Progress(
        TextColumn("{task.description}"),
        BarColumn(),
        TextColumn("{task.fields[remaining]}"),
        TimeRemainingColumn(),
        console=console,
        transient=True,
        redirect_stdout=False,
        redirect_stderr=False,
    ) as shown:
        yield _Bar(printable(application), shown)


@attrs.define
class _Phase:
    """The present phase: what it has read, of the most records that remained in it."""

    name: str = ""
    remaining: int = 0
    _most: int = 0
    _began: float = 0.0

    def update(self, status: Mapping[str, Any]) -> bool:
        """Take over a status; return whether a new phase has begun."""
        is_new = bool(status["phase"] != self.name)
        if is_new:
            self.name, self._most, self._began = status["phase"], 0, time.monotonic()
        self.remaining = status["remaining"]
        self._most = max(self._most, self.remaining)
        return is_new

    @property
    def total(self) -> int:
        return self._most

    @property
    def done(self) -> int:
        return self._most - self.remaining

    def seconds_left(self) -> float | None:
        """Return about how long the rest takes; None if it is not known yet."""
        if not self.done or not self.remaining:
            return None
        return (time.monotonic() - self._began) / self.done * self.remaining


@attrs.define
class _Bar:
    """A bar for each phase."""

    _application: str
    _progress: "Progress"
    _task: "TaskID | None" = None
    _phase: _Phase = attrs.field(factory=_Phase)

    def show(self, status: Mapping[str, Any]) -> None:
        phase = self._phase
        if phase.update(status) or self._task is None:
            if self._task is not None:
                self._progress.remove_task(self._task)
            what = f"{self._application}: {printable(phase.name)}"
            self._task = self._progress.add_task(what, remaining="")
        self._progress.update(
            self._task,
            completed=phase.done,
            total=phase.total or None,
            remaining=_remaining_text(phase),
            refresh=True,
        )

    def note(self, line: str) -> None:
        self._progress.console.print(line, soft_wrap=True, markup=False)


@attrs.define
class _Lines:
    """A line for each new phase, then one every few seconds."""

    _application: str
    _phase: _Phase = attrs.field(factory=_Phase)
    _printed: float = 0.0

    def show(self, status: Mapping[str, Any]) -> None:
        phase, now = self._phase, time.monotonic()
        if phase.update(status) or now - self._printed >= _LINE_SECONDS:
            self._printed = now
            left = phase.seconds_left()
            duration = "" if left is None else f", about {seconds_phrase(left)}"
            click.echo(
                f"{self._application}: {printable(phase.name)}: {_remaining_text(phase)}{duration}", err=True
            )

    def note(self, line: str) -> None:
        click.echo(line, err=True)


def _remaining_text(phase: _Phase) -> str:
    return f"{count_phrase(phase.remaining)} records remaining"
