"""The Markdown of the comment: a summary, then collapsed details, within the length limit of the forges."""

import re
from collections import Counter
from collections.abc import Iterator, Sequence

import attrs

from headwater.planner import ActionKind
from headwater.planner.edits import Edit
from headwater.planner.phrases import counted
from headwater.report.drift.texts import group_findings, group_markdown
from headwater.report.edits.texts import edit_markdown, edit_summary
from headwater.report.markdown import LIMIT, code_block, code_span, escape_prose, inline_html, markdown_table
from headwater.report.plan_comment.inputs import Preview, ReportedDrift, Step
from headwater.report.problems import severity_counts

_MOST_EDGES, _LONGEST_GRAPH = 400, 40_000  # Mermaid draws at most 500 edges and reads 50,000 characters
_VERBS = {"create": "create", "import": "adopt", "delete": "delete", "replace": "replace"}
_UNCOUNTED = ("create-replacement", "delete-replaced", "refresh", "read")
_ROWS = (None, None, 20, 0)
"""The most lines, rows and messages at each level of detail; the first level has graphs, too."""


@attrs.frozen
class Section:
    """Markdown at several levels of detail, the longest first; each is complete Markdown."""

    variants: tuple[str, ...]


def plan_comment(
    preview: Preview, drift: ReportedDrift | None = None, limit: int = LIMIT, *, edit: Edit | None = None
) -> str:
    """Return the comment, at most `limit` characters.

    Its first line is a hidden marker that is the same for all comments about a stack: `headwater publish`
    finds the comment to replace by it.
    """
    head = "\n".join([comment_marker(preview), f"### {_headline_of(preview, edit)}\n"])
    sections = [
        *_error_sections(preview),
        *_risk_sections(preview),
        *_edit_section(edit),
        *_digest_section(preview),
        *_warning_sections(preview),
        *_application_sections(preview, drift),
        *_drift_section(drift),
    ]
    for level in range(len(_ROWS)):
        texts = [section.variants[min(level, len(section.variants) - 1)] for section in sections]
        whole = "\n".join([head, *texts])
        if len(whole) <= limit:
            return whole
    return _drop_sections(head, texts, limit)


def comment_marker(preview: Preview) -> str:
    """Return the HTML comment that marks the comments about a stack."""
    stack = re.sub(r"[^\w./-]|-(?=-)|-$", "_", preview.stack)
    return f"<!-- headwater plan-comment {stack} -->"


def _drop_sections(head: str, texts: Sequence[str], limit: int) -> str:
    """Drop sections at the end until the text fits."""
    remaining, kept = limit - len(head) - 120, []
    for text in texts:
        remaining -= len(text) + 1
        if remaining < 0:
            break
        kept.append(text)
    more = f"*{counted(len(texts) - len(kept), 'more section')}: see `headwater plan`.*\n"
    return "\n".join([head, *kept, more])


def _headline_of(preview: Preview, edit: Edit | None) -> str:
    """Return the summary. Its color says what to read first: nothing that can lose data is green."""
    others = (
        (preview.recreated, "⚠️ {} of them re-created after a loss"),
        (preview.reconfigured, f"{{}} to {ActionKind.RECONFIGURE.value}"),
    )
    acls = ((preview.granted_acls, "{} to grant"), (preview.revoked_acls, "{} to revoke"))
    counts = [_counts_text(preview.steps), *(text.format(number) for number, text in others if number)]
    counts += [text.format(counted(number, "ACL")) for number, text in acls if number]
    if preview.errors:
        return f"🔴 Kafka topics: refused, {counted(len(preview.errors), 'error')}; nothing will be changed"
    changes = ", ".join(text for text in counts if text)
    color = "🟠" if preview.risks or _loses_data(edit) else "🟢" if changes else "⚪"
    return f"{color} Kafka topics: {changes or 'no changes'}"


def _loses_data(edit: Edit | None) -> bool:
    return edit is not None and any(topic.loses_data for topic in edit.topics)


def _counts_text(steps: Sequence[Step]) -> str:
    ops = Counter(step.op for step in steps)
    expanding = [step for step in steps if step.added_partitions]
    adopted = {step.topic for step in steps if step.op == "import"}
    changed = {step.topic for step in steps if step.op == "update" and not step.added_partitions} - adopted
    counts = [f"{ops[op]:,} to {word}" for op, word in _VERBS.items() if ops[op]]
    if expanding:
        added = counted(sum(step.added_partitions for step in expanding), "partition")
        counts.append(f"{len(expanding):,} to expand ({added} more)")
    if changed:
        counts.append(f"{len(changed):,} to change")
    return ", ".join(counts)


def _risk_sections(preview: Preview) -> Iterator[Section]:
    """Yield the changes that endanger data, before the others: a long plan must not hide them."""
    if preview.risks:
        title = f"⚠️ **{counted(len(preview.risks), 'change')} can lose data or move keys:**\n"
        yield Section(tuple(f"{title}\n{_item_lines(preview.risks, rows)}" for rows in (None, None, 100, 30)))


def _edit_section(edit: Edit | None) -> Iterator[Section]:
    """Yield what the pull request does to the state of applications, before the topics of the plan."""
    if edit is None:
        return
    sign = "⚠️ " if _loses_data(edit) else ""
    title = f"{sign}{inline_html(edit_summary(edit))}"
    is_edited = any(part.operators or part.settings for part in edit.applications)
    if not edit.has_changes and edit.is_complete and not is_edited:
        yield Section((f"{title}\n",))
        return
    variants = [_collapsed_block(title, edit_markdown(edit, rows=rows)) for rows in (None, None, 20)]
    yield Section((*variants, f"{title}\n"))


def _item_lines(lines: Sequence[str], rows: int | None) -> str:
    shown = [f"- {code_span(line)}\n" for line in lines[:rows]]
    more = len(lines) - len(shown)
    return "".join([*shown, *([f"- … and **{more:,} more** that are not shown here\n"] if more else [])])


def _digest_section(preview: Preview) -> Iterator[Section]:
    if preview.digest:
        yield Section((f"Plan {code_span(preview.digest)}\n",))


def _error_sections(preview: Preview) -> Iterator[Section]:
    """Yield the errors: a refused plan changes nothing before they are fixed."""
    if preview.errors:
        yield Section(tuple(_message_blocks(preview.errors, rows) for rows in (None, None, 20, 3)))


def _warning_sections(preview: Preview) -> Iterator[Section]:
    if preview.warnings:
        title = f"⚠️ {counted(len(preview.warnings), 'warning')}"
        yield Section(
            tuple(
                _collapsed_block(title, _message_blocks(preview.warnings, rows))
                for rows in (None, None, 20, 3)
            )
        )


def _message_blocks(messages: Sequence[str], rows: int | None) -> str:
    shown = [code_block(_truncate_message(message)) for message in messages[:rows]]
    more = len(messages) - len(shown)
    return "\n".join([*shown, *([f"… and {more:,} more\n"] if more else [])])


def _truncate_message(message: str) -> str:
    longest = 4_000
    return message if len(message) <= longest else f"{message[:longest]}…"


def _application_sections(preview: Preview, drift: ReportedDrift | None) -> Iterator[Section]:
    changing: dict[str, list[Step]] = {id_: [] for id_ in preview.texts}
    for step in preview.steps:
        changing.setdefault(step.application, []).append(step)
    for id_, steps in sorted(changing.items()):
        counts = _counts_text(steps)
        title = f"<code>{inline_html(id_)}</code>" + (f": {counts}" if counts else "")
        picture = _graph_block(drift.graphs.get(id_, "")) if drift else ""
        text = preview.texts.get(id_)
        variants = []
        for level, rows in enumerate(_ROWS):
            body = _plan_lines(text, rows) if text else _step_table(steps, rows)
            variants.append(
                _collapsed_block(title, body + (picture if level == 0 else "")) if body else f"{title}\n"
            )
        yield Section(tuple(variants))


def _plan_lines(text: str, rows: int | None) -> str:
    """Return the text of an application's plan, without its name."""
    lines = text.splitlines()
    if rows == 0:
        return ""
    shown = lines[:rows]
    more = len(lines) - len(shown)
    return code_block("\n".join([*shown, *([f"… {more:,} more lines"] if more else [])]))


def _step_table(steps: Sequence[Step], rows: int | None) -> str:
    if rows == 0:
        return ""
    shown = [step for step in steps if step.op not in _UNCOUNTED]
    return "\n".join(markdown_table("| topic | | partitions |", shown, _step_row, rows))


def _step_row(step: Step) -> str:
    return f"| {code_span(step.topic)} | {_verb_of(step)} | {_change_text(step)} |"


def _verb_of(step: Step) -> str:
    return "expand" if step.added_partitions else _VERBS.get(step.op, "change")


def _change_text(step: Step) -> str:
    if step.added_partitions:
        return f"{step.before} → {step.after}"
    return str(step.after or step.before or "")


def _graph_block(text: str) -> str:
    is_drawn = text and len(text) <= _LONGEST_GRAPH and len(re.findall(r"-->|-\.-", text)) <= _MOST_EDGES
    return f"\n{code_block(text, 'mermaid')}" if is_drawn else ""


def _drift_section(drift: ReportedDrift | None) -> Iterator[Section]:
    if drift is None:
        return
    findings = [finding for found in drift.findings.values() for finding in found if finding.is_difference]
    if not findings and not drift.problems:
        yield Section((f"No drift: {counted(drift.topics, 'topic')} compared before this change.\n",))
        return
    title = f"Drift before this change: {severity_counts(findings) or 'the comparison is not complete'}"
    summaries = [
        f"- {code_span(finding.topic or finding.application)}: {finding.kind}" for finding in findings
    ]
    problems = "".join(f"{escape_prose(problem)}\n\n" for problem in drift.problems)
    full = "\n".join(line for group in group_findings(findings) for line in group_markdown(group))
    yield Section(
        (
            _collapsed_block(title, problems + full),
            _collapsed_block(title, problems + full),
            _collapsed_block(title, "\n".join(summaries[:50]) + "\n"),
            f"{title}\n",
        )
    )


def _collapsed_block(title: str, body: str) -> str:
    return f"<details><summary>{title}</summary>\n\n{body}\n</details>\n"
