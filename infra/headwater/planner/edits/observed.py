"""Edits of which only topic names are known on one side: observed documents, and setup records."""

from collections.abc import Iterable, Iterator, Mapping
from collections.abc import Set as AbstractSet

import attrs

from headwater.compiler.renumbering import find_renumberings, origin_digests
from headwater.compiler.streams_config import StreamsConfig
from headwater.model.cluster import ClusterSnapshot
from headwater.model.compiled import CompiledApplication, InternalTopic, TopicKind
from headwater.model.problems import Severity, errors
from headwater.model.records import SetupRecord
from headwater.model.topology import Application, Lifecycle, Protocol
from headwater.model.versions import KafkaStreamsVersion
from headwater.planner.edits.application import application_obstacle, group_steps, version_remarks
from headwater.planner.edits.matching import Sides
from headwater.planner.edits.recorded import (
    UNKNOWN_TOPOLOGY,
    Doubt,
    doubt_of,
    recorded_protocol,
    recorded_version,
    with_recorded_id,
)
from headwater.planner.edits.settings import settings_since_setup
from headwater.planner.edits.topologies import Topologies, Topology
from headwater.planner.edits.values import DRAIN, ApplicationEdit, Edit, Subject, TopicEdit, Verdict
from headwater.planner.edits.verdicts import keep_id
from headwater.planner.upgrade.topology import Versions, is_one_group

_NO_FORMAT = "Only names and counts of the topics are known, so operators and formats cannot be compared."
_ONE_SIDE = (
    "One side has only what a cluster shows, names and counts of topics: it is not known whether the same "
    "operator uses the topic and can read its records."
)
_OTHER_TASKS = "instances before and after the edit would have different tasks"
_OTHER_VERSION = "what another version of Kafka Streams builds is not known"


@attrs.frozen(kw_only=True)
class _Former:
    """What is known of an application before an edit."""

    id: str
    counts: Mapping[str, int]
    """Internal topic → partition count."""
    origins: Mapping[str, str]
    """Topic with a generated name → its origin (`renumbering.origin_digests`), empty if it is not known."""
    version: KafkaStreamsVersion | None
    protocol: Protocol | None


def observed_edit(old: Topology, new: Topology, snapshot: ClusterSnapshot | None) -> ApplicationEdit:
    """Return the edit of an application of which one side knows only the topics."""
    both_observed = old.document.observed is not None and new.document.observed is not None
    former = _Former(
        id=old.id,
        counts={topic.name: topic.partitions for topic in old.compiled.internal_topics},
        origins={topic.name: "" for topic in old.compiled.internal_topics if topic.generated},
        version=old.application.kafka_streams,
        protocol=old.application.protocol,
    )
    doubt = None if both_observed else Doubt(why=_ONE_SIDE, is_edited=True)
    return _edit_of_names(new.compiled, former, snapshot=snapshot, doubt=doubt)


def _edit_of_names(
    after: CompiledApplication,
    former: _Former,
    *,
    snapshot: ClusterSnapshot | None,
    doubt: Doubt | None,
    obstacle: str = "",
    remarks: tuple[str, ...] = (),
) -> ApplicationEdit:
    """Return the edit from topics to a compiled application.

    `doubt`: what is not known of topics with the same name. `obstacle`: why a rolling restart is not safe
    although the topics are the same.
    """
    application = after.application
    found = _compare_names(after, former, snapshot, doubt)
    why = application_obstacle(former.id, former.version, former.protocol, application) or obstacle
    if doubt is not None:
        why = why or doubt.obstacle
    elif any(each.verdict is not Verdict.KEPT for each in found):
        why = why or UNKNOWN_TOPOLOGY
    is_edited = (doubt is not None and doubt.is_edited) or any(
        each.verdict not in (Verdict.KEPT, Verdict.UNKNOWN) for each in found
    )
    is_streams_group = former.protocol is not Protocol.CLASSIC and application.protocol is Protocol.STREAMS
    needs_new_group = is_streams_group and former.id == application.id and is_edited
    order = {verdict: number for number, verdict in enumerate(Verdict)}
    return ApplicationEdit(
        id=application.id,
        former_id=None if former.id == application.id else former.id,
        before=former.version,
        after=application.kafka_streams,
        topics=tuple(sorted(found, key=lambda each: (order[each.verdict], each.topic))),
        obstacle=why,
        needs_new_group=needs_new_group,
        remarks=(*remarks, _NO_FORMAT),
        steps=tuple(_restart_steps(former, application, needs_new_group=needs_new_group)) if why else (),
        location=application.at,
    )


def _compare_names(
    after: CompiledApplication, former: _Former, snapshot: ClusterSnapshot | None, doubt: Doubt | None
) -> list[TopicEdit]:
    """Return the edits of all topics: what is needed after the edit, then what is no longer used."""
    topics = {topic.name: topic for topic in after.internal_topics}
    live = {name for name in former.counts if snapshot is None or name in snapshot.topics}
    live_origins = {name: origin for name, origin in former.origins.items() if name in live}
    renamed = {pair.new: pair.old for pair in find_renumberings(live_origins, origin_digests(after))}
    id_ = after.application.id
    moved_ids = {} if former.id == id_ else _with_former_id(topics, live, id_, former.id)
    is_static = StreamsConfig.from_application(after.application).is_statically_partitioned
    return [
        *(
            _edit_of_former_id(topic, moved_ids[name], doubt)
            if name in moved_ids
            else _topic_edit(topic, renamed.get(name), former.counts, live, is_static=is_static, doubt=doubt)
            for name, topic in topics.items()
        ),
        *map(_orphan_edit, live - topics.keys() - set(renamed.values()) - set(moved_ids.values())),
    ]


def _restart_steps(former: _Former, after: Application, *, needs_new_group: bool) -> Iterator[str]:
    yield "Stop all instances."
    if former.id == after.id:
        yield from group_steps(after.id, former.protocol, after.protocol, needs_new_group=needs_new_group)
    yield "Delete their local state, and start the new version."


def _with_former_id(
    topics: Iterable[str], live: AbstractSet[str], id_: str, former_id: str
) -> Mapping[str, str]:
    """Return topic → the topic before that differs only in the application id."""
    pairs = {name: f"{former_id}-{name.removeprefix(f'{id_}-')}" for name in topics}
    return {name: former for name, former in pairs.items() if former in live and name not in live}


def _subject_of(topic: InternalTopic) -> Subject:
    return Subject(topic, topic.node if topic.kind is TopicKind.CHANGELOG else None)


def _edit_of_former_id(topic: InternalTopic, former: str, doubt: Doubt | None) -> TopicEdit:
    is_store = topic.kind is TopicKind.CHANGELOG
    first = keep_id(is_store=is_store)
    is_in_doubt = doubt is not None and doubt.concerns(topic.name)
    return _subject_of(topic).edit(
        Verdict.RENAMED,
        Severity.ERROR if is_store else Severity.WARNING,
        former=former,
        what=f"{former} gets the name {topic.name}.",
        why="The application id changes: "
        + ("the store starts empty" if is_store else "records in the old topic are not read")
        + ", because names of internal topics begin with the id."
        + (f" {doubt.why}" if doubt is not None and is_in_doubt else ""),
        first=f"{doubt.first} {first}" if doubt is not None and is_in_doubt else first,
    )


def _topic_edit(
    topic: InternalTopic,
    former: str | None,
    before: Mapping[str, int],
    live: AbstractSet[str],
    *,
    is_static: bool,
    doubt: Doubt | None,
) -> TopicEdit:
    subject = _subject_of(topic)
    exists = topic.name in live
    if former is not None:
        return subject.edit(
            Verdict.RESET if exists else Verdict.RENAMED,
            Severity.ERROR,
            former=former,
            what=f"{former} gets the name {topic.name}.",
            why="A generated index shifts: the operator uses "
            + ("the data of another operator" if exists else "a new, empty topic")
            + f" instead of {former}.",
            first="Compare the document with its earlier version (`--git`): it shows which name keeps it.",
        )
    if not exists:
        return subject.edit(Verdict.ADDED, what=f"{topic.name} is needed.", why="There was none before.")
    if before[topic.name] != topic.partitions:
        return subject.moved(before[topic.name], is_static=is_static)
    what = f"{topic.name} keeps its name."
    if doubt is not None and doubt.concerns(topic.name):
        return subject.edit(Verdict.UNKNOWN, Severity.WARNING, what=what, why=doubt.why, first=doubt.first)
    return subject.edit(Verdict.KEPT, what=what, why=_NO_FORMAT)


def _orphan_edit(name: str) -> TopicEdit:
    is_store = name.endswith("-changelog")
    return TopicEdit(
        verdict=Verdict.ORPHANED,
        severity=Severity.WARNING,
        topic=name,
        kind=TopicKind.CHANGELOG if is_store else TopicKind.REPARTITION,
        what=f"{name} is no longer used.",
        why="No operator of the document uses it."
        if is_store
        else "Records in it that are not processed before the edit are never processed.",
        first="Delete it when you do not go back (`leftovers`)." if is_store else DRAIN,
    )


def find_edit_since_setup(
    records: Mapping[str, SetupRecord],
    after: Topologies,
    *,
    snapshot: ClusterSnapshot | None = None,
    assumed: AbstractSet[str] = frozenset(),
) -> Edit:
    """Return what changed since the last `pulumi up`; raises nothing.

    A record has the names and counts of the topics that were set up, not their formats. If counts of source
    topics are only `assumed`, counts are not compared.
    """
    active = {
        id_: topology
        for id_, topology in after.by_id.items()
        if topology.application.lifecycle is Lifecycle.ACTIVE
    }
    problems = tuple(
        problem.located(application=id_, location=topology.application.at)
        for id_, topology in active.items()
        for problem in errors(topology.compiled.problems)
    )
    refused = {problem.application for problem in problems}
    applications, continued = [], set[str]()
    for id_, topology in active.items():
        record = records.get(id_) or records.get(topology.application.renamed_from or "")
        if record is None:
            continue
        continued |= {id_, record.application_id}
        if id_ in refused:
            continue
        doubt = doubt_of(topology, record)
        obstacle, remarks = (
            ("", ()) if doubt is not None else _version_change(topology, record, after, snapshot)
        )
        application = attrs.evolve(
            _edit_of_names(
                topology.compiled,
                _Former(
                    id=record.application_id,
                    counts=_recorded_counts(record, topology.topics if assumed else {}),
                    origins={name: record.origins.get(name, "") for name in record.generated},
                    version=recorded_version(record),
                    protocol=recorded_protocol(record),
                ),
                snapshot=snapshot,
                doubt=doubt,
                obstacle=obstacle,
                remarks=remarks,
            ),
            settings=settings_since_setup(with_recorded_id(topology.compiled, record), record),
        )
        applications.append(application)
    return Edit(
        applications=tuple(applications),
        added=tuple(sorted(active.keys() - continued - refused)),
        removed=tuple(sorted(records.keys() - after.by_id.keys() - continued)),
        problems=problems,
        assumed=tuple(sorted(assumed)),
        cluster_id=snapshot.cluster_id if snapshot is not None else None,
    )


def _version_change(
    topology: Topology, record: SetupRecord, after: Topologies, snapshot: ClusterSnapshot | None
) -> tuple[str, tuple[str, ...]]:
    """Return why instances of the recorded and the new version must not run together, and remarks.

    The topology is the recorded one, so the recorded version builds its document as it did.
    """
    recorded, new = recorded_version(record), topology.application.kafka_streams
    if recorded is None:
        return "the version of Kafka Streams before the edit is not known", ()
    if (recorded.major, recorded.minor) == (new.major, new.minor):
        return "", ()
    if not topology.document.has_calls:
        return _OTHER_VERSION, ()
    application = attrs.evolve(topology.application, kafka_streams=recorded)
    before = after.with_document(attrs.evolve(topology.document, application=application))
    is_same = is_one_group(Versions(before.compiled, topology.compiled))
    return "" if is_same else _OTHER_TASKS, tuple(version_remarks(Sides(before, topology, snapshot)))


def _recorded_counts(record: SetupRecord, uncompared: Mapping[str, InternalTopic]) -> Mapping[str, int]:
    """Return internal topic → partition count at the last setup; `uncompared` topics have their new count."""
    return {
        name: uncompared[name].partitions if name in uncompared else topic.partitions
        for name, topic in record.topics.items()
        if not topic.is_sink and not topic.is_retired
    }
