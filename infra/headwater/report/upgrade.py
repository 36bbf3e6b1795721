"""Reports of an `Upgrade`: text, JSON and Markdown.

`headwater.planner.upgrade` finds the changes; this module renders them.
"""

from collections.abc import Iterable, Iterator, Sequence
from typing import Any

import attrs
from rich.text import Text

from headwater.planner.phrases import counted, listed
from headwater.planner.upgrade import ApplicationUpgrade, Change, ChangeKind, State, Upgrade
from headwater.report.compiled import location_json, problem_json
from headwater.report.markdown import (
    LIMIT,
    code_span,
    escape_prose,
    grouped_names,
    markdown_table,
    printable,
    shorten_markdown,
)
from headwater.report.problems import (
    SIGNS,
    entry_rich,
    problem_blocks,
    problems_rich,
    severity_counts,
)

_STATES = {
    State.NONE: "no state",
    State.KEPT: "state kept",
    State.REBUILT: "state restored from source topics",
    State.LOST: "state lost",
}


def upgrade_summary(upgrade: Upgrade) -> str:
    """Return one line: the number of changes, and whether the comparison is complete."""
    compared = counted(len(upgrade.applications), "application")
    changes = tuple(upgrade.changes)
    target = f"Upgrade to Kafka Streams {upgrade.to}"
    if changes:
        text = f"{target}: {counted(len(changes), 'change')} ({severity_counts(changes)}) in {compared}."
    else:
        found = "no change found" if upgrade.problems else "nothing changes"
        text = f"{target}: {found} in {compared}."
    if upgrade.problems:
        text += f" The comparison is not complete: {counted(len(upgrade.problems), 'problem')}."
    return text


def application_summary(part: ApplicationUpgrade) -> str:
    """Return what happens to one application: `3.9.1 to 4.3.1, 1 hint, state kept`."""
    changes = severity_counts(part.changes)
    if not part.is_known:
        found = f"{changes} found, other changes" if changes else "changes"
        return f"{part.before} to {part.after}, {found} not known"
    return f"{part.before} to {part.after}, {changes or 'nothing changes'}, {_STATES[part.state]}"


def restart_sentence(part: ApplicationUpgrade) -> str:
    """Return the sentence about restarting the application."""
    if part.is_rolling:
        text = "Rolling restart: safe."
    else:
        is_refused = any(change.kind is ChangeKind.REFUSED for change in part.changes)
        stop = (
            "" if is_refused else " Stop all instances before you start the first one with the new version."
        )
        verdict = "not safe" if part.is_known else "not known to be safe"
        text = f"Rolling restart: {verdict}, because {part.obstacle}.{stop}"
    if part.group is not None and not part.group.is_available:
        text += " The coordinator of its group does not answer."
    elif part.group is not None and part.group.is_active:
        members = "" if part.group.members is None else f" with {counted(part.group.members, 'member')}"
        text += f" Its group is active{members}."
    return text


def group_changes(changes: Iterable[Change]) -> Iterator[tuple[Change, ...]]:
    """Yield changes of several topics together if all else is equal, in the order of the changes."""
    members: dict[tuple[object, ...], list[Change]] = {}
    for change in changes:
        alike = (change.kind, change.before, change.after, change.first, change.topic is None)
        members.setdefault((*alike, change.what) if change.topic is None else alike, []).append(change)
    return (tuple(group) for group in members.values())


def upgrade_remarks(upgrade: Upgrade) -> Iterator[str]:
    """Yield sentences about the whole report."""
    if upgrade.assumed:
        yield (
            f"Partition counts are not compared, because counts of {listed(upgrade.assumed)} are not known. "
            "Give them by --partitions, or name a cluster."
        )


def upgrade_text(upgrade: Upgrade) -> str:
    """Return the upgrade as plain lines."""
    return upgrade_rich(upgrade).plain


def upgrade_rich(upgrade: Upgrade) -> Text:
    """Return the lines of `upgrade_text` with colors for a terminal."""
    parts = [
        Text(upgrade_summary(upgrade), "bold"),
        *(Text(printable(each)) for each in upgrade_remarks(upgrade)),
    ]
    for application in upgrade.applications:
        parts += _application_text(application)
    if upgrade.problems:
        parts.append(problems_rich(upgrade.problems))
    return Text("\n\n").join(parts)


def _application_text(part: ApplicationUpgrade) -> Iterator[Text]:
    lines = [
        f"  {restart_sentence(part)}",
        *(f"  Note: {note}" for note in part.notes),
        *(f"  Data: {note.text}" for note in part.data),
    ]
    yield Text.assemble(
        (printable(part.id), "bold underline"),
        f"  {application_summary(part)}",
        "\n" + "\n".join(map(printable, lines)),
    )
    for change, *others in group_changes(part.changes):
        yield entry_rich(change.severity, change.kind, change.what, tuple(_change_details(change, others)))


def _change_details(change: Change, others: Sequence[Change]) -> Iterator[tuple[str, str]]:
    if others:
        yield "also", ", ".join(str(other.topic) for other in others)
    if change.location is not None:
        yield "at", str(change.location)
    yield from (("before", change.before), ("after", change.after), ("why", change.why))
    yield "first", change.first


def upgrade_markdown(upgrade: Upgrade, limit: int = LIMIT) -> str:
    """Return a document of at most `limit` characters: a summary line, a section for each application."""
    return shorten_markdown(lambda rows: _whole_markdown(upgrade, rows), "headwater upgrade", limit)


def _whole_markdown(upgrade: Upgrade, rows: int | None) -> str:
    parts = [f"**{escape_prose(upgrade_summary(upgrade))}**\n"]
    if upgrade.cluster_id is not None:
        parts.append(f"Cluster {code_span(upgrade.cluster_id)}\n")
    parts += [f"{escape_prose(remark)}\n" for remark in upgrade_remarks(upgrade)]
    for application in upgrade.applications:
        parts += _application_markdown(application, rows)
    if upgrade.problems:
        parts.append("### Not complete\n")
        parts += problem_blocks(upgrade.problems, rows)
    return "\n".join(parts)


def _application_markdown(part: ApplicationUpgrade, rows: int | None) -> Iterator[str]:
    yield f"### {code_span(part.id)}: {escape_prose(application_summary(part))}\n"
    yield f"{escape_prose(restart_sentence(part))}\n"
    for note in part.notes:
        yield f"- {escape_prose(note)}\n"
    for data in part.data:
        yield f"- *Data*: {escape_prose(data.text)}\n"
    if part.changes:
        yield from markdown_table("| | change | before | after |", part.changes, _change_row, rows)
        reasons = (
            ((change.why, change.first), change.topic or change.kind) for change in part.changes[:rows]
        )
        for (why, first), names in grouped_names(reasons):
            yield f"*Why it matters*{names}: {escape_prose(why)}\n"
            yield f"*Do first*{names}: {escape_prose(first)}\n"


def _change_row(change: Change) -> str:
    sign = SIGNS[change.severity]
    cells = (
        f"{sign} {change.kind}",
        escape_prose(change.what),
        escape_prose(change.before),
        escape_prose(change.after),
    )
    return f"| {' | '.join(cells)} |"


def upgrade_json(upgrade: Upgrade) -> dict[str, Any]:
    """Return the document."""
    return {
        "version": 1,
        "to": str(upgrade.to),
        "clusterId": upgrade.cluster_id,
        "hasChanges": any(upgrade.changes),
        "isComplete": not upgrade.problems,
        "assumedTopics": list(upgrade.assumed),
        "applications": [_application_json(part) for part in upgrade.applications],
        "problems": [problem_json(problem) for problem in upgrade.problems],
    }


def _application_json(part: ApplicationUpgrade) -> dict[str, Any]:
    return {
        "applicationId": part.id,
        "from": str(part.before),
        "to": str(part.after),
        "state": part.state.value,
        "rollingRestart": part.is_rolling,
        "obstacle": part.obstacle or None,
        "groupIsActive": part.group.is_active if part.group is not None else None,
        "notes": list(part.notes),
        "data": [attrs.asdict(note) for note in part.data],
        "changes": [_change_json(change) for change in part.changes],
        "location": location_json(part.location),
    }


def _change_json(change: Change) -> dict[str, Any]:
    return {
        "kind": change.kind.value,
        "severity": change.severity.value,
        "topic": change.topic,
        "what": change.what,
        "before": change.before,
        "after": change.after,
        "why": change.why,
        "first": change.first,
        "state": change.state.value if change.state is not None else None,
        "location": location_json(change.location),
    }
