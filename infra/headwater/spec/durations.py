"""Durations: milliseconds, `1h30m` or `PT1H30M` (ISO 8601). The schema checks their form."""

import re

from headwater.spec.schema import document_schema, matches

_SHORT = re.compile(r"([0-9]+)(ms|d|h|m|s)")
_ISO = re.compile(r"P(?:(\d+)D)?(?:T(?:(\d+)H)?(?:(\d+)M)?(?:(\d+)(?:\.(\d+))?S)?)?\Z")
_MS = {"ms": 1, "s": 1_000, "m": 60_000, "h": 3_600_000, "d": 86_400_000}


def milliseconds(duration: float | str) -> int:
    """Return the milliseconds of a duration that fits the schema's `duration` or `signedDuration`."""
    if not isinstance(duration, str):
        return int(duration)
    if duration.startswith("-"):
        return -milliseconds(duration[1:])
    iso = _ISO.match(duration)
    if iso is None:
        return sum(int(amount) * _MS[unit] for amount, unit in _SHORT.findall(duration))
    days, hours, minutes, seconds, fraction = (part or "0" for part in iso.groups())
    whole = int(days) * _MS["d"] + int(hours) * _MS["h"] + int(minutes) * _MS["m"] + int(seconds) * _MS["s"]
    return whole + int(fraction.ljust(3, "0"))


def read_duration(value: object) -> int | None:
    """Return the milliseconds of a duration from a setting or the command line; None if it is invalid."""
    if isinstance(value, str):
        pattern = document_schema()["$defs"]["duration"]["pattern"]
        return milliseconds(value) if matches(pattern, value) else None
    return value if isinstance(value, int) and not isinstance(value, bool) and value >= 0 else None
