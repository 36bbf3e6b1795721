"""The verdict for each store and repartition topic of an edited topology."""

from collections.abc import Iterator

import attrs

from headwater.model.cluster import may_exist
from headwater.model.compiled import InternalTopic, TopicKind
from headwater.model.problems import Location, Severity
from headwater.planner.edits.kept import edit_of_kept_topic
from headwater.planner.edits.layouts import Layout
from headwater.planner.edits.matching import Sides
from headwater.planner.edits.partitioners import edit_of_other_partitioner
from headwater.planner.edits.values import DRAIN, NOTHING, OTHER_COUNT, Subject, TopicEdit, Verdict
from headwater.planner.phrases import listed

KEEP_NAME = "Keep the name, or undo the part of the edit that shifts it."


def keep_id(*, is_store: bool) -> str:
    """Return what to do about a topic whose name changes because the application id changes."""
    if not is_store:
        return DRAIN
    return (
        "Keep the application id: state is copied only within one application. Otherwise continue without "
        "the old state."
    )


def topic_edits(sides: Sides) -> tuple[TopicEdit, ...]:
    """Return a verdict for each store that is restored from a topic, and each repartition topic."""
    found = (*_store_edits(sides), *_repartition_edits(sides), *_orphan_edits(sides))
    order = {verdict: number for number, verdict in enumerate(Verdict)}
    return tuple(sorted(found, key=lambda each: (order[each.verdict], each.topic)))


def _store_edits(sides: Sides) -> Iterator[TopicEdit]:
    for name, store in sides.after.stores.items():
        own = sides.after.changelogs.get(name)
        if own is None:
            yield _edit_of_source_topic(sides, name, str(store.changelog_topic), store.at)
        elif own.name in sides.before.topics and may_exist(sides.live, own.name):
            yield _edit_of_same_topic(sides, own, name, is_store=True)
        else:
            yield _edit_of_other_topic(sides, own, name)


def _repartition_edits(sides: Sides) -> Iterator[TopicEdit]:
    for name, topic in sides.after.repartitions.items():
        if topic.name in sides.before.topics and may_exist(sides.live, topic.name):
            yield _edit_of_same_topic(sides, topic, name, is_store=False)
            continue
        former = _former_topic(sides, name, is_store=False)
        if former is None:
            yield TopicEdit(
                verdict=Verdict.ADDED,
                severity=Severity.INFO,
                topic=topic.name,
                kind=topic.kind,
                what=f"{topic.name} is needed.",
                why="No operator has used it before.",
                first=NOTHING,
                location=topic.at,
            )
            continue
        yield TopicEdit(
            verdict=Verdict.RENAMED,
            severity=Severity.WARNING,
            topic=topic.name,
            kind=topic.kind,
            former=former.name,
            what=f"{former.name} gets the name {topic.name}.",
            why="Another operator uses the old topic after the edit: it reads the records that are not "
            "processed before."
            if former.name in sides.after.topics
            else "Records in the old topic that are not processed before the edit are never processed.",
            first=DRAIN,
            location=topic.at,
        )


def _former_topic(sides: Sides, name: str, *, is_store: bool) -> InternalTopic | None:
    old = sides.origins.get((is_store, name))
    if old is None:
        return None
    found = sides.before.changelogs.get(old) if is_store else sides.before.repartitions.get(old)
    return found if found is not None and may_exist(sides.live, found.name) else None


def _edit_of_source_topic(sides: Sides, name: str, topic: str, at: Location | None) -> TopicEdit:
    old = sides.origins.get((True, name))
    store = sides.before.stores.get(old) if old is not None else None
    is_same = store is not None and store.changelog_topic == topic
    changelog = sides.before.changelogs.get(str(old))
    if is_same and (difference := _layout_difference(*_layouts_of(sides, str(old), name, is_store=True))):
        return _edit_of_source_format(name, topic, difference, at)
    return TopicEdit(
        verdict=Verdict.KEPT if is_same else Verdict.REBUILT if store is not None else Verdict.ADDED,
        severity=Severity.INFO,
        topic=topic,
        kind=TopicKind.CHANGELOG,
        store=name,
        former=changelog.name if changelog is not None else None,
        what=f"Store {name} is restored from source topic {topic}"
        + (
            ", as before."
            if is_same
            else f" instead of {store.changelog_topic}."
            if store is not None and store.changelog_topic is not None
            else ", which has no changelog of its own."
        ),
        why="Each instance reads the source topic when it starts: the store has what is still in the topic.",
        first=NOTHING if is_same else "Make sure that the source topic is compacted.",
        location=at,
    )


def _edit_of_source_format(name: str, topic: str, difference: str, at: Location | None) -> TopicEdit:
    """Return the verdict for a store that is restored from a source topic, and reads it with other serdes."""
    return TopicEdit(
        verdict=Verdict.RESET,
        severity=Severity.ERROR,
        topic=topic,
        kind=TopicKind.CHANGELOG,
        store=name,
        what=f"Store {name} has another format.",
        why=f"{difference[0].upper()}{difference[1:]}. The store is restored from source topic {topic}, as "
        "it was written: Kafka Streams cannot read earlier records, or results are wrong.",
        first=f"Write the current record of each key of {topic} again with the new serdes before the edit, "
        "or undo this part of the edit.",
        location=at,
    )


def _layout_difference(before: Layout | None, after: Layout | None) -> str:
    return before.difference(after) if before is not None and after is not None else ""


def _layouts_of(sides: Sides, old: str, new: str, *, is_store: bool) -> tuple[Layout | None, Layout | None]:
    """Return the layouts of a store or repartition topic before and after, as far as it exists."""
    if is_store:
        return sides.before.store_layouts.get(old), sides.after.store_layouts.get(new)
    return sides.before.repartition_layouts.get(old), sides.after.repartition_layouts.get(new)


def _edit_of_same_topic(sides: Sides, topic: InternalTopic, name: str, *, is_store: bool) -> TopicEdit:
    """Return the verdict for a topic that both sides use under one name."""
    before, after = _layouts_of(sides, name, name, is_store=is_store)
    difference = _layout_difference(before, after)
    owner = sides.origins.get((is_store, name))
    old = sides.before.topics[topic.name]
    count = sides.partition_count(old)
    counts = "" if count == topic.partitions else _counts_sentence(count, topic.partitions)
    subject = Subject(topic, name if is_store else None, counts)
    if owner != name and (owner is not None or (is_store, name) in sides.continued):
        return _edit_of_taken_topic(sides, subject, owner)
    if difference:
        return _edit_of_other_format(subject, difference)
    if owner is None or _is_doubtful(sides, name, before, after, is_store=is_store):
        return _edit_of_unproven_topic(sides, subject)
    if count != topic.partitions:
        return attrs.evolve(subject, also="").moved(
            count, is_static=sides.after.config.is_statically_partitioned
        )
    change = sides.partitioner_changes.get((is_store, name))
    if change is not None and change.verdict is not Verdict.KEPT:
        return edit_of_other_partitioner(subject, change)
    return edit_of_kept_topic(sides, subject, before, after)


def _counts_sentence(before: int, after: int) -> str:
    return f"It has {after} partitions instead of {before}, too: {OTHER_COUNT}"


def _is_doubtful(
    sides: Sides, name: str, before: Layout | None, after: Layout | None, *, is_store: bool
) -> bool:
    """Return whether formats are not known, and the operators before the topic are not the same."""
    are_known = before is not None and after is not None and before.is_known and after.is_known
    return not are_known and not sides.has_same_path(name, is_store=is_store)


def _edit_of_taken_topic(sides: Sides, subject: Subject, owner: str | None) -> TopicEdit:
    """Return the verdict for a topic that another operator used before the edit."""
    is_store = subject.store is not None
    found = sides.before.changelogs if is_store else sides.before.repartitions
    former = found.get(owner) if owner is not None else None
    now = sides.continued.get((is_store, subject.store or sides.after.short_name(subject.topic.name)))
    return subject.edit(
        Verdict.RESET,
        Severity.ERROR,
        former=former.name if former is not None else None,
        what=f"{subject.topic.name} belongs to another operator afterwards.",
        why="Kafka Streams finds topics by name, so it "
        + ("restores the store from the state of" if is_store else "reads records of")
        + " another operator"
        + (f" (which now uses {now})" if now is not None else "")
        + ": results are wrong, or records cannot be deserialized.",
        first=KEEP_NAME
        if former is not None
        else "Give the new operator a name of its own, or undo the edit.",
    )


def _edit_of_other_format(subject: Subject, difference: str) -> TopicEdit:
    consequence, first = "Records in flight cannot be read.", DRAIN
    if subject.store is not None:
        consequence = "Kafka Streams restores the old records nevertheless: it fails, or results are wrong."
        first = (
            "Give the store another name, so that it starts empty; or stop all instances, delete "
            f"{subject.topic.name} and the local state, and start without the old state."
        )
    return subject.edit(
        Verdict.RESET,
        Severity.ERROR,
        what=f"{subject.name} has another format.",
        why=f"{difference[0].upper()}{difference[1:]}. {consequence}",
        first=first,
    )


def _edit_of_unproven_topic(sides: Sides, subject: Subject) -> TopicEdit:
    """Return the verdict for a topic whose operators on both sides could not be compared as the same."""
    if sides.before.document.has_calls and sides.after.document.has_calls:
        return subject.edit(
            Verdict.RESET,
            Severity.ERROR,
            what=f"{subject.topic.name} belongs to another operator afterwards.",
            why="Other operators use the name before and after the edit, and Kafka Streams finds topics by "
            "name: it uses the data of the old operator.",
            first="Give the new operator a name of its own, or undo the edit.",
        )
    return subject.edit(
        Verdict.UNKNOWN,
        Severity.WARNING,
        what=f"{subject.name} has the same name before and after the edit.",
        why="The operators before it differ, and a text of `Topology#describe()` does not show the format of "
        "their records.",
        first="Compare key and value of the operators in the code. If they are the same, its data is kept.",
    )


def _edit_of_other_topic(sides: Sides, topic: InternalTopic, name: str) -> TopicEdit:
    """Return the verdict for a store whose changelog topic is another one, or has no data."""
    subject, former = Subject(topic, name), _former_topic(sides, name, is_store=True)
    old = sides.origins.get((True, name))
    before, after = _layouts_of(sides, str(old), name, is_store=True)
    difference = _layout_difference(before, after)
    if former is not None and difference:
        return subject.edit(
            Verdict.RESET,
            Severity.ERROR,
            what=f"Store {name} starts empty and has another format than {former.name}.",
            why=f"{difference[0].upper()}{difference[1:]}. No name keeps such state.",
            first="Continue without the old state, or undo this part of the edit.",
        )
    if former is not None:
        return subject.edit(
            Verdict.RENAMED,
            Severity.ERROR,
            former=former.name,
            what=f"{former.name} gets the name {topic.name}.",
            why=f"Store {name} starts empty: its state is in a changelog that "
            + ("another store uses." if former.name in sides.after.topics else "is not read any more."),
            first=KEEP_NAME,
        )
    if old is not None and (source := sides.before.stores[old].changelog_topic) is not None:
        return subject.edit(
            Verdict.RESET,
            Severity.ERROR,
            what=f"Store {name} gets a changelog of its own, which is empty.",
            why=f"It was restored from source topic {source}. The application continues at its committed "
            "offsets there, so earlier records are missing in the store.",
            first="Keep `reuse.ktable.source.topics` in `topology.optimization`, or reset the offsets of the "
            "source topic.",
        )
    if name in sides.before.unlogged:
        return subject.edit(
            Verdict.RESET,
            Severity.WARNING,
            what=f"Store {name} gets a changelog, which is empty.",
            why="The store had no changelog: entries were on local disks or in memory only, and may be lost.",
        )
    return subject.edit(
        Verdict.ADDED, what=f"Store {name} is new and starts empty.", why=_filling_sentence(sides, topic)
    )


def _filling_sentence(sides: Sides, topic: InternalTopic) -> str:
    read = {source for part in sides.before.compiled.subtopologies for source in part.sources}
    known = sorted(sides.after.inputs_in_task(topic.node) & read)
    if not known:
        return "It is filled by the records that the application reads from now on."
    return (
        f"The application has committed offsets of {listed(known)}: only later records of them fill the "
        "store."
    )


def _orphan_edits(sides: Sides) -> Iterator[TopicEdit]:
    used = {*sides.after.topics}
    rebuilt = {name for name, store in sides.after.stores.items() if store.changelog_topic is not None}
    for name, topic in sides.before.topics.items():
        is_store = topic.kind is TopicKind.CHANGELOG
        short = topic.node if is_store else sides.before.short_name(name)
        now = sides.continued.get((is_store, short))
        if name in used or not may_exist(sides.live, name) or (now is not None and now not in rebuilt):
            continue
        is_rebuilt = now is not None
        is_unlogged = is_store and short in sides.after.unlogged
        yield TopicEdit(
            verdict=Verdict.ORPHANED,
            severity=Severity.INFO if is_rebuilt else Severity.WARNING,
            topic=name,
            kind=topic.kind,
            store=topic.node if is_store else None,
            what=f"{name} is no longer used.",
            why=_reason_of_orphan(is_store=is_store, is_rebuilt=is_rebuilt, is_unlogged=is_unlogged),
            first="Delete it when you do not go back (`leftovers`)." if is_store else DRAIN,
            location=topic.at,
        )


def _reason_of_orphan(*, is_store: bool, is_rebuilt: bool, is_unlogged: bool) -> str:
    if is_rebuilt:
        return "The store is restored from a source topic."
    if is_unlogged:
        return "The store has no changelog any more: a lost instance loses its entries."
    if is_store:
        return "No store continues it: its state stays on the cluster, unused."
    return "Records in it that are not processed before the edit are never processed."
