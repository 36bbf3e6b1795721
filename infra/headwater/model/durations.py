"""Durations as documents write them, and their values in milliseconds."""

import re

_UNITS = {"d": 86_400_000, "h": 3_600_000, "m": 60_000, "s": 1_000}
"""Unit → milliseconds, the largest first."""
_SHORT = re.compile(r"([0-9]+)(ms|d|h|m|s)")
_ISO = re.compile(r"P(?:(\d+)D)?(?:T(?:(\d+)H)?(?:(\d+)M)?(?:(\d+)(?:\.(\d+))?S)?)?\Z")
_MOST_UNITS = 10**9
_MOST_MILLISECONDS = 10**18
"""What the schema accepts with a unit is below these numbers; it accepts more milliseconds without a unit."""


def duration_text(milliseconds: int | None) -> str:
    """Return a duration in its largest whole unit: `25h`, `90s`, `500ms`, `-5s`; `none` if there is none."""
    if milliseconds is None:
        return "none"
    for unit, size in _UNITS.items():
        if milliseconds and milliseconds % size == 0 and abs(milliseconds) // size < _MOST_UNITS:
            return f"{milliseconds // size}{unit}"
    return f"{milliseconds}ms" if abs(milliseconds) < _MOST_MILLISECONDS else f"{milliseconds}"


def parse_duration(duration: float | str) -> int:
    """Return the milliseconds of a duration that fits the schema's `duration` or `signedDuration`."""
    if not isinstance(duration, str):
        return int(duration)
    if duration.startswith("-"):
        return -parse_duration(duration[1:])
    iso = _ISO.match(duration)
    if iso is None:
        return sum(int(amount) * _UNITS.get(unit, 1) for amount, unit in _SHORT.findall(duration))
    days, hours, minutes, seconds, fraction = (part or "0" for part in iso.groups())
    amounts = zip((days, hours, minutes, seconds), _UNITS.values(), strict=True)
    return sum(int(amount) * size for amount, size in amounts) + int(fraction.ljust(3, "0"))
