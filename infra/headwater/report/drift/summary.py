"""Grouping and counting of findings, shared by all drift reports."""

from collections import Counter
from collections.abc import Iterable, Sequence

import attrs

from headwater.model.problems import Severity
from headwater.planner.drift import ApplicationDrift, Drift, Finding, FindingKind
from headwater.planner.phrases import counted

SEVERITY_NOUNS = {Severity.ERROR: "error", Severity.WARNING: "warning", Severity.INFO: "hint"}
_HEADLINES = {
    FindingKind.RENAMED: "The application id was changed",
    FindingKind.RENUMBERED: "Generated name index changed",
    FindingKind.TOPOLOGY: "Another topology is running",
    FindingKind.MISSING: "Missing",
    FindingKind.RECREATED: "Deleted and re-created",
    FindingKind.OVER_PARTITIONED: "More partitions than declared",
    FindingKind.UNDER_PARTITIONED: "Fewer partitions than declared",
    FindingKind.REPLICATION_FACTOR: "Different replication factor",
    FindingKind.UNAVAILABLE: "Replicas that are not available",
    FindingKind.CONFIG: "Different settings than declared",
    FindingKind.ORPHANED: "Not declared",
    FindingKind.SUSPECTED: "Named like internal topics",
    FindingKind.ACL: "Not granted",
}


@attrs.frozen
class Group:
    """One or more findings with the same kind, severity, reason and fix."""

    findings: tuple[Finding, ...]

    @property
    def kind(self) -> FindingKind:
        return self.findings[0].kind

    @property
    def severity(self) -> Severity:
        return self.findings[0].severity

    @property
    def why(self) -> str:
        return self.findings[0].why

    @property
    def fix(self) -> str:
        return self.findings[0].fix

    @property
    def summary(self) -> str:
        """One sentence: the text of a single finding, or the number of topics, ACLs or differences."""
        if len(self.findings) == 1:
            return self.findings[0].what
        topics = {finding.topic for finding in self.findings if finding.topic is not None}
        noun = "ACL" if self.kind is FindingKind.ACL else "difference"
        number = counted(len(topics), "topic") if topics else counted(len(self.findings), noun)
        return f"{_HEADLINES[self.kind]}: {number}."


def groups(findings: Iterable[Finding]) -> Sequence[Group]:
    """Return the findings in groups: errors first, hints last, otherwise in the order of the findings."""
    members: dict[tuple[Severity, FindingKind, str, str], list[Finding]] = {}
    for finding in findings:
        members.setdefault((finding.severity, finding.kind, finding.why, finding.fix), []).append(finding)
    order = list(Severity)
    merged = (Group(tuple(findings)) for findings in members.values())
    return sorted(merged, key=lambda group: order.index(group.severity))


def summary(drift: Drift) -> str:
    """Return one line: the number of differences, and whether the comparison is complete."""
    topics = sum(len(part.topics) for part in drift.applications)
    compared = f"{counted(topics, 'topic')} of {counted(len(drift.applications), 'application')}"
    findings = drift.differences
    if findings:
        text = f"Drift: {counted(len(findings), 'difference')} ({severity_counts(findings)}) in {compared}."
    elif drift.problems:
        text = f"No difference found in {compared}."
    else:
        text = f"No drift: {compared} {'is' if topics == 1 else 'are'} as declared."
    if tolerated := sum(not finding.counts for finding in findings):
        text += f" Policies tolerate {'all' if tolerated == len(findings) else tolerated} of them."
    if suspected := sum(1 for finding in drift.findings if not finding.is_difference):
        text += f" {counted(suspected, 'other topic')} {'is' if suspected == 1 else 'are'} suspected."
    if drift.problems:
        text += f" The comparison is not complete: {counted(len(drift.problems), 'error')}."
    return text


def severity_counts(findings: Iterable[Finding]) -> str:
    """Return the number of findings of each severity: `1 error, 2 warnings`."""
    counts = Counter(finding.severity for finding in findings)
    return ", ".join(
        counted(counts[severity], noun) for severity, noun in SEVERITY_NOUNS.items() if counts[severity]
    )


def application_summary(part: ApplicationDrift) -> str:
    """Return the state of one application: `2 topics, as declared` or `2 topics, 1 error`."""
    return f"{counted(len(part.topics), 'topic')}, {severity_counts(part.findings) or 'as declared'}"
