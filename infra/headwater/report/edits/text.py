"""An edit as text for a terminal."""

from collections.abc import Iterator

from rich.text import Text

from headwater.planner.edits import ApplicationEdit, Edit, TopicEdit
from headwater.planner.phrases import listed
from headwater.report.edits.summary import application_summary, changed, kept, remarks, restart, summary
from headwater.report.escaping import printable
from headwater.report.problems import entry_rich, problems_rich


def edit_text(edit: Edit) -> str:
    """Return the edit as plain lines."""
    return edit_rich(edit).plain


def edit_rich(edit: Edit) -> Text:
    """Return the lines of `edit_text` with colors for a terminal."""
    parts = [Text(summary(edit), "bold"), *map(Text, remarks(edit))]
    for application in edit.applications:
        parts += _application_parts(application)
    if edit.problems:
        parts.append(problems_rich(edit.problems))
    return Text("\n\n").join(parts)


def _application_parts(part: ApplicationEdit) -> Iterator[Text]:
    lines = [f"  {restart(part)}", *(f"  {remark}" for remark in part.remarks)]
    yield Text.assemble(
        (printable(part.id), "bold underline"), f"  {application_summary(part)}", "\n" + "\n".join(lines)
    )
    for topic in changed(part):
        yield entry_rich(topic.severity, topic.verdict, topic.what, tuple(_topic_details(topic)))
    if names := kept(part):
        yield Text(f"kept: {listed(names)}")
    if part.lines:
        yield Text("\n").join(
            [Text("Lines that keep the old names (checked together):", "bold"), *_name_lines(part)]
        )
    if part.steps:
        numbered = (f"  {number}. {step}" for number, step in enumerate(part.steps, 1))
        yield Text("\n").join([Text("Steps:", "bold"), *map(Text, numbered)])


def _topic_details(topic: TopicEdit) -> Iterator[tuple[str, str]]:
    if topic.location is not None:
        yield "at", str(topic.location)
    if topic.former is not None and topic.former not in topic.what:
        yield "before", topic.former
    yield from (("why", topic.why), ("first", topic.first))


def _name_lines(part: ApplicationEdit) -> Iterator[Text]:
    for line in part.lines:
        yield Text(f"  {line.location}: {line.document}    in Java: {line.code}")
    if part.still_lost:
        yield Text(f"  No name keeps {listed(part.still_lost)}.")
