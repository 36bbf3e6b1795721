"""Show the progress of long steps: a live line on a terminal, elsewhere a line at the start and the end."""

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
    """Write progress to standard error, so that the output of commands stays clean."""

    console: Console = attrs.field(factory=lambda: Console(stderr=True, highlight=False))

    def note(self, what: str) -> None:
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
                    f"{escape(announced)}  [dim]{escape(_shortened(line, width))}[/dim]"
                )
        else:
            self.note(f"{announced} …")
            yield _no_detail
        self.note(f"{what}: done in {_duration(time.monotonic() - started)}")


def _shortened(line: str, width: int) -> str:
    return line if len(line) <= width else f"{line[:width]}…"


def _duration(seconds: float) -> str:
    minutes, rest = divmod(seconds, 60)
    return f"{minutes:.0f} min {rest:.0f} s" if minutes else f"{rest:.1f} s"
