"""Sentences and counts that all reports of an upgrade share."""

from collections import Counter
from collections.abc import Iterable, Iterator

from headwater.model.problems import Severity
from headwater.planner.phrases import counted, listed
from headwater.planner.upgrade import ApplicationUpgrade, Change, ChangeKind, State, Upgrade

SEVERITY_NOUNS = {Severity.ERROR: "error", Severity.WARNING: "warning", Severity.INFO: "hint"}
_STATES = {
    State.NONE: "no state",
    State.KEPT: "state kept",
    State.REBUILT: "state restored from source topics",
    State.LOST: "state lost",
}


def summary(upgrade: Upgrade) -> str:
    """Return one line: the number of changes, and whether the comparison is complete."""
    compared = counted(len(upgrade.applications), "application")
    changes = tuple(upgrade.changes)
    target = f"Upgrade to Kafka Streams {upgrade.to}"
    if changes:
        text = f"{target}: {counted(len(changes), 'change')} ({_severities(changes)}) in {compared}."
    else:
        found = "no change found" if upgrade.problems else "nothing changes"
        text = f"{target}: {found} in {compared}."
    if upgrade.problems:
        text += f" The comparison is not complete: {counted(len(upgrade.problems), 'problem')}."
    return text


def application_summary(part: ApplicationUpgrade) -> str:
    """Return what happens to one application: `3.9.1 to 4.3.1, 1 hint, state kept`."""
    changes = _severities(part.changes)
    if not part.is_known:
        found = f"{changes} found, other changes" if changes else "changes"
        return f"{part.before} to {part.after}, {found} not known"
    return f"{part.before} to {part.after}, {changes or 'nothing changes'}, {_STATES[part.state]}"


def restart(part: ApplicationUpgrade) -> str:
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


def groups(changes: Iterable[Change]) -> Iterator[tuple[Change, ...]]:
    """Yield changes of several topics together if all else is equal, in the order of the changes."""
    members: dict[tuple[object, ...], list[Change]] = {}
    for change in changes:
        alike = (change.kind, change.before, change.after, change.first, change.topic is None)
        members.setdefault((*alike, change.what) if change.topic is None else alike, []).append(change)
    return (tuple(group) for group in members.values())


def remarks(upgrade: Upgrade) -> Iterator[str]:
    """Yield sentences about the whole report."""
    if upgrade.assumed:
        yield (
            f"Partition counts are not compared, because counts of {listed(upgrade.assumed)} are not known. "
            "Give them by --partitions, or name a cluster."
        )


def _severities(changes: Iterable[Change]) -> str:
    counts = Counter(change.severity for change in changes)
    return ", ".join(
        counted(counts[severity], noun) for severity, noun in SEVERITY_NOUNS.items() if counts[severity]
    )
