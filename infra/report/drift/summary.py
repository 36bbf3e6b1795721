"""How much differs, in numbers and in one line."""

from collections import Counter
from collections.abc import Iterable

from infra.model.problems import Severity
from infra.planner.drift import ApplicationDrift, Drift, Finding
from infra.planner.wording import counted

SEVERITY_NOUNS = {Severity.ERROR: "error", Severity.WARNING: "warning", Severity.INFO: "hint"}


def summary(drift: Drift) -> str:
    """Return one line: what differs, and whether everything could be compared."""
    topics = sum(len(part.topics) for part in drift.applications)
    where = f"{counted(topics, 'topic')} of {counted(len(drift.applications), 'application')}"
    findings = tuple(drift.findings)
    if findings:
        text = f"Drift: {counted(len(findings), 'difference')} ({weights(findings)}) in {where}."
    elif drift.problems:
        text = f"No difference found in {where}."
    else:
        text = f"No drift: {where} {'is' if topics == 1 else 'are'} as declared."
    if drift.problems:
        text += f" The comparison is not complete: {counted(len(drift.problems), 'error')}."
    return text


def weights(findings: Iterable[Finding]) -> str:
    """Return `1 error, 2 warnings`."""
    counts = Counter(finding.severity for finding in findings)
    return ", ".join(
        counted(counts[severity], noun) for severity, noun in SEVERITY_NOUNS.items() if counts[severity]
    )


def standing(part: ApplicationDrift) -> str:
    """Return how one application stands: `2 topics, as declared` or `2 topics, 1 error`."""
    return f"{counted(len(part.topics), 'topic')}, {weights(part.findings) or 'as declared'}"
