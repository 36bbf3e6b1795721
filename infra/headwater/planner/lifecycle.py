"""The end of an application: it is released, or retired and then deleted, with its recorded topics."""

import attrs

from headwater.model.cluster import ClusterSnapshot
from headwater.model.compiled import CompiledApplication
from headwater.model.records import RecordedTopic, SetupRecord
from headwater.planner.actions import ActionKind
from headwater.planner.evidence.deletion import is_internal
from headwater.planner.evidence.topics import Evidence
from headwater.planner.phrases import counted
from headwater.planner.plans import ApplicationPlan
from headwater.planner.topic_actions import untouched


def release(
    record: SetupRecord, compiled: CompiledApplication | None, snapshot: ClusterSnapshot
) -> ApplicationPlan:
    """Return the plan that stops managing the application. All its topics stay."""
    actions = tuple(untouched(topic, snapshot, ActionKind.RELEASE, "it stays") for topic in _topics(record))
    note = f"released: {counted(len(actions), 'topic')} stay and are no longer managed"
    return ApplicationPlan(record.application_id, compiled, actions, record=None, notes=(note,))


def retire(record: SetupRecord, compiled: CompiledApplication | None, evidence: Evidence) -> ApplicationPlan:
    """Return the plan that prepares deletion: internal topics lose protection, other topics are released.

    The record gets the ids of the topics as they are now: the second step deletes only topics with these ids.
    """
    snapshot = evidence.snapshot
    deletable = {
        topic.name
        for topic in _topics(record)
        if topic.name in snapshot.topics
        and not topic.is_sink
        and is_internal(evidence.of(record.application_id, snapshot.topics[topic.name]))
    }
    actions = tuple(
        untouched(topic, snapshot, ActionKind.RETIRE, "it is deleted once the document is removed")
        if topic.name in deletable
        else untouched(topic, snapshot, ActionKind.RELEASE, "it stays")
        for topic in _topics(record)
    )
    internal = {
        topic.name: attrs.evolve(topic, topic_id=snapshot.topics[topic.name].topic_id, is_retired=True)
        for topic in _topics(record)
        if topic.name in deletable
    }
    note = (
        f"retired, step 1 of 2: nothing is deleted yet. Remove the document and run again to delete "
        f"{counted(len(internal), 'internal topic')}"
    )
    after = attrs.evolve(record, topics=internal, retired=True)
    return ApplicationPlan(record.application_id, compiled, actions, record=after, notes=(note,))


def delete(record: SetupRecord, snapshot: ClusterSnapshot) -> ApplicationPlan:
    """Return the plan that deletes the internal topics of a retired application."""
    actions = tuple(
        untouched(
            topic, snapshot, ActionKind.RELEASE if topic.is_sink else ActionKind.DELETE, "it was retired"
        )
        for topic in _topics(record)
    )
    deleted = sum(action.kind is ActionKind.DELETE for action in actions)
    note = f"retired, step 2 of 2: {counted(deleted, 'internal topic')} deleted"
    return ApplicationPlan(record.application_id, None, actions, record=None, notes=(note,))


def _topics(record: SetupRecord) -> list[RecordedTopic]:
    return sorted(record.topics.values(), key=lambda topic: topic.name)
