"""The processors of a running application as lines of text."""

from collections.abc import Mapping
from typing import Any

from headwater.planner.phrases import count_phrase
from headwater.report.printable import printable


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
