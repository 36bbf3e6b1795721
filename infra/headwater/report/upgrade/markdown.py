"""An upgrade as Markdown, for the pull request that changes the version."""

from collections.abc import Iterator

from headwater.model.problems import Severity
from headwater.planner.upgrade import ApplicationUpgrade, Change, Upgrade
from headwater.report.escaping import block, code, prose
from headwater.report.problems import problem_text
from headwater.report.upgrade.summary import application_summary, remarks, restart, summary

_SIGNS = {Severity.ERROR: "🔴", Severity.WARNING: "🟠", Severity.INFO: "🔵"}


def upgrade_markdown(upgrade: Upgrade) -> str:
    """Return a document: a summary line, then a section for each application."""
    parts = [f"**{prose(summary(upgrade))}**\n"]
    if upgrade.cluster_id is not None:
        parts.append(f"Cluster {code(upgrade.cluster_id)}\n")
    parts += [f"{prose(remark)}\n" for remark in remarks(upgrade)]
    for application in upgrade.applications:
        parts += _application(application)
    if upgrade.problems:
        parts.append("### Not complete\n")
        parts += [block(problem_text(problem)) for problem in upgrade.problems]
    return "\n".join(parts)


def _application(part: ApplicationUpgrade) -> Iterator[str]:
    yield f"### {code(part.id)}: {prose(application_summary(part))}\n"
    yield f"{prose(restart(part))}\n"
    for note in part.notes:
        yield f"- {prose(note)}\n"
    for data in part.data:
        yield f"- *Data*: {prose(data.text)}\n"
    if part.changes:
        yield "| | change | before | after |\n|---|---|---|---|"
        for change in part.changes:
            yield _row(change)
        yield ""
        for why, first in dict.fromkeys((change.why, change.first) for change in part.changes):
            yield f"*Why it matters*: {prose(why)}\n"
            yield f"*Do first*: {prose(first)}\n"


def _row(change: Change) -> str:
    sign = _SIGNS[change.severity]
    cells = (f"{sign} {change.kind}", prose(change.what), prose(change.before), prose(change.after))
    return f"| {' | '.join(cells)} |"
