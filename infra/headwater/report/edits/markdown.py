"""An edit as Markdown, for the pull request that contains it."""

from collections.abc import Iterator

from headwater.model.problems import Severity
from headwater.planner.edits import ApplicationEdit, Edit, TopicEdit
from headwater.planner.phrases import listed
from headwater.report.edits.summary import application_summary, changed, kept, remarks, restart, summary
from headwater.report.escaping import block, code, prose
from headwater.report.problems import problem_text

_SIGNS = {Severity.ERROR: "🔴", Severity.WARNING: "🟠", Severity.INFO: "🔵"}


def edit_markdown(edit: Edit, *, rows: int | None = None) -> str:
    """Return a document: a summary line, then a section for each application with at most `rows` topics."""
    parts = [f"**{prose(summary(edit))}**\n"]
    parts += [f"{prose(remark)}\n" for remark in remarks(edit)]
    for application in edit.applications:
        parts += _application_parts(application, rows)
    if edit.problems:
        parts.append("### Not complete\n")
        parts += [block(problem_text(problem)) for problem in edit.problems[:rows]]
    return "\n".join(parts)


def _application_parts(part: ApplicationEdit, rows: int | None) -> Iterator[str]:
    yield f"### {code(part.id)}: {prose(application_summary(part))}\n"
    yield f"{prose(restart(part))}\n"
    topics = changed(part)
    if topics:
        yield "| | topic | what | first |\n|---|---|---|---|"
        yield from (_topic_row(topic) for topic in topics[:rows])
        if len(topics) > len(topics[:rows]):
            yield f"\n… and {len(topics) - len(topics[:rows]):,} more"
        yield ""
        for why in dict.fromkeys(topic.why for topic in topics[:rows]):
            yield f"*Why it matters*: {prose(why)}\n"
    if rows == 0:
        return
    if names := kept(part):
        yield f"Kept: {', '.join(map(code, sorted(names)[:rows]))}\n"
    if part.lines:
        yield "Lines that keep the old names (checked together):\n"
        yield "| at | line | in Java |\n|---|---|---|"
        for line in part.lines:
            yield f"| {code(str(line.location))} | {code(line.document)} | {code(line.code)} |"
        yield ""
        if part.still_lost:
            yield f"No name keeps {prose(listed(part.still_lost))}.\n"
    yield from (f"{number}. {prose(step)}" for number, step in enumerate(part.steps, 1))
    yield ""
    yield from (f"- {prose(remark)}" for remark in part.remarks)
    yield ""


def _topic_row(topic: TopicEdit) -> str:
    cells = (f"{_SIGNS[topic.severity]} {topic.verdict}", code(topic.topic), prose(topic.what))
    return f"| {' | '.join((*cells, prose(topic.first)))} |"
