"""Edits of which only topic names are known on one side: observed documents, and setup records."""

from collections.abc import Mapping
from collections.abc import Set as AbstractSet

from headwater.compiler.renumbering import origins, renumberings
from headwater.model.cluster import ClusterSnapshot
from headwater.model.compiled import CompiledApplication, InternalTopic, TopicKind
from headwater.model.problems import Severity
from headwater.model.versions import KafkaStreamsVersion
from headwater.planner.edits.topologies import Topology
from headwater.planner.edits.values import ApplicationEdit, Subject, TopicEdit, Verdict

_NO_FORMAT = "Only names and counts of the topics are known, so formats cannot be compared."
_UNKNOWN = "the topology before the edit is not known"


def observed_edit(old: Topology, new: Topology, snapshot: ClusterSnapshot | None) -> ApplicationEdit:
    """Return the edit of an application of which one side knows only the topics."""
    before = {topic.name: topic.partitions for topic in old.compiled.internal_topics}
    generated = {topic.name: "" for topic in old.compiled.internal_topics if topic.generated}
    return edit_of_names(
        new.compiled, before, generated, snapshot=snapshot, before_version=old.application.kafka_streams
    )


def edit_of_names(
    after: CompiledApplication,
    before: Mapping[str, int],
    generated: Mapping[str, str],
    *,
    snapshot: ClusterSnapshot | None = None,
    before_version: KafkaStreamsVersion | None = None,
) -> ApplicationEdit:
    """Return the edit from topics to a compiled application.

    `before`: internal topic → partition count. `generated`: topic with a generated name → its origin
    (`renumbering.origins`), empty if it is not known.
    """
    topics = {topic.name: topic for topic in after.internal_topics}
    live = {name for name in before if snapshot is None or name in snapshot.topics}
    renamed = {
        pair.new: pair.old
        for pair in renumberings(
            {name: origin for name, origin in generated.items() if name in live}, origins(after)
        )
    }
    found = [_topic_edit(topic, renamed.get(name), before, live) for name, topic in topics.items()]
    found += [_orphan_edit(name) for name in live - topics.keys() - set(renamed.values())]
    order = {verdict: number for number, verdict in enumerate(Verdict)}
    is_same = all(each.verdict is Verdict.KEPT for each in found)
    return ApplicationEdit(
        id=after.application.id,
        before=before_version,
        after=after.application.kafka_streams,
        topics=tuple(sorted(found, key=lambda each: (order[each.verdict], each.topic))),
        obstacle="" if is_same else _UNKNOWN,
        remarks=(_NO_FORMAT,),
        steps=()
        if is_same
        else ("Stop all instances.", "Delete their local state, and start the new version."),
        location=after.application.at,
    )


def _topic_edit(
    topic: InternalTopic, former: str | None, before: Mapping[str, int], live: AbstractSet[str]
) -> TopicEdit:
    subject = Subject(topic, topic.node if topic.kind is TopicKind.CHANGELOG else None)
    exists = topic.name in live
    if former is not None:
        return subject.edit(
            Verdict.RESET if exists else Verdict.RENAMED,
            Severity.ERROR,
            former=former,
            what=f"{former} gets the name {topic.name}.",
            why="A generated index shifts: Kafka Streams uses "
            + ("the data of another operator" if exists else "the new, empty topic")
            + " and no longer reads the old one.",
            first="Compare the document with its earlier version (`--git`): it shows which name keeps it.",
        )
    if not exists:
        return subject.edit(Verdict.ADDED, what=f"{topic.name} is needed.", why="There was none before.")
    if before[topic.name] != topic.partitions:
        return subject.edit(
            Verdict.MOVED,
            Severity.ERROR,
            what=f"{topic.name} has {topic.partitions} partitions instead of {before[topic.name]}.",
            why="Keys move to other partitions. Kafka Streams does not start with another count.",
            first="Keep the count, or move the state (`headwater reshard`).",
        )
    return subject.edit(Verdict.KEPT, what=f"{topic.name} keeps its name.", why=_NO_FORMAT)


def _orphan_edit(name: str) -> TopicEdit:
    return TopicEdit(
        verdict=Verdict.ORPHANED,
        severity=Severity.WARNING,
        topic=name,
        kind=TopicKind.CHANGELOG if name.endswith("-changelog") else TopicKind.REPARTITION,
        what=f"{name} is no longer used.",
        why="No operator of the document uses it.",
        first="Delete it when you do not go back (`leftovers`).",
    )
