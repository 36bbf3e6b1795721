"""Phrases that several texts share."""

import re
from collections.abc import Iterable

_WHOLE = re.compile(r"[+-]?[0-9]{1,19}")
_UNITS = ((86_400_000, "day"), (3_600_000, "hour"), (60_000, "minute"), (1_000, "second"))


def counted(number: int, noun: str) -> str:
    """Return `1 topic`, `2 topics`."""
    return f"{number:,} {noun}" if number == 1 else f"{number:,} {noun}s"


def listed(names: Iterable[str]) -> str:
    """Return all names, sorted and separated by commas."""
    return ", ".join(sorted(names))


def whole(text: str) -> int | None:
    """Return a whole number as Java parses it; None for another text."""
    return int(text) if _WHOLE.fullmatch(text) else None


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
