"""The progress of commands that move state, on standard error."""

import time

import attrs
import click

from headwater.planner.phrases import seconds_phrase

_REPORT_SECONDS = 2.0


@attrs.define
class Progress:
    """Prints progress to standard error: each new step, then a line every few seconds."""

    _application: str
    _what: str = ""
    _began: float = 0.0
    _printed: float = 0.0

    def report(self, what: str, done: int, total: int) -> None:
        now = time.monotonic()
        if what != self._what:
            self._what, self._began, self._printed = what, now, now
            click.echo(f"{self._application}: {what}", err=True)
        elif total and now - self._printed >= _REPORT_SECONDS:
            self._printed = now
            left = f", {seconds_phrase(_left(now - self._began, done, total))} left" if done else ""
            click.echo(f"{self._application}: {what}: {done:,} of {total:,}{left}", err=True)


def _left(seconds: float, done: int, total: int) -> float:
    """Return the seconds that are left if `done` of `total` took `seconds`."""
    return max(0.0, seconds / done * (total - done))
