"""Sentences and counts that all reports of an edit share."""

from collections import Counter
from collections.abc import Iterable, Iterator

from headwater.model.compiled import TopicKind
from headwater.planner.edits import ApplicationEdit, Edit, TopicEdit, Verdict
from headwater.planner.phrases import counted, listed

_ORDER = tuple(Verdict)


def summary(edit: Edit) -> str:
    """Return one line: what is lost, what changes, and whether the comparison is complete."""
    compared = counted(len(edit.applications), "application")
    lost = [topic for topic in edit.topics if topic.loses_data]
    if lost:
        text = f"Change of the topology: {_losses_phrase(lost)} in {compared}."
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


def restart(part: ApplicationEdit) -> str:
    """Return the sentence about restarting the application."""
    if part.is_rolling and not part.needs_new_group:
        return "Rolling restart: safe."
    reason = part.obstacle or "the group must be a new one"
    text = f"Rolling restart: not safe, because {reason}."
    if part.needs_new_group:
        text += " A new group is needed: with `group.protocol: streams`, brokers refuse a changed topology."
    return text


def remarks(edit: Edit) -> Iterator[str]:
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


def changed(part: ApplicationEdit) -> tuple[TopicEdit, ...]:
    """Return the topics that need attention: all that are not simply kept."""
    return tuple(topic for topic in part.topics if not topic.is_unchanged)


def kept(part: ApplicationEdit) -> tuple[str, ...]:
    """Return the names of the topics that are kept without a remark."""
    names = {topic.topic for topic in changed(part)}
    return tuple(topic.topic for topic in part.topics if topic.topic not in names)
