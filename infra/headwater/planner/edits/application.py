"""What an edit means for the application: restarts, groups, offsets, and the order of steps."""

from collections.abc import Iterator, Mapping, Sequence

from headwater.compiler.renumbering import find_renumberings, origin_digests
from headwater.model.compiled import CompiledApplication, TopicKind
from headwater.model.problems import Severity
from headwater.model.topology import Application, Protocol
from headwater.model.versions import KafkaStreamsVersion
from headwater.planner.edits.matching import Sides
from headwater.planner.edits.names import copied_store
from headwater.planner.edits.values import NameLine, TopicEdit, Verdict
from headwater.planner.phrases import counted, leave_streams_group, listed, move_group_offsets
from headwater.planner.upgrade.changes import NO_DOWNGRADES
from headwater.planner.upgrade.data import data_notes, sent_topology
from headwater.planner.upgrade.notes import unseen_differences, upgrade_notes
from headwater.planner.upgrade.topology import Versions, is_one_group

_LOST = (Verdict.RESET, Verdict.RENAMED)


def find_obstacle(sides: Sides, topics: Sequence[TopicEdit]) -> str:
    """Return why instances before and after the edit must not run together; empty if they may."""
    before, after = sides.before, sides.after
    reasons = {
        "instances before and after the edit would have different tasks": not is_one_group(
            Versions(before.compiled, after.compiled)
        ),
        "internal topics need other partition counts, or keys get other partitions": any(
            topic.verdict is Verdict.MOVED for topic in topics
        ),
        "instances before and after the edit would write different records to one topic": any(
            topic.verdict is Verdict.RESET for topic in topics
        ),
        "instances before and after the edit would use a store in different ways": any(
            topic.verdict is Verdict.KEPT and topic.severity is not Severity.INFO for topic in topics
        ),
    }
    return application_obstacle(
        before.id, before.application.kafka_streams, before.application.protocol, after.application
    ) or next((reason for reason, holds in reasons.items() if holds), "")


def application_obstacle(
    id_: str, version: KafkaStreamsVersion | None, protocol: Protocol | None, after: Application
) -> str:
    """Return what of id, version and protocol before the edit forbids a rolling restart; None = not known."""
    new = after.kafka_streams
    reasons = {
        NO_DOWNGRADES: version is not None and version.is_later_release_than(new),
        "the application id changes": id_ != after.id,
        "the group protocol changes": protocol is not None and protocol is not after.protocol,
    }
    return next((reason for reason, holds in reasons.items() if holds), "")


def new_group_is_needed(sides: Sides) -> bool:
    """Return whether the broker refuses the changed topology (KIP-1071, KAFKA-20170)."""
    streams = Protocol.STREAMS
    if not (sides.before.application.protocol is sides.after.application.protocol is streams):
        return False
    is_same = sent_topology(sides.before.compiled) == sent_topology(sides.after.compiled)
    return sides.before.id == sides.after.id and not is_same


def group_steps(
    id_: str, before: Protocol | None, after: Protocol, *, needs_new_group: bool
) -> Iterator[str]:
    """Yield how the stopped application keeps its offsets in a group with another topology or protocol.

    `before` None: the protocol before the edit is not known.
    """
    if needs_new_group:
        yield leave_streams_group(id_)
    elif before is Protocol.STREAMS and after is Protocol.CLASSIC:
        yield (
            f"Brokers of Kafka 4.2 or later keep the committed offsets of {id_} for the classic group. With "
            f"brokers of Kafka 4.1, {move_group_offsets(id_)}."
        )
    elif before is Protocol.CLASSIC and after is Protocol.STREAMS:
        yield (
            f"Wait until the group has no members: `kafka-consumer-groups.sh --bootstrap-server BROKER "
            f"--describe --group {id_} --members`. Brokers of Kafka 4.2 or later then keep its committed "
            "offsets for the streams group. Brokers of Kafka 4.1 refuse the streams group while there is a "
            "classic one: keep `group.protocol: classic` with them."
        )


def edit_remarks(sides: Sides, topics: Sequence[TopicEdit], *, needs_new_group: bool) -> Iterator[str]:
    """Yield sentences about offsets, sub-topologies and versions."""
    yield from version_remarks(sides)
    if not _have_something_in_common(sides):
        yield (
            "Before and afterwards have no source topic, no store and no internal topic in common: make sure "
            "that both are of the same application."
        )
    old, new = (set(each.compiled.external_sources) for each in (sides.before, sides.after))
    if sides.before.id != sides.after.id:
        yield (
            f"The application id changes from {sides.before.id} to {sides.after.id}: the new group has no "
            "committed offsets, so all source topics are read from their offset reset."
        )
    else:
        if added := new - old:
            yield (
                f"No offset is committed for {listed(added)}: the offset reset decides where reading starts."
            )
        if removed := old - new:
            yield (
                f"Committed offsets of {listed(removed)} stay until they expire "
                "(`offsets.retention.minutes`). If the topics are read again before, reading continues there."
            )
    if moved := _renumbered_subtopologies(sides):
        yield (
            f"Sub-topologies get other numbers: {', '.join(f'{a} becomes {b}' for a, b in moved.items())}. "
            "Committed offsets are kept by topic partition, so they are continued; local state of the tasks "
            "is restored again."
        )
    left = [t for t in topics if t.kind is not TopicKind.CHANGELOG and t.verdict in _UNREAD]
    if unread := [name for topic in left if (name := topic.former or topic.topic) not in sides.after.topics]:
        yield (
            f"Records in flight in {listed(unread)} are never processed, unless they are processed "
            "before the edit."
        )
    is_continued = sides.before.id == sides.after.id and not needs_new_group
    if is_continued and old == new and all(_keeps_records(topic) for topic in topics):
        yield "No record of the source topics is processed twice or never: committed offsets are continued."


def _have_something_in_common(sides: Sides) -> bool:
    """Return whether both sides have a topic or store of the same name, or one side has none at all."""
    names = [
        {
            *each.compiled.external_sources,
            *each.compiled.global_topics,
            *(store.name for store in each.nodes.stores),
            *map(each.short_name, each.topics),
        }
        for each in (sides.before, sides.after)
    ]
    return not all(names) or bool(names[0] & names[1])


_UNREAD = (Verdict.RENAMED, Verdict.ORPHANED)


def _keeps_records(topic: TopicEdit) -> bool:
    """Return whether records in flight in the topic are processed, or are none."""
    return topic.kind is TopicKind.CHANGELOG or topic.verdict in (Verdict.KEPT, Verdict.ADDED)


def version_remarks(sides: Sides) -> Iterator[str]:
    """Yield sentences about what another version of Kafka Streams changes, none if it is the same."""
    before, after = sides.before.application.kafka_streams, sides.after.application.kafka_streams
    if before == after:
        if sides.before.application.names_version is not sides.after.application.names_version:
            yield f"Only one side names a version of Kafka Streams: both are compared as {after}."
        return
    yield f"Kafka Streams {before} becomes {after}; docs/versions.md explains what changes between them."
    yield from upgrade_notes(sides.before.application, after)
    for note in data_notes(Versions(sides.before.compiled, sides.after.compiled)):
        yield f"Data: {note.text}"
    if unseen := _unseen_sources(sides):
        yield (
            "A text of `Topology#describe()` does not show whether these differences concern it: "
            f"{', '.join(unseen)}."
        )


def is_known(sides: Sides) -> bool:
    """Return whether both topologies are known: one text does not show what two versions build."""
    return sides.before.nodes != sides.after.nodes or not _unseen_sources(sides)


def _unseen_sources(sides: Sides) -> tuple[str, ...]:
    """Return the sources of differences between the versions that a text does not show."""
    if sides.before.compiled.described is None:
        return ()
    found = unseen_differences(
        sides.before.application, sides.after.application.kafka_streams, sides.before.compiled.described
    )
    return tuple(difference.source for difference in found)


def _renumbered_subtopologies(sides: Sides) -> Mapping[int, int]:
    """Return the number before → afterwards of sub-topologies that read the same user topics."""

    def by_sources(compiled: CompiledApplication) -> dict[object, list[int]]:
        found: dict[object, list[int]] = {}
        for part in compiled.subtopologies:
            sources = set(part.sources) - set(part.repartition_topics)
            if sources and not part.is_global:
                found.setdefault((tuple(sorted(sources)), part.source_patterns), []).append(part.id)
        return found

    old, new = by_sources(sides.before.compiled), by_sources(sides.after.compiled)
    return {
        ids[0]: new[key][0]
        for key, ids in old.items()
        if len(ids) == 1 and len(new.get(key, ())) == 1 and new[key][0] != ids[0]
    }


def edit_steps(
    sides: Sides, topics: Sequence[TopicEdit], lines: Sequence[NameLine], why: str, *, needs_new_group: bool
) -> Iterator[str]:
    """Yield instructions in order; none if a rolling restart does it all."""
    is_manual = sides.after.config.setup_mode.value == "manual"
    needs_topics = any(topic.verdict in (Verdict.ADDED, *_LOST, Verdict.MOVED) for topic in topics)
    if lines:
        yield (
            f"To keep the old names, add {counted(len(lines), 'line')}, and run `headwater change` again. "
            "Otherwise, follow the next steps."
        )
    if any(
        topic.kind is not TopicKind.CHANGELOG
        and topic.verdict is not Verdict.KEPT
        and topic.severity is not Severity.INFO
        for topic in topics
    ):
        kind = "streams" if sides.before.application.protocol is Protocol.STREAMS else "consumer"
        yield (
            "Stop what writes to the source topics. Wait until "
            f"`kafka-{kind}-groups.sh --bootstrap-server BROKER --describe --group {sides.before.id}` "
            "shows a lag of 0."
        )
    if why or needs_new_group:
        yield "Stop all instances."
    if sides.before.id == sides.after.id:
        protocols = sides.before.application.protocol, sides.after.application.protocol
        yield from group_steps(sides.before.id, *protocols, needs_new_group=needs_new_group)
    has_acls = sides.after.application.acls is not None
    if needs_topics and (is_manual or has_acls):
        is_renumbered = find_renumberings(
            origin_digests(sides.before.compiled), origin_digests(sides.after.compiled)
        )
        switch = " with `setup.reinitialize: true` for this run" if is_manual and is_renumbered else ""
        granted = ", and grants its ACLs" if has_acls else ""
        yield f"Run `pulumi up`{switch}, which creates the topics of the new topology{granted}."
    for topic in topics:
        if why and (copy := copied_store(sides, topic)):
            yield f"Copy the state of a renamed store, with the document of the new version: {copy}."
    if why or needs_new_group:
        yield "Delete the local state of all instances, and start the new version."
    elif needs_topics or lines:
        yield "Restart the instances one after another."
