"""Phrases that several texts share."""

from collections.abc import Iterable, Sequence

from headwater.compiler.java.config_values import parse_whole

_MILLION = 1_000_000
_MOST_NAMES = 10
_MINUTE, _HOUR = 60, 3_600
_UNITS = ((86_400_000, "day"), (3_600_000, "hour"), (60_000, "minute"), (1_000, "second"))


def counted(number: int, noun: str) -> str:
    """Return `1 topic`, `2 topics`."""
    return f"{number:,} {noun}" if number == 1 else f"{number:,} {noun}s"


def count_phrase(number: int) -> str:
    """Return a count: `1,234`, `1.2 million`."""
    return f"{number:,}" if number < _MILLION else f"{number / _MILLION:,.1f} million"


def seconds_phrase(seconds: float) -> str:
    """Return about how long something takes: `40 seconds`, `12 minutes`, `2.5 hours`."""
    if seconds < 2 * _MINUTE:
        return counted(max(1, round(seconds)), "second")
    if seconds < 2 * _HOUR:
        return counted(round(seconds / _MINUTE), "minute")
    return f"{seconds / _HOUR:,.1f} hours"


def listed(names: Iterable[str]) -> str:
    """Return all names, sorted and separated by commas."""
    return ", ".join(sorted(names))


def few(names: Sequence[str]) -> str:
    """Return the first names, separated by commas, and how many more there are."""
    more = f" and {len(names) - _MOST_NAMES:,} more" if len(names) > _MOST_NAMES else ""
    return listed(names[:_MOST_NAMES]) + more


def whole(text: str) -> int | None:
    """Return a whole number as Java parses it; None for another text."""
    return parse_whole(text)


def duration(milliseconds: str) -> str:
    """Return milliseconds with their meaning, `90000000 (25 hours)`; -1 means no limit."""
    number = whole(milliseconds)
    if number is None:
        return milliseconds
    if number < 0:
        return f"{milliseconds} (no limit)"
    for size, noun in _UNITS:
        if number >= size and number % size == 0:
            return f"{milliseconds} ({counted(number // size, noun)})"
    return milliseconds
