"""The verdict for each store and repartition topic of an edited topology."""

from collections.abc import Iterator, Mapping
from functools import cached_property

import attrs

from headwater.model.cluster import ClusterSnapshot
from headwater.model.compiled import InternalTopic, TopicKind
from headwater.model.problems import Location, Severity
from headwater.planner.edits.matching import Matcher, matches
from headwater.planner.edits.topologies import Layout, Topology
from headwater.planner.edits.values import NOTHING, Subject, TopicEdit, Verdict
from headwater.planner.phrases import listed

KEEP_NAME = "Keep the name, or undo the part of the edit that shifts it."
_KEEP_STATE = (
    "Keep the name, or undo the part of the edit that shifts it, or stop the application and copy the state "
    "(`headwater state copy`)."
)
DRAIN = (
    "Stop what writes to the source topics, and wait until the application has processed all records, before "
    "you stop it."
)
_KEEPS = "Kafka Streams finds it by its name."
_NOT_SHOWN = "The input does not show kind and serdes of its records: they must be the same before and after."


def keep_id(former: str, new: str, *, is_store: bool) -> str:
    """Return what to do if the topic `former` is called `new` because the application id changes."""
    if not is_store:
        return DRAIN
    return (
        "Keep the application id, or stop the application and copy the state "
        f"(`headwater state copy --topic {former}={new}`)."
    )


@attrs.frozen
class Sides:
    """One application before and after an edit. `live` is None without a cluster."""

    before: Topology
    after: Topology
    live: ClusterSnapshot | None = None

    @cached_property
    def _matchers(self) -> tuple[Matcher, Matcher]:
        return Matcher(self.before), Matcher(self.after)

    @cached_property
    def continued(self) -> Mapping[tuple[bool, str], str]:
        """(Is a store, name before) → name afterwards."""
        return matches(*self._matchers)

    def has_same_path(self, name: str, *, is_store: bool) -> bool:
        """Return whether the same operators are before a store or topic of this name on both sides."""
        old, new = (
            [item.path for item in matcher.items if item.name == name and item.is_store is is_store]
            for matcher in self._matchers
        )
        return old == new

    @cached_property
    def origins(self) -> Mapping[tuple[bool, str], str]:
        """(Is a store, name afterwards) → name before."""
        return {(is_store, new): old for (is_store, old), new in self.continued.items()}

    def inputs(self, name: str, *, is_store: bool) -> tuple[frozenset[str], frozenset[str]]:
        """Return the user topics before a store or topic of this name, on both sides."""
        old, new = (
            [item.inputs for item in matcher.items if item.name == name and item.is_store is is_store]
            for matcher in self._matchers
        )
        return (old[0] if old else frozenset()), (new[0] if new else frozenset())

    def exists(self, topic: str) -> bool:
        """Return whether the topic exists, as far as is known."""
        return self.live is None or topic in self.live.topics

    def count(self, topic: InternalTopic) -> int:
        """Return the partition count before the edit: the count on the cluster, if it was read."""
        found = self.live.topics.get(topic.name) if self.live is not None else None
        return found.partitions if found is not None else topic.partitions


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
        elif own.name in sides.before.topics and sides.exists(own.name):
            yield _edit_of_same_topic(sides, own, name, is_store=True)
        else:
            yield _edit_of_other_topic(sides, own, name)


def _repartition_edits(sides: Sides) -> Iterator[TopicEdit]:
    for name, topic in sides.after.repartitions.items():
        if topic.name in sides.before.topics and sides.exists(topic.name):
            yield _edit_of_same_topic(sides, topic, name, is_store=False)
            continue
        former = _former_topic(sides, name, is_store=False)
        yield TopicEdit(
            verdict=Verdict.ADDED if former is None else Verdict.RENAMED,
            severity=Severity.INFO if former is None else Severity.WARNING,
            topic=topic.name,
            kind=topic.kind,
            former=None if former is None else former.name,
            what=f"{topic.name} is needed."
            if former is None
            else f"{former.name} gets the name {topic.name}.",
            why="No operator has used it before."
            if former is None
            else "Records in the old topic that are not processed before the edit are never processed.",
            first=NOTHING if former is None else DRAIN,
            location=topic.at,
        )


def _former_topic(sides: Sides, name: str, *, is_store: bool) -> InternalTopic | None:
    old = sides.origins.get((is_store, name))
    if old is None:
        return None
    found = sides.before.changelogs.get(old) if is_store else sides.before.repartitions.get(old)
    return found if found is not None and sides.exists(found.name) else None


def _edit_of_source_topic(sides: Sides, name: str, topic: str, at: Location | None) -> TopicEdit:
    old = sides.origins.get((True, name))
    store = sides.before.stores.get(old) if old is not None else None
    is_same = store is not None and store.changelog_topic == topic
    changelog = sides.before.changelogs.get(str(old))
    return TopicEdit(
        verdict=Verdict.KEPT if is_same else Verdict.REBUILT if store is not None else Verdict.ADDED,
        severity=Severity.INFO,
        topic=topic,
        kind=TopicKind.CHANGELOG,
        store=name,
        former=changelog.name if changelog is not None else None,
        what=f"Store {name} is restored from source topic {topic}"
        + (", as before." if is_same else ", which has no changelog of its own."),
        why="Each instance reads the source topic when it starts: the store has what is still in the topic.",
        first=NOTHING if is_same else "Make sure that the source topic is compacted.",
        location=at,
    )


def _layouts_of(sides: Sides, old: str, new: str, *, is_store: bool) -> tuple[Layout | None, Layout | None]:
    """Return the layouts of a store or repartition topic before and after, as far as it exists."""
    if is_store:
        return sides.before.store_layouts.get(old), sides.after.store_layouts.get(new)
    return sides.before.repartition_layouts.get(old), sides.after.repartition_layouts.get(new)


def _edit_of_same_topic(sides: Sides, topic: InternalTopic, name: str, *, is_store: bool) -> TopicEdit:
    """Return the verdict for a topic that both sides use under one name."""
    before, after = _layouts_of(sides, name, name, is_store=is_store)
    difference = before.difference(after) if before is not None and after is not None else ""
    owner = sides.origins.get((is_store, name))
    old = sides.before.topics[topic.name]
    count = sides.count(old)
    subject = Subject(topic, name if is_store else None)
    if owner != name and (owner is not None or (is_store, name) in sides.continued):
        return _edit_of_taken_topic(sides, subject, owner)
    if difference:
        return _edit_of_other_format(subject, difference)
    if owner is None or _is_doubtful(sides, name, before, after, is_store=is_store):
        return _edit_of_unproven_topic(sides, subject)
    if count != topic.partitions:
        return subject.moved(count, is_static=sides.after.config.is_statically_partitioned)
    return _edit_of_kept_topic(sides, subject, before, after)


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
    now = sides.continued.get((is_store, subject.store or sides.after.short(subject.topic.name)))
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


def _edit_of_kept_topic(
    sides: Sides, subject: Subject, before: Layout | None, after: Layout | None
) -> TopicEdit:
    """Return the verdict for a topic that is kept, with what the user should know."""
    is_store = subject.store is not None
    old, new = sides.inputs(subject.store or sides.after.short(subject.topic.name), is_store=is_store)
    if old and new and not old & new:
        return subject.edit(
            Verdict.KEPT,
            Severity.WARNING,
            why=f"{_KEEPS} Its input was {listed(old)} and is {listed(new)}: old and new results mix.",
            first="Give the store another name if old and new results must not mix.",
        )
    if before is None or after is None or not (before.is_known and after.is_known):
        return subject.edit(Verdict.KEPT, why=f"{_KEEPS} {_NOT_SHOWN}")
    if before.window_ms != after.window_ms:
        return subject.edit(
            Verdict.KEPT,
            Severity.WARNING,
            why=f"{_KEEPS} Its windows had {before.window_ms} ms and have {after.window_ms} ms: entries of "
            "old windows keep their start, and count as windows of the new length until they expire."
            + _settings_sentence(sides, subject),
            first="Give the store another name if old and new windows must not mix.",
        )
    if before.kind != after.kind:
        return subject.edit(
            Verdict.KEPT,
            Severity.WARNING,
            why=f"{_KEEPS} The store is {after.kind} instead of {before.kind}: the changelog has the same "
            "format, local state does not." + _settings_sentence(sides, subject),
            first="Stop all instances, and delete their local state, before you start the new version. "
            "If the store is versioned now, run `pulumi up` first: it sets `min.compaction.lag.ms`.",
        )
    if settings := _settings_sentence(sides, subject):
        return subject.edit(
            Verdict.KEPT,
            why=f"{_KEEPS}{settings}",
            first="Run `pulumi up`, which changes the settings of the existing topic.",
        )
    return subject.edit(Verdict.KEPT, why=_KEEPS)


def _settings_sentence(sides: Sides, subject: Subject) -> str:
    """Return a sentence about settings that Kafka Streams would create the topic with; empty if they stay."""
    old, new = sides.before.topics[subject.topic.name].config, subject.topic.config
    changed = [
        f"{key} from {old.get(key, 'unset')} to {new.get(key, 'unset')}"
        for key in sorted({*old, *new})
        if old.get(key) != new.get(key)
    ]
    if not changed:
        return ""
    text = ", ".join(changed)
    return f" Its settings change ({text}): Kafka Streams sets them only when it creates the topic."


def _edit_of_other_topic(sides: Sides, topic: InternalTopic, name: str) -> TopicEdit:
    """Return the verdict for a store whose changelog topic is another one, or has no data."""
    subject, former = Subject(topic, name), _former_topic(sides, name, is_store=True)
    old = sides.origins.get((True, name))
    before, after = _layouts_of(sides, str(old), name, is_store=True)
    difference = before.difference(after) if before is not None and after is not None else ""
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
            why=f"Store {name} starts empty: its state is in a changelog that is not read any more.",
            first=_KEEP_STATE,
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
    part = next((each for each in sides.after.compiled.subtopologies if each.id == topic.subtopology), None)
    known = sorted(set(part.sources if part is not None else ()) & read)
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
        short = topic.node if is_store else sides.before.short(name)
        now = sides.continued.get((is_store, short))
        if name in used or not sides.exists(name) or (now is not None and now not in rebuilt):
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
