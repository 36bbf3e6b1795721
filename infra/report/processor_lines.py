"""The processors of a running application as lines of text."""

from collections.abc import Mapping
from typing import Any

from infra.planner.phrases import counted
from infra.report.printable import printable

_MILLION = 1_000_000
_MINUTE, _HOUR = 60, 3_600


def processors_line(status: Mapping[str, Any]) -> str:
    """Return the line of the processors of `/status`; empty if the document declares no number."""
    if status["processors"] is None:
        return ""
    line = f"processors: {status['processors']}"
    if status["target"] is None:
        return line
    remaining = f"{count_phrase(status['remaining'])} records remaining"
    return f"{line} (expanding to {status['target']}: {printable(status['phase'])}, {remaining})"


def problem_line(status: Mapping[str, Any], problem: Mapping[str, Any]) -> str:
    """Return the line of a problem of the last expansion: it was refused, or one that runs is delayed."""
    what = "refused" if status["target"] is None else "delayed"
    return printable(f"expansion {what}: {problem['summary']}")


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
