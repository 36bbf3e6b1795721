"""PURE. Where reading begins when nothing is committed (`auto.offset.reset`, KIP-1106)."""

import re
from enum import Enum

import attrs

_DURATION = re.compile(
    r"P(?:(?P<days>\d+)D)?(?:T(?:(?P<hours>\d+)H)?(?:(?P<minutes>\d+)M)?(?:(?P<seconds>\d+(?:\.\d+)?)S)?)?"
)
_BY_DURATION = "by_duration:"


class ResetKind(Enum):
    EARLIEST = "earliest"
    LATEST = "latest"
    NONE = "none"
    BY_DURATION = "by_duration"


@attrs.frozen
class Reset:
    """`back_ms` is how far to go back from now; for BY_DURATION only."""

    kind: ResetKind
    back_ms: int = 0

    @classmethod
    def of(cls, text: str) -> "Reset":
        """Read a policy; raises ValueError."""
        lowered = text.strip().lower()
        if lowered.startswith(_BY_DURATION):
            return cls(ResetKind.BY_DURATION, _milliseconds(text.strip()[len(_BY_DURATION) :]))
        return cls(ResetKind(lowered))


def _milliseconds(text: str) -> int:
    match = _DURATION.fullmatch(text.upper())
    if match is None or not any(match.groups()):
        raise ValueError(f"{text!r} is no ISO-8601 duration")
    days, hours, minutes, seconds = (float(part or 0) for part in match.groups())
    return int((((days * 24 + hours) * 60 + minutes) * 60 + seconds) * 1000)
