"""Durations as documents write them."""

_UNITS = ((86_400_000, "d"), (3_600_000, "h"), (60_000, "m"), (1_000, "s"))
_MOST_UNITS = 10**9
_MOST_MILLISECONDS = 10**18
"""What the schema accepts with a unit is below these numbers; it accepts more milliseconds without a unit."""


def duration_text(milliseconds: int | None) -> str:
    """Return a duration in its largest whole unit: `25h`, `90s`, `500ms`, `-5s`; `none` if there is none."""
    if milliseconds is None:
        return "none"
    for size, unit in _UNITS:
        if milliseconds and milliseconds % size == 0 and abs(milliseconds) // size < _MOST_UNITS:
            return f"{milliseconds // size}{unit}"
    return f"{milliseconds}ms" if abs(milliseconds) < _MOST_MILLISECONDS else f"{milliseconds}"
