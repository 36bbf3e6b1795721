"""Tell a person what takes long: a live line on a terminal, one line at the start and end elsewhere."""

import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager

import attrs
from rich.console import Console
from rich.markup import escape


def _no_detail(line: str) -> None:
    del line


@attrs.frozen
class Progress:
    """Reports on standard error, so that the output of commands stays clean."""

    console: Console = attrs.field(factory=lambda: Console(stderr=True, highlight=False))

    def note(self, what: str) -> None:
        self.console.print(what, markup=False)

    @contextmanager
    def step(self, what: str) -> Iterator[Callable[[str], None]]:
        """Announce `what`; the yielded function shows a detail, such as a line of output, beside it."""
        started = time.monotonic()
        if self.console.is_terminal:
            with self.console.status(escape(what)) as status:
                room = max(self.console.width - len(what) - len("⠋   …"), 0)
                yield lambda line: status.update(
                    f"{escape(what)}  [dim]{escape(_shortened(line, room))}[/dim]"
                )
        else:
            self.note(f"{what} …")
            yield _no_detail
        self.note(f"{what}: done in {_duration(time.monotonic() - started)}")


def _shortened(line: str, width: int) -> str:
    return line if len(line) <= width else f"{line[:width]}…"


def _duration(seconds: float) -> str:
    minutes, rest = divmod(seconds, 60)
    return f"{minutes:.0f} min {rest:.0f} s" if minutes else f"{rest:.1f} s"
