"""The setup record of an active application after a run."""

from collections.abc import Iterable

from headwater.compiler.renumbering import origins
from headwater.model.records import RecordedTopic, SetupRecord
from headwater.model.topology import Sink
from headwater.planner.actions import ActionKind, TopicAction
from headwater.planner.application import ActiveApplication
from headwater.planner.processors import initial_processors


def record_after(application: ActiveApplication, actions: Iterable[TopicAction]) -> SetupRecord:
    """Return the record to write. The ids of topics that the run creates are empty: they are read later."""
    before = application.record or application.predecessor
    return SetupRecord(
        application_id=application.id,
        topics={
            action.name: RecordedTopic(
                name=action.name,
                topic_id=action.live.topic_id if action.live else "",
                partitions=action.partitions,
                is_sink=_is_sink(application, action),
                is_retired=action.kind in (ActionKind.RETIRE, ActionKind.DELETE),
            )
            for action in sorted(actions, key=lambda action: action.name)
            if action.kind is not ActionKind.RELEASE
        },
        initial=initial_processors(application),
        initial_processors=(before.initial_processors if before else 0) or _processors(application),
        generated=frozenset(topic.name for topic in application.compiled.internal_topics if topic.generated),
        origins=origins(application.compiled),
        cluster_id=application.snapshot.cluster_id,
        kafka_streams=str(application.compiled.application.kafka_streams),
    )


def _processors(application: ActiveApplication) -> int:
    """Return one processor for each task of the largest sub-topology; 0 = not known yet."""
    if application.compiled.is_observed:
        return 0
    return (
        max((part.tasks for part in application.compiled.subtopologies if not part.is_global), default=0) or 1
    )


def _is_sink(application: ActiveApplication, action: TopicAction) -> bool:
    if action.topic is not None:
        return isinstance(action.topic, Sink)
    recorded = application.record.topics.get(action.name) if application.record else None
    return recorded is not None and recorded.is_sink
