"""The findings of `headwater doctor` as text and as JSON."""

import textwrap
from collections import Counter
from collections.abc import Iterator, Sequence
from typing import Any

from rich.console import Group, RenderableType
from rich.text import Text

from headwater.doctor import Finding, Section, Status, has_errors
from headwater.report.markdown import printable, without_command

_STYLES = {Status.OK: "green", Status.WARNING: "yellow", Status.ERROR: "bold red", Status.UNKNOWN: "cyan"}
_NOUNS = {Status.ERROR: "error", Status.WARNING: "warning", Status.UNKNOWN: "check not made"}
_PLURALS = {Status.ERROR: "errors", Status.WARNING: "warnings", Status.UNKNOWN: "checks not made"}
_STATUS_WIDTH = 9
_CHECK_WIDTH = 20


def doctor_json(findings: Sequence[Finding]) -> dict[str, Any]:
    """Return what `headwater doctor --format json` prints."""
    return {
        "version": 1,
        "ok": not has_errors(findings),
        "checks": [
            {
                "section": finding.section.value,
                "check": finding.check,
                "status": finding.status.value,
                "text": finding.text,
                "why": finding.why or None,
                "fix": finding.fix or None,
            }
            for finding in findings
        ],
    }


def doctor_rich(findings: Sequence[Finding], width: int) -> RenderableType:
    """Return a line for each check, below it reason and remedy, and a summary."""
    lines: list[Text] = []
    for section in Section:
        if own := [finding for finding in findings if finding.section is section]:
            lines.append(Text(section.value, "bold"))
            lines += [line for finding in own for line in _finding_lines(finding, width)]
            lines.append(Text())
    return Group(*lines, _summary_of(findings))


def _finding_lines(finding: Finding, width: int) -> Iterator[Text]:
    margin = 2 + _STATUS_WIDTH + _CHECK_WIDTH
    first, *rest = _wrap_text(finding.text, width - margin)
    head = Text("  ")
    head.append(finding.status.value.ljust(_STATUS_WIDTH), _STYLES[finding.status])
    head.append(f"{printable(finding.check).ljust(_CHECK_WIDTH - 1)} {first}")
    yield head
    yield from (Text(f"{' ' * margin}{line}") for line in rest)
    for label, text in (("why", finding.why), ("fix", finding.fix)):
        for number, line in enumerate(_wrap_text(text, width - margin - 5) if text else ()):
            yield Text(f"{' ' * margin}{'' if number else label:5}{line}")


def _wrap_text(text: str, width: int) -> list[str]:
    lines = textwrap.wrap(printable(text), max(width, 20), break_long_words=False, break_on_hyphens=False)
    return [without_command(line) for line in lines] or [""]


def _summary_of(findings: Sequence[Finding]) -> Text:
    counts = Counter(finding.status for finding in findings)
    parts = [
        f"{counts[status]} {_NOUNS[status] if counts[status] == 1 else _PLURALS[status]}"
        for status in _NOUNS
        if counts[status]
    ]
    fine = counts[Status.OK]
    return Text(", ".join([*parts, f"{fine} of {len(findings)} checks are fine"]))
