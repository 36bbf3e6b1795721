"""Findings that say the same of several topics, told together."""

from collections.abc import Iterable, Sequence

import attrs

from infra.model.problems import Severity
from infra.planner.drift import Finding, FindingKind
from infra.planner.wording import counted

_HEADLINES = {
    FindingKind.RENAMED: "The application has another id than its topics",
    FindingKind.RENUMBERED: "Generated index moved",
    FindingKind.MISSING: "Missing",
    FindingKind.RECREATED: "Deleted and created anew",
    FindingKind.OVER_PARTITIONED: "More partitions than declared",
    FindingKind.UNDER_PARTITIONED: "Fewer partitions than declared",
    FindingKind.REPLICATION_FACTOR: "Another replication factor",
    FindingKind.CONFIG: "Other settings than declared",
    FindingKind.ORPHANED: "Declared nowhere",
    FindingKind.ACL: "Not granted",
}


@attrs.frozen
class Group:
    """One or more findings of a kind that matter and are fixed in the same way."""

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
        """One sentence: that of the only finding, or one for all."""
        if len(self.findings) == 1:
            return self.findings[0].what
        topics = {finding.topic for finding in self.findings if finding.topic is not None}
        number = counted(len(topics), "topic") if topics else counted(len(self.findings), "ACL")
        return f"{_HEADLINES[self.kind]}: {number}."


def groups(findings: Iterable[Finding]) -> Sequence[Group]:
    """Group, keeping the order of first appearance; errors come first, hints last."""
    alike: dict[tuple[Severity, FindingKind, str, str], list[Finding]] = {}
    for finding in findings:
        alike.setdefault((finding.severity, finding.kind, finding.why, finding.fix), []).append(finding)
    order = list(Severity)
    found = (Group(tuple(members)) for members in alike.values())
    return sorted(found, key=lambda group: order.index(group.severity))
