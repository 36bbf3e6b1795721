"""Topics that are missing or replaced, and settings that lose data or stop writes."""

from collections import defaultdict
from collections.abc import Iterator

import attrs

from headwater.compiler.java.config_values import parse_whole
from headwater.compiler.source_problems import missing_topic
from headwater.model.cluster import LiveTopic
from headwater.model.compiled import CompiledApplication, InternalTopic
from headwater.model.problems import Problem, ProblemCode, Severity, errors
from headwater.model.records import RecordedTopic, SetupRecord
from headwater.planner.counts import CountedApplication
from headwater.planner.plans import ConfigChange, TopicAction
from headwater.planner.rules import topic_messages as messages
from headwater.planner.run import ActiveApplication, Run, TopicState
from headwater.planner.settings import Settings, find_misconfigurations, removing_changes
from headwater.planner.topic_actions import replication_factor

_REPORTED = (
    ProblemCode.MISSING_SOURCE_TOPIC,
    ProblemCode.UNDECIDABLE_PARTITIONS,
    ProblemCode.FOLLOW_CYCLE,
)


def missing_source(application: CountedApplication) -> Iterator[Problem]:
    """Kafka Streams throws MissingSourceTopicException, which names no topic.

    The compiler reports most of them itself, with the operator that reads the topic.
    """
    compiled = application.compiled
    reported = {problem.topic for problem in compiled.problems if problem.code in _REPORTED}
    for name in compiled.missing_sources:
        if name not in reported:
            yield missing_topic(
                name,
                application.caller,
                why="The partition counts of the internal topics follow the source topics. The application "
                "itself would stop with MissingSourceTopicException.",
                fix=f"Create {name}, or correct its name in the document.",
                application=application.id,
                location=compiled.application.at,
            )


def missing_sink(run: Run) -> Iterator[Problem]:
    """Yield a hint for each topic: planning needs no sinks, but the application does when it writes."""
    managed = {sink.topic for compiled in run.compiled for sink in compiled.sinks}
    for application in run.active:
        if not errors(application.compiled.problems):
            for topic in _written_topics(application.compiled):
                if topic not in managed and topic not in run.snapshot.topics:
                    yield messages.missing_sink_topic(application, topic)


def _written_topics(compiled: CompiledApplication) -> list[str]:
    """Return the user topics that sinks name, sorted."""
    internal = {topic for part in compiled.subtopologies for topic in part.repartition_topics}
    internal.update(topic.name for topic in compiled.internal_topics)
    return sorted({topic for part in compiled.subtopologies for topic in part.sinks} - internal)


def similar_new_names(run: Run) -> Iterator[Problem]:
    """Yield a problem for each new topic with the same metrics' names as another one (`Topic#hasCollision`).

    The brokers compare the names of new topics with the names of existing ones when they validate a plan, but
    not with each other.
    """
    new: defaultdict[str, dict[str, tuple[ActiveApplication, TopicState]]] = defaultdict(dict)
    for application in run.active:
        profile = application.compiled.application.cluster_profile
        if profile is None or not profile.accepts_similar_names:
            for state in application.topics:
                if state.live is None:
                    new[state.name.replace(".", "_")][state.name] = (application, state)
    for _, similar in sorted(new.items()):
        first, *others = sorted(similar)
        for name in others:
            yield messages.similar_names(*similar[name], first)


def lost_topics(application: ActiveApplication) -> Iterator[Problem]:
    """KIP-698: only a setup record distinguishes a first start from data loss.

    With `automatic` setup the topic is re-created, with a warning. A managed sink topic is re-created in both
    modes, because the application can continue without its data.
    """
    for state in application.topics:
        if state.is_lost:
            yield messages.lost_topic(
                application, state, is_error=state.is_internal and not application.accepts_loss
            )


def replaced_topics(application: ActiveApplication) -> Iterator[Problem]:
    """Yield problems for topics with another id than recorded. One with records may have been restored.

    A managed sink topic is a warning: the application can continue with another one.
    """
    for state in application.topics:
        if state.is_replaced and state.recorded is not None and state.live is not None:
            # While the application is running, no user restores a topic: new records are its own.
            is_loss = state.is_internal and (state.is_emptied or application.caller.is_running)
            severity = Severity.ERROR if is_loss and not application.accepts_loss else Severity.WARNING
            ids = (state.recorded.topic_id, state.live.topic_id)
            yield messages.replaced_topic(application, state, ids, severity)


def retired_topics(run: Run) -> Iterator[Problem]:
    """Yield a problem for each internal topic whose id is not the recorded one.

    The first step of retiring records the ids that it finds, so it continues with a warning. The second step
    deletes only topics with these ids.
    """
    for record in run.retiring:
        for recorded, live in _replaced_retired_topics(record, run):
            if recorded.topic_id:
                yield messages.replaced_retired_topic(record, recorded, live, _FIRST_STEP, Severity.WARNING)
    for record in run.deleted:
        for recorded, live in _replaced_retired_topics(record, run):
            yield messages.replaced_retired_topic(record, recorded, live, _SECOND_STEP, Severity.ERROR)


def _replaced_retired_topics(record: SetupRecord, run: Run) -> Iterator[tuple[RecordedTopic, LiveTopic]]:
    for name, recorded in sorted(record.topics.items()):
        live = run.snapshot.topics.get(name)
        if live is not None and not recorded.is_sink and live.topic_id != recorded.topic_id:
            yield recorded, live


_FIRST_STEP = (
    "If it may be deleted, continue: this run records its id. To keep it, set `lifecycle: released` before "
    "you remove the document."
)
_SECOND_STEP = (
    "To keep it, restore the document with `lifecycle: released` and run `pulumi up`. To delete it, restore "
    "the document with `lifecycle: retired` and run `pulumi up`, which records its id. Then remove the "
    "document again."
)


def misconfigured_topics(application: ActiveApplication) -> Iterator[Problem]:
    """KIP-698: `MisconfiguredInternalTopicException`. With `automatic` setup the setting is reset."""
    for state in application.internal:
        if isinstance(state.declared, InternalTopic) and state.live is not None:
            settings = Settings(state.live, application.snapshot.topic_defaults)
            for fault in find_misconfigurations(state.declared, settings):
                yield messages.misconfigured_topic(application, state, fault)


@attrs.frozen
class _Replicas:
    """The replicas of topics to be created. Topics with equal ones get one problem: they have one fix."""

    factor: int
    min_insync: int = 0
    is_internal: bool = attrs.field(kw_only=True)
    is_declared: bool = attrs.field(default=False, kw_only=True)


def too_few_replicas(application: ActiveApplication) -> Iterator[Problem]:
    """The controller may refuse to create the first. Every write with acks=all to the second fails.

    Neither Headwater nor Pulumi's provider changes the replicas of a topic that exists. Topics to be created
    are reported together.
    """
    short: dict[_Replicas, list[TopicState]] = {}
    weak: dict[_Replicas, list[TopicState]] = {}
    for state in application.topics:
        live = state.live
        factor = live.replication_factor if live else replication_factor(state, application.snapshot)
        min_insync = _min_insync(application, state)
        if live is None and factor > application.snapshot.brokers:
            short.setdefault(_Replicas(factor, is_internal=state.is_internal), []).append(state)
        declared = state.declared.replication_factor or -1
        if 0 < factor < min_insync:
            if live is None:
                is_declared = messages.MIN_INSYNC in state.declared.config
                kind = _Replicas(factor, min_insync, is_internal=state.is_internal, is_declared=is_declared)
                weak.setdefault(kind, []).append(state)
            else:
                yield messages.fewer_than_min_insync(application, [state], factor, min_insync)
        elif live is not None and 0 < declared != factor and not application.caller.is_running:
            yield messages.not_as_declared(application, state, factor, declared)
    for replicas, states in short.items():
        yield messages.too_few_brokers(application, states, replicas.factor)
    for replicas, states in weak.items():
        yield messages.fewer_than_min_insync(application, states, replicas.factor, replicas.min_insync)


def _min_insync(application: ActiveApplication, state: TopicState) -> int:
    """Return `min.insync.replicas` after the run: `automatic` setup changes a declared setting."""
    declared = parse_whole(state.declared.config.get(messages.MIN_INSYNC, "")) or 0
    if declared and (state.live is None or not application.is_manual):
        return declared
    return messages.live_min_insync(application, state)


def removing_settings(run: Run) -> Iterator[Problem]:
    """Yield a warning for each topic of an earlier run that will keep less: sinks and internal topics.

    A setting that Kafka Streams requires, and that another client has changed, is reset without it
    (`misconfigured_topics`). Topics of other clients are reported by `unproven_adoption`.
    """
    actions = {action.name: action for action in run.actions}
    for application in run.active:
        for state in application.topics:
            if state.live is not None and state.is_ours and not state.is_replaced:
                changes = _chosen_changes(run, state, actions[state.name])
                if changes:
                    yield messages.setting_removes_data(application, state, changes)


def _chosen_changes(run: Run, state: TopicState, action: TopicAction) -> tuple[ConfigChange, ...]:
    """Return the changes with which Kafka removes records, if not all of them repair the topic."""
    live, defaults = state.live, run.snapshot.topic_defaults
    if live is None:
        return ()
    changes = removing_changes(live, action, defaults)
    declared = state.declared
    if isinstance(declared, InternalTopic):
        repaired = {fault.change.key for fault in find_misconfigurations(declared, Settings(live, defaults))}
        if all(change.key in repaired for change in changes):
            return ()
    return changes
