"""A drift as Markdown, for issues, chats and job summaries."""

from collections.abc import Iterator

from headwater.model.problems import Severity
from headwater.planner.drift import ApplicationDrift, Drift
from headwater.report.drift.summary import Group, application_summary, groups, summary
from headwater.report.markdown import block, code, prose
from headwater.report.problem_text import problem_text

SIGNS = {Severity.ERROR: "🔴", Severity.WARNING: "🟠", Severity.INFO: "🔵"}


def drift_markdown(drift: Drift) -> str:
    """Return a document: a summary line, then a section for each application."""
    parts = [f"**{prose(summary(drift))}**\n", f"Cluster {code(drift.cluster_id)}\n"]
    for application in drift.applications:
        parts += application_markdown(application)
    if drift.problems:
        parts.append("### Not compared\n")
        parts += [block(problem_text(problem)) for problem in drift.problems]
    return "\n".join(parts)


def application_markdown(part: ApplicationDrift) -> Iterator[str]:
    """Yield the section of one application."""
    yield f"### {code(part.id)}: {application_summary(part)}\n"
    for group in groups(part.findings):
        yield from group_markdown(group)


def group_markdown(group: Group) -> Iterator[str]:
    """Yield the headline and the table of one group of findings."""
    yield f"{SIGNS[group.severity]} **{group.severity.value}, {group.kind}**: {prose(group.summary)}\n"
    yield "| topic | expected | found |\n|---|---|---|"
    for finding in group.findings:
        topic = code(finding.topic) if finding.topic else "all"
        yield f"| {topic} | {prose(finding.expected)} | {prose(finding.found)} |"
    yield f"\n*Why it matters*: {prose(group.why)}\n"
    yield f"*How to fix it*: {prose(group.fix)}\n"
