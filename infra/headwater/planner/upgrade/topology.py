"""Changes between two versions: nodes, sub-topologies, co-partitioning, errors, and internal topics."""

from collections import defaultdict
from collections.abc import Iterator, Sequence

import attrs

from headwater.compiler.renumbering import find_renumberings, keep_name, origin_digests
from headwater.model.cluster import ClusterSnapshot, may_exist
from headwater.model.compiled import CompiledApplication, InternalTopic, TopicKind
from headwater.model.problems import Location, Problem, Severity, errors, first_names
from headwater.planner.upgrade.changes import Change, ChangeKind, State


@attrs.frozen
class Versions:
    """One application, compiled for the version it runs and for the next one.

    `live` is None without a cluster. `keep` says how to keep the topics of the earlier version; empty if only
    their names can be kept.
    """

    before: CompiledApplication
    after: CompiledApplication
    live: ClusterSnapshot | None = None
    keep: str = ""

    @property
    def id(self) -> str:
        return self.before.application.id


def topic_changes(versions: Versions) -> Iterator[Change]:
    """Yield the internal topics that the next version changes, renames, drops or adds."""
    before = {topic.name: topic for topic in versions.before.internal_topics}
    after = {topic.name: topic for topic in versions.after.internal_topics}
    renamed = _pair_names(versions)
    for name, topic in before.items():
        if name in after:
            yield from _compare_topics(topic, after[name])
        elif name in renamed:
            yield _renamed_topic(versions, topic, after[renamed[name]])
        else:
            yield _dropped_topic(versions, topic)
    for name in sorted(after.keys() - before.keys() - set(renamed.values())):
        yield _added_topic(versions, after[name])


def _pair_names(versions: Versions) -> dict[str, str]:
    """Return old → new name of the topics that only one of the versions has.

    A call of the document keeps its topic under another name if it has one on both sides. The other names
    are paired by their generated indices, which shift when a version adds or omits a node.
    """
    before = {topic.name: topic for topic in versions.before.internal_topics}
    after = {topic.name: topic for topic in versions.after.internal_topics}
    old, new = before.keys() - after.keys(), after.keys() - before.keys()
    of_call: defaultdict[tuple[TopicKind, Location | None], list[str]] = defaultdict(list)
    for name in new:
        of_call[after[name].kind, after[name].at].append(name)
    pairs: dict[str, str] = {}
    taken: set[str] = set()
    for name in sorted(old):
        same = of_call[before[name].kind, before[name].at] if before[name].at is not None else []
        if len(same) == 1 and same[0] not in taken:
            pairs[name] = same[0]
            taken.add(same[0])
    for pair in find_renumberings(origin_digests(versions.before), origin_digests(versions.after)):
        if pair.old in old and pair.new in new and pair.old not in pairs and pair.new not in taken:
            pairs[pair.old] = pair.new
            taken.add(pair.new)
    return pairs


def _compare_topics(old: InternalTopic, new: InternalTopic) -> Iterator[Change]:
    if old.partitions != new.partitions:
        yield Change(
            kind=ChangeKind.PARTITIONS,
            severity=Severity.ERROR,
            topic=old.name,
            what=f"{old.name} needs another number of partitions.",
            before=f"{old.partitions} partitions",
            after=f"{new.partitions} partitions",
            why="Kafka Streams does not start if an internal topic exists with another count, and keys move "
            "to other partitions than their state.",
            first="Reset the application: stop it, run `kafka-streams-application-reset.sh`, delete its "
            "local state, and start the new version. Run the tool with `--dry-run` first: it also deletes "
            "internal topics of applications whose ids begin with this id and a hyphen, unless "
            "`--internal-topics` names the topics to delete.",
            state=State.LOST if old.kind is TopicKind.CHANGELOG else None,
            location=new.at,
        )
    keys = sorted(key for key in {*old.config, *new.config} if old.config.get(key) != new.config.get(key))
    if keys:
        yield Change(
            kind=ChangeKind.CONFIG,
            severity=Severity.INFO,
            topic=old.name,
            what=f"{old.name} has other settings.",
            before=_list_settings(old, keys),
            after=_list_settings(new, keys),
            why="Kafka Streams sets them only when it creates the topic. The existing topic keeps its "
            "settings until `pulumi up` changes them, and its data in both cases.",
            first="Restart the application with the new version. Then set `kafkaStreams` in the document and "
            "run `pulumi up`.",
            state=State.KEPT if old.kind is TopicKind.CHANGELOG else None,
            location=new.at,
        )


def _list_settings(topic: InternalTopic, keys: list[str]) -> str:
    return ", ".join(f"{key}={topic.config[key]}" if key in topic.config else f"no {key}" for key in keys)


def _renamed_topic(versions: Versions, old: InternalTopic, new: InternalTopic) -> Change:
    is_state, exists = old.kind is TopicKind.CHANGELOG, may_exist(versions.live, old.name)
    return Change(
        kind=ChangeKind.RENAMED_TOPIC,
        severity=Severity.ERROR if exists else Severity.INFO,
        topic=old.name,
        what=f"{old.name} gets another name.",
        before=old.name,
        after=new.name,
        why=_why_lost(old, exists=exists),
        first=_keep_name_advice(versions, old) if exists else _NOTHING,
        state=_lost_state(exists=exists) if is_state else None,
        location=new.at or old.at,
    )


def _dropped_topic(versions: Versions, old: InternalTopic) -> Change:
    exists = may_exist(versions.live, old.name)
    source = _restored_from(old, versions.after) if old.kind is TopicKind.CHANGELOG else None
    if source is not None:
        return Change(
            kind=ChangeKind.DROPPED_TOPIC,
            severity=Severity.WARNING,
            topic=old.name,
            what=f"{old.name} is no longer used: store {old.node} is restored from {source}.",
            before=old.name,
            after=f"source topic {source}",
            why="Each instance restores the store from the source topic when it starts. The old changelog "
            "stays on the cluster.",
            first="Make sure that the source topic is compacted. Delete the old changelog after the upgrade.",
            state=State.REBUILT,
            location=old.at,
        )
    return Change(
        kind=ChangeKind.DROPPED_TOPIC,
        severity=Severity.ERROR if exists else Severity.INFO,
        topic=old.name,
        what=f"{old.name} is no longer used.",
        before=old.name,
        after="no topic",
        why=_why_lost(old, exists=exists),
        first=_drain_advice(versions, old) if exists else _NOTHING,
        state=_lost_state(exists=exists) if old.kind is TopicKind.CHANGELOG else None,
        location=old.at,
    )


def _restored_from(changelog: InternalTopic, other: CompiledApplication) -> str | None:
    """Return the source topic that serves as changelog of the store in the other version."""
    part = next((part for part in other.subtopologies if changelog.node in part.stores), None)
    topics = part.source_changelogs if part is not None else ()
    return topics[0] if len(topics) == 1 else None


def _added_topic(versions: Versions, new: InternalTopic) -> Change:
    is_state = new.kind is TopicKind.CHANGELOG
    return Change(
        kind=ChangeKind.ADDED_TOPIC,
        severity=Severity.WARNING,
        topic=new.name,
        what=f"{new.name} is needed.",
        before="no topic",
        after=new.name,
        why=f"Store {new.node} starts empty and is filled by new records."
        if is_state
        else "Instances of the new version write to it and read from it.",
        first=_creation_advice(versions),
        state=State.LOST if is_state and _restored_from(new, versions.before) is not None else None,
        location=new.at,
    )


def _creation_advice(versions: Versions) -> str:
    how = "set `kafkaStreams` in the document and run `pulumi up`."
    if versions.keep:
        return f"{versions.keep} Otherwise create the topic before the upgrade: {how}"
    return f"Create the topic before the upgrade: {how}"


RESET = "To continue without the state, reset the application."
_NOTHING = "Nothing: the topic does not exist on this cluster."


def _why_lost(old: InternalTopic, *, exists: bool) -> str:
    if not exists:
        return "The application was not started with it yet."
    if old.kind is TopicKind.CHANGELOG:
        return (
            f"Store {old.node} starts empty: its state is in a changelog that the new version does not read."
        )
    return "Records in it that are not processed before the upgrade are lost."


def _lost_state(*, exists: bool) -> State:
    return State.LOST if exists else State.KEPT


def _keep_name_advice(versions: Versions, old: InternalTopic) -> str:
    named = keep_name(old.name.removeprefix(f"{versions.id}-"), old.kind)
    if old.kind is TopicKind.CHANGELOG:
        return f"{named or _NO_NAME} {RESET}"
    return f"{named} {_DRAIN}" if named else f"{_NO_NAME} {_DRAIN.replace('Otherwise stop', 'Stop')}"


_NO_NAME = "No name that you can give keeps the name of this topic."
_DRAIN = (
    "Otherwise stop what writes to its source topics, wait until the application has processed all records, "
    "stop all its instances, and start the new version."
)


def _drain_advice(versions: Versions, old: InternalTopic) -> str:
    if old.kind is TopicKind.CHANGELOG:
        return f"{versions.keep} {RESET}".strip()
    return f"{versions.keep} {_DRAIN}" if versions.keep else _DRAIN.replace("Otherwise stop", "Stop")


_MOST_NAMES = 12
"""Names in one phrase; the others are counted."""


def topology_changes(versions: Versions) -> Iterator[Change]:
    """Yield the changes of the topology itself."""
    yield from _find_copartitioning(versions)
    yield from _find_subtopologies(versions)
    yield from _find_nodes(versions)


def version_refusals(versions: Versions) -> Iterator[Change]:
    """Yield the errors that only one of the versions has."""
    before, after = errors(versions.before.problems), errors(versions.after.problems)
    for problem in _new_problems(after, before):
        yield Change(
            kind=ChangeKind.REFUSED,
            severity=Severity.ERROR,
            topic=problem.topic,
            what=problem.summary,
            before="accepted",
            after=f"error {problem.code}",
            why=problem.why,
            first=problem.fix,
            location=problem.location,
        )
    for problem in _new_problems(before, after):
        yield Change(
            kind=ChangeKind.ACCEPTED,
            severity=Severity.INFO,
            topic=problem.topic,
            what=f"No longer an error: {problem.summary}",
            before=f"error {problem.code}",
            after="accepted",
            why="The later version does not have this restriction.",
            first="Nothing.",
            location=problem.location,
        )


def is_one_group(versions: Versions) -> bool:
    """Return whether instances of both versions have the same tasks with the same topics and stores."""
    return _describe_tasks(versions.before) == _describe_tasks(versions.after)


def _describe_tasks(compiled: CompiledApplication) -> frozenset[tuple[object, ...]]:
    # User topics that are written do not concern tasks.
    sinks = compiled.repartition_sinks
    return frozenset(
        (part.id, part.sources, part.source_patterns, sinks[part.id], part.stores, part.changelog_topics)
        for part in compiled.subtopologies
    )


def _new_problems(problems: Sequence[Problem], others: Sequence[Problem]) -> list[Problem]:
    known = {(problem.code, problem.summary) for problem in others}
    return [problem for problem in problems if (problem.code, problem.summary) not in known]


def _find_copartitioning(versions: Versions) -> Iterator[Change]:
    before, after = (set(each.copartition_groups) for each in (versions.before, versions.after))
    if before != after:
        yield Change(
            kind=ChangeKind.COPARTITIONING,
            severity=Severity.WARNING,
            what="Other topics must have the same number of partitions.",
            before=_list_groups(before - after),
            after=_list_groups(after - before),
            why="Kafka Streams refuses topics of a group that have different partition counts.",
            first="Check that the topics of each group have the same number of partitions.",
            location=versions.after.application.at,
        )


def _list_groups(groups: set[tuple[str, ...]]) -> str:
    return "; ".join(sorted(" = ".join(group) for group in groups)) or "no other group"


def _find_subtopologies(versions: Versions) -> Iterator[Change]:
    before, after = versions.before.subtopologies, versions.after.subtopologies
    if is_one_group(versions):
        return
    yield Change(
        kind=ChangeKind.SUBTOPOLOGIES,
        severity=Severity.WARNING,
        what="The sub-topologies are others, so tasks have other ids, topics or stores.",
        before=_count_parts(len(before)),
        after=_count_parts(len(after)),
        why="An instance that gets a task of another version processes other topics with it. Local state "
        "that belongs to another task is restored again.",
        first="Stop all instances before you start the first one with the new version, and delete their "
        "local state.",
        location=versions.after.application.at,
    )


def _count_parts(parts: int) -> str:
    return "1 sub-topology" if parts == 1 else f"{parts} sub-topologies"


def _find_nodes(versions: Versions) -> Iterator[Change]:
    before, after = _node_names(versions.before), _node_names(versions.after)
    if before == after:
        return
    yield Change(
        kind=ChangeKind.NODES,
        severity=Severity.INFO,
        what="Nodes of the topology have other names.",
        before=_list_names(before - after),
        after=_list_names(after - before),
        why="Names of nodes are in metrics, logs and `Topology#describe()`, not in data.",
        first="Change dashboards and alerts that name these nodes.",
        location=versions.after.application.at,
    )


def _node_names(compiled: CompiledApplication) -> frozenset[str]:
    return frozenset(name for part in compiled.subtopologies for name in part.nodes)


def _list_names(names: frozenset[str]) -> str:
    return first_names(sorted(names), _MOST_NAMES) or "none of these"
