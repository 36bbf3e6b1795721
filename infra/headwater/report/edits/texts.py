"""An edit as text for a terminal, and as Markdown for the pull request that contains it."""

from collections import Counter
from collections.abc import Iterable, Iterator

from rich.text import Text

from headwater.model.compiled import TopicKind
from headwater.planner.edits import (
    ApplicationEdit,
    Edit,
    NameLine,
    OperatorEdit,
    SettingEdit,
    TopicEdit,
    Verdict,
)
from headwater.planner.phrases import counted, few_names, listed
from headwater.report.markdown import (
    LIMIT,
    code_span,
    escape_prose,
    grouped_names,
    markdown_table,
    printable,
    shorten_markdown,
)
from headwater.report.problems import SIGNS, entry_rich, problem_blocks, problems_rich

_ORDER = tuple(Verdict)
_MOST_CHARACTERS = 100
EDITED_OPERATORS = "Edited operators:"
EDITED_SETTINGS = "Edited settings:"


def edit_summary(edit: Edit) -> str:
    """Return one line: what is lost, what changes, and whether the comparison is complete."""
    compared = counted(len(edit.applications), "application")
    lost = [topic for topic in edit.topics if topic.loses_data]
    if lost:
        text = f"Change of the topology: {_losses_phrase(lost)} in {compared}."
    elif not edit.applications:
        text = "Change of the topology: no application was compared, because none is on both sides."
        if edit.problems:
            text = "Change of the topology: no application was compared, because of errors."
    elif edit.has_changes:
        text = f"Change of the topology: no state is lost in {compared}."
    else:
        text = f"Change of the topology: nothing changes for state and topics in {compared}."
    if not edit.is_complete:
        text += " The comparison is not complete."
    return text


def _losses_phrase(lost: Iterable[TopicEdit]) -> str:
    counts = Counter(topic.kind is TopicKind.CHANGELOG for topic in lost)
    stores, topics = counts[True], counts[False]
    parts = [
        f"{counted(stores, 'store')} {'loses its' if stores == 1 else 'lose their'} state" if stores else "",
        f"records in flight of {counted(topics, 'topic')} are lost" if topics else "",
    ]
    return ", ".join(part for part in parts if part)


def application_summary(part: ApplicationEdit) -> str:
    """Return the number of topics of each verdict: `1 renamed, 2 kept`."""
    counts = Counter(topic.verdict for topic in part.topics)
    found = ", ".join(f"{counts[verdict]:,} {verdict}" for verdict in _ORDER if counts[verdict])
    versions = (
        f"Kafka Streams {part.before} to {part.after}, "
        if part.before is not None and part.before != part.after
        else ""
    )
    former = f"formerly {part.former_id}, " if part.former_id is not None else ""
    return f"{former}{versions}{found or 'no state and no internal topics'}"


def restart_sentence(part: ApplicationEdit) -> str:
    """Return the sentence about restarting the application."""
    if part.is_rolling and not part.needs_new_group:
        return "Rolling restart: safe."
    reason = part.obstacle or "the group must be a new one"
    text = f"Rolling restart: not safe, because {reason}."
    if part.needs_new_group:
        text += " A new group is needed: with `group.protocol: streams`, brokers refuse a changed topology."
    return text


def report_remarks(edit: Edit) -> Iterator[str]:
    """Yield sentences about the whole report."""
    if edit.added:
        yield f"New applications: {listed(edit.added)}."
    if edit.removed:
        yield f"Removed applications, whose topics stay until they are deleted: {listed(edit.removed)}."
    if edit.assumed:
        yield (
            f"Partition counts of {listed(edit.assumed)} are not known: the same count is assumed for all of "
            "them. Give them by --partitions, or name a cluster."
        )


def operator_values(operator: OperatorEdit) -> str:
    """Return what changes: the aspect, and its text before and afterwards, cut if it is long."""
    if operator.is_on_one_side:
        return f"{operator.aspect} {'added' if operator.before is None else 'removed'}"
    old, new = (_shorten_value(each) for each in (operator.before, operator.after))
    return f"{operator.aspect}: {old} becomes {new}"


def setting_values(setting: SettingEdit) -> str:
    """Return the value before and afterwards, cut if it is long; `changed` if it is not shown."""
    if setting.before == setting.after:
        return "changed"
    old, new = (_shorten_value(each) for each in (setting.before, setting.after))
    return f"{old} becomes {new}"


def _shorten_value(text: str | None) -> str:
    if text is None:
        return "nothing"
    shown = printable(text).replace("`", "'")
    return f"`{shown if len(shown) <= _MOST_CHARACTERS else f'{shown[: _MOST_CHARACTERS - 1]}…'}`"


def operator_consequence(operator: OperatorEdit) -> str:
    """Return what follows, with the stores that keep their state."""
    stores = f" Kept after it: {few_names(operator.stores)}." if operator.stores else ""
    return f"{operator.why}{stores}"


def changed_topics(part: ApplicationEdit) -> tuple[TopicEdit, ...]:
    """Return the topics that need attention: all that are not simply kept."""
    return tuple(topic for topic in part.topics if not topic.is_unchanged)


def kept_topics(part: ApplicationEdit) -> tuple[str, ...]:
    """Return the names of the topics that are kept without a remark."""
    names = {topic.topic for topic in changed_topics(part)}
    return tuple(topic.topic for topic in part.topics if topic.topic not in names)


def short_markdown(edit: Edit) -> str:
    """Return the document of `edit_markdown`, shortened to the limit of forges."""
    return shorten_markdown(
        lambda rows: edit_markdown(edit, rows=rows), "headwater change --format html", LIMIT
    )


def edit_markdown(edit: Edit, *, rows: int | None = None) -> str:
    """Return a document: a summary line, then a section for each application with at most `rows` topics."""
    parts = [f"**{escape_prose(edit_summary(edit))}**\n"]
    parts += [f"{escape_prose(remark)}\n" for remark in report_remarks(edit)]
    for application in edit.applications:
        parts += _markdown_parts(application, rows)
    if edit.problems:
        parts.append("### Not complete\n")
        parts += problem_blocks(edit.problems, rows)
    return "\n".join(parts)


def _markdown_parts(part: ApplicationEdit, rows: int | None) -> Iterator[str]:
    yield f"### {code_span(part.id)}: {escape_prose(application_summary(part))}\n"
    yield f"{escape_prose(restart_sentence(part))}\n"
    topics = changed_topics(part)
    if topics:
        yield from markdown_table("| | topic | what | first |", topics, _topic_row, rows)
        for why, subjects in grouped_names((topic.why, topic.topic) for topic in topics[:rows]):
            yield f"*Why it matters*{subjects}: {escape_prose(why)}\n"
    if rows == 0:
        return
    if names := kept_topics(part):
        yield f"Kept: {', '.join(map(code_span, sorted(names)[:rows]))}\n"
    if part.operators:
        yield f"{EDITED_OPERATORS}\n"
        yield from markdown_table(
            "| at | operator | what | consequence |", part.operators, _operator_row, rows
        )
    if part.settings:
        yield f"{EDITED_SETTINGS}\n"
        yield from markdown_table("| setting | what | meaning |", part.settings, _setting_row, rows)
    if part.lines:
        yield "Lines that keep the old names (checked together):\n"
        yield from markdown_table("| at | line | in Java |", part.lines, _name_row)
        if part.still_lost:
            yield f"No name keeps {escape_prose(listed(part.still_lost))}.\n"
    yield from (f"{number}. {escape_prose(step)}" for number, step in enumerate(part.steps, 1))
    yield ""
    yield from (f"- {escape_prose(remark)}" for remark in part.remarks)
    yield ""


def _topic_row(topic: TopicEdit) -> str:
    cells = (f"{SIGNS[topic.severity]} {topic.verdict}", code_span(topic.topic), escape_prose(topic.what))
    return f"| {' | '.join((*cells, escape_prose(topic.first)))} |"


def _operator_row(operator: OperatorEdit) -> str:
    at = code_span(str(operator.location)) if operator.location is not None else ""
    cells = escape_prose(operator_values(operator)), escape_prose(operator_consequence(operator))
    return f"| {at} | {code_span(operator.operator)} | {' | '.join(cells)} |"


def _setting_row(setting: SettingEdit) -> str:
    values, why = escape_prose(setting_values(setting)), escape_prose(setting.why)
    return f"| {code_span(setting.key)} | {values} | {why} |"


def _name_row(line: NameLine) -> str:
    return f"| {code_span(str(line.location))} | {code_span(line.document)} | {code_span(line.code)} |"


def edit_text(edit: Edit) -> str:
    """Return the edit as plain lines."""
    return edit_rich(edit).plain


def edit_rich(edit: Edit) -> Text:
    """Return the lines of `edit_text` with colors for a terminal."""
    parts = [Text(edit_summary(edit), "bold"), *map(_text_line, report_remarks(edit))]
    for application in edit.applications:
        parts += _terminal_parts(application)
    if edit.problems:
        parts.append(problems_rich(edit.problems))
    return Text("\n\n").join(parts)


def _terminal_parts(part: ApplicationEdit) -> Iterator[Text]:
    lines = [printable(f"  {sentence}") for sentence in (restart_sentence(part), *part.remarks)]
    yield Text.assemble(
        (printable(part.id), "bold underline"),
        f"  {printable(application_summary(part))}",
        "\n" + "\n".join(lines),
    )
    for topic in changed_topics(part):
        yield entry_rich(topic.severity, topic.verdict, topic.what, tuple(_topic_details(topic)))
    if names := kept_topics(part):
        yield _text_line(f"kept: {listed(names)}")
    if part.operators:
        yield Text("\n").join([Text(EDITED_OPERATORS, "bold"), *_operator_lines(part)])
    if part.settings:
        yield Text("\n").join([Text(EDITED_SETTINGS, "bold"), *_setting_lines(part)])
    if part.lines:
        yield Text("\n").join(
            [Text("Lines that keep the old names (checked together):", "bold"), *_name_lines(part)]
        )
    if part.steps:
        numbered = (f"  {number}. {step}" for number, step in enumerate(part.steps, 1))
        yield Text("\n").join([Text("Steps:", "bold"), *map(_text_line, numbered)])


def _topic_details(topic: TopicEdit) -> Iterator[tuple[str, str]]:
    if topic.location is not None:
        yield "at", str(topic.location)
    if topic.former is not None and topic.former not in topic.what:
        yield "before", topic.former
    yield from (("why", topic.why), ("first", topic.first))


def _operator_lines(part: ApplicationEdit) -> Iterator[Text]:
    for operator in part.operators:
        at = f"{operator.location}: " if operator.location is not None else ""
        yield _text_line(f"  {at}{operator.operator}  {operator_values(operator)}")
        yield _text_line(f"    {operator_consequence(operator)}")


def _setting_lines(part: ApplicationEdit) -> Iterator[Text]:
    for setting in part.settings:
        yield _text_line(f"  {setting.key}  {setting_values(setting)}")
        yield _text_line(f"    {setting.why}")


def _name_lines(part: ApplicationEdit) -> Iterator[Text]:
    for line in part.lines:
        yield _text_line(f"  {line.location}: {line.document}    in Java: {line.code}")
    if part.still_lost:
        yield _text_line(f"  No name keeps {listed(part.still_lost)}.")


def _text_line(text: str) -> Text:
    return Text(printable(text))
