"""A drift as text for a terminal."""

from collections.abc import Iterator

from rich.text import Text

from headwater.planner.drift import ApplicationDrift, Drift, FindingKind
from headwater.report.drift.summary import Group, application_summary, groups, summary
from headwater.report.printable import printable
from headwater.report.problem_text import entry_rich, problems_rich


def drift_text(drift: Drift) -> str:
    """Return the drift as plain lines."""
    return drift_rich(drift).plain


def drift_rich(drift: Drift) -> Text:
    """Return the lines of `drift_text` with colors for a terminal."""
    parts = [Text(summary(drift), "bold")]
    for application in drift.applications:
        parts += _application(application)
    if drift.problems:
        parts.append(problems_rich(drift.problems))
    return Text("\n\n").join(parts)


def _application(part: ApplicationDrift) -> Iterator[Text]:
    yield Text.assemble((printable(part.id), "bold underline"), f"  {application_summary(part)}")
    for group in groups(part.findings):
        yield entry_rich(group.severity, group.kind, group.summary, tuple(_details(group)))


def _details(group: Group) -> Iterator[tuple[str, str]]:
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
