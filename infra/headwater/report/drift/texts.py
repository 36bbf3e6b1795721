"""A drift as text for a terminal, as Markdown and as JSON."""

from collections.abc import Iterable, Iterator, Sequence
from typing import Any

import attrs
from rich.text import Text

from headwater.model.problems import Severity
from headwater.planner.drift import ApplicationDrift, Drift, Finding, FindingKind
from headwater.planner.phrases import counted
from headwater.report.compiled import location_json, problem_json
from headwater.report.graph import build_graph, mermaid_text
from headwater.report.markdown import (
    LIMIT,
    code_span,
    escape_prose,
    markdown_table,
    printable,
    shorten_markdown,
)
from headwater.report.problems import (
    SEVERITY_NOUNS,
    SIGNS,
    entry_rich,
    problem_blocks,
    problems_rich,
    severity_counts,
)

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
        """One sentence: the text of a single finding, or the number of topics or ACLs."""
        if len(self.findings) == 1:
            return self.findings[0].what
        topics = {finding.topic for finding in self.findings if finding.topic is not None}
        noun = "ACL" if self.kind is FindingKind.ACL else "difference"
        number = counted(len(topics), "topic") if topics else counted(len(self.findings), noun)
        return f"{_HEADLINES[self.kind]}: {number}."


def group_findings(findings: Iterable[Finding]) -> Sequence[Group]:
    """Return the findings in groups: errors first, hints last, otherwise in the order of the findings."""
    members: dict[tuple[Severity, FindingKind, str, str], list[Finding]] = {}
    for finding in findings:
        members.setdefault((finding.severity, finding.kind, finding.why, finding.fix), []).append(finding)
    order = list(Severity)
    merged = (Group(tuple(findings)) for findings in members.values())
    return sorted(merged, key=lambda group: order.index(group.severity))


def drift_summary(drift: Drift) -> str:
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


def application_summary(part: ApplicationDrift) -> str:
    """Return the state of one application: `2 topics, as declared` or `2 topics, 1 error, 1 suspected`."""
    differences = [finding for finding in part.findings if finding.is_difference]
    suspected = len(part.findings) - len(differences)
    counts = (severity_counts(differences), f"{suspected:,} suspected" if suspected else "")
    return f"{counted(len(part.topics), 'topic')}, {', '.join(filter(None, counts)) or 'as declared'}"


def drift_text(drift: Drift) -> str:
    """Return the drift as plain lines."""
    return drift_rich(drift).plain


def drift_rich(drift: Drift) -> Text:
    """Return the lines of `drift_text` with colors for a terminal."""
    parts = [Text(drift_summary(drift), "bold")]
    for application in drift.applications:
        parts += _application_text(application)
    if drift.problems:
        parts.append(problems_rich(drift.problems))
    return Text("\n\n").join(parts)


def _application_text(part: ApplicationDrift) -> Iterator[Text]:
    yield Text.assemble((printable(part.id), "bold underline"), f"  {application_summary(part)}")
    for group in group_findings(part.findings):
        yield entry_rich(group.severity, group.kind, group.summary, tuple(_details_of(group)))


def _details_of(group: Group) -> Iterator[tuple[str, str]]:
    first, *rest = group.findings
    if first.location is not None:
        yield "at", str(first.location)
    if not rest:
        yield from (("expected", first.expected), ("found", first.found))
    for number, finding in enumerate(group.findings if rest else ()):
        other = "ACLs" if finding.kind is FindingKind.ACL else "differs"
        label, differs = (
            "topics" if finding.topic else other,
            f"{finding.found}, expected {finding.expected}",
        )
        yield "" if number else label, f"{finding.topic}: {differs}" if finding.topic else differs
    yield "why", group.why
    yield "fix", group.fix


def drift_markdown(drift: Drift, limit: int = LIMIT) -> str:
    """Return a document of at most `limit` characters: a summary line, then a section for each application.

    If it has to be shortened, applications with errors come first, and those without a finding are left out.
    """
    whole = _whole_markdown(drift, drift.applications, None)
    if len(whole) <= limit:
        return whole
    found = sorted((part for part in drift.applications if part.findings), key=_most_severe)
    is_all = len(found) == len(drift.applications)
    return shorten_markdown(
        lambda rows: _whole_markdown(drift, found, rows),
        "headwater drift --format html",
        limit,
        omitted="" if is_all else "applications without a finding are not listed",
    )


def _most_severe(part: ApplicationDrift) -> int:
    return min(tuple(Severity).index(finding.severity) for finding in part.findings)


def _whole_markdown(drift: Drift, applications: Iterable[ApplicationDrift], rows: int | None) -> str:
    parts = [f"**{escape_prose(drift_summary(drift))}**\n", f"Cluster {code_span(drift.cluster_id)}\n"]
    for application in applications:
        parts += _application_markdown(application, rows)
    if drift.problems:
        parts.append("### Not compared\n")
        parts += problem_blocks(drift.problems, rows)
    return "\n".join(parts)


def _application_markdown(part: ApplicationDrift, rows: int | None) -> Iterator[str]:
    yield f"### {code_span(part.id)}: {application_summary(part)}\n"
    for group in group_findings(part.findings):
        yield from group_markdown(group, rows)


def group_markdown(group: Group, rows: int | None = None) -> Iterator[str]:
    """Yield the headline and the table of one group of findings, with at most `rows` of them."""
    yield f"{SIGNS[group.severity]} **{group.severity.value}, {group.kind}**: {escape_prose(group.summary)}\n"
    yield from markdown_table("| topic | expected | found |", group.findings, _finding_row, rows)
    yield f"*Why it matters*: {escape_prose(group.why)}\n"
    yield f"*How to fix it*: {escape_prose(group.fix)}\n"


def _finding_row(finding: Finding) -> str:
    topic = code_span(finding.topic) if finding.topic else "all"
    return f"| {topic} | {escape_prose(finding.expected)} | {escape_prose(finding.found)} |"


def drift_json(drift: Drift) -> dict[str, Any]:
    """Return the document; `mermaid` holds the Mermaid graph of each application."""
    return {
        "version": 1,
        "clusterId": drift.cluster_id,
        "hasDrift": drift.has_drift,
        "isComplete": not drift.problems,
        "summary": _summary_json(drift),
        "applications": [_application_json(part, drift) for part in drift.applications],
        "problems": [problem_json(problem) for problem in drift.problems],
    }


def _summary_json(drift: Drift) -> dict[str, int]:
    severities = [finding.severity for finding in drift.differences]
    return {
        "applications": len(drift.applications),
        "topics": sum(len(part.topics) for part in drift.applications),
        "findings": len(severities),
        **{f"{SEVERITY_NOUNS[severity]}s": severities.count(severity) for severity in Severity},
    }


def _application_json(part: ApplicationDrift, drift: Drift) -> dict[str, Any]:
    return {
        "applicationId": part.id,
        "topics": list(part.topics),
        "findings": [_finding_json(finding) for finding in part.findings],
        "mermaid": mermaid_text(build_graph([part.compiled], drift.partitions)),
    }


def _finding_json(finding: Finding) -> dict[str, Any]:
    return {
        "kind": finding.kind.value,
        "severity": finding.severity.value,
        "counts": finding.counts and finding.is_difference,
        "topic": finding.topic,
        "what": finding.what,
        "expected": finding.expected,
        "found": finding.found,
        "why": finding.why,
        "fix": finding.fix,
        "location": location_json(finding.location),
    }
