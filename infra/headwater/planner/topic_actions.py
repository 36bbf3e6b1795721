"""Decides what happens to each topic of an application, and to topics without an application."""

from collections.abc import Mapping

import attrs

from headwater.compiler.streams_config import has_library
from headwater.model.cluster import ClusterSnapshot
from headwater.model.compiled import CompiledApplication, InternalTopic
from headwater.model.records import RecordedTopic, SetupRecord
from headwater.planner.evidence.deletion import is_internal
from headwater.planner.evidence.topics import Evidence
from headwater.planner.phrases import counted
from headwater.planner.plans import ActionKind, ApplicationPlan, ConfigChange, TopicAction
from headwater.planner.processors import has_own_count
from headwater.planner.run import ActiveApplication, TopicState
from headwater.planner.settings import Settings, find_differences, find_misconfigurations, undeclared_settings


def topic_actions(application: ActiveApplication) -> tuple[TopicAction, ...]:
    """Return an action for each declared topic, and for each recorded topic that is no longer declared."""
    declared = [
        _create_topic(application, state) if state.live is None else _reconcile_topic(application, state)
        for state in application.topics
    ]
    return (*declared, *_undeclared_topics(application))


def _create_topic(application: ActiveApplication, state: TopicState) -> TopicAction:
    return TopicAction(
        kind=ActionKind.RECREATE if state.is_lost else ActionKind.CREATE,
        name=state.name,
        topic=state.declared,
        partitions=state.partitions,
        config=state.declared.config,
        replication_factor=replication_factor(state, application.snapshot),
        note=_note_of(state, "it was set up and no longer exists: its data is lost" if state.is_lost else ""),
    )


def _reconcile_topic(application: ActiveApplication, state: TopicState) -> TopicAction:
    live = state.live
    if live is None:
        raise ValueError(state.name)
    is_expandable = application.config.autoscaling or not state.is_internal
    grows = state.missing_partitions > 0 and is_expandable and not has_own_count(application, state)
    changes, drift = _config_changes(application, state, Settings(live, application.snapshot.topic_defaults))
    return TopicAction(
        kind=_kind_of(state, grows=grows, changes=bool(changes)),
        name=state.name,
        topic=state.declared,
        live=live,
        partitions=state.partitions if grows else live.partitions,
        config=_apply_changes(live.config, changes),
        replication_factor=live.replication_factor,
        changes=changes,
        drift=drift,
        note=_note_of(state, _change_by_others(application, state)),
    )


def _note_of(state: TopicState, note: str) -> str:
    moved = f"managed by {state.former} until now" if state.former else ""
    return "; ".join(part for part in (moved, note) if part)


def _change_by_others(application: ActiveApplication, state: TopicState) -> str:
    """Return what another client than the stack has done to the topic; empty = nothing that is known."""
    if state.is_replaced:
        return "it was deleted and re-created since it was set up"
    live, recorded = state.live_partitions or 0, state.recorded_partitions
    expansions = application.snapshot.expansions
    if expansions is None or recorded is None or live <= recorded:
        return ""
    expanded = f"{recorded} partitions at the last complete run of the stack, expanded by"
    by_agents = [each for each in expansions.found if (each.topic, each.partitions) == (state.name, live)]
    if by_agents:
        last = by_agents[-1]
        return f"{expanded} agent {last.client_id} on {last.host} at {last.at}"
    if expansions.unread:
        return f"{expanded} {_OTHERS}; journals of agents not readable: {', '.join(expansions.unread)}"
    # Without permission to describe the journals, none is found although agents may have expanded the topic.
    no_agent = "; it is in no journal of an agent that the user may read" if expansions.read else ""
    expands_itself = application.config.autoscaling and has_library(application.compiled.application.config)
    if expands_itself and state.is_internal:
        return f"{expanded} its client supplier, {_OTHERS}{no_agent}"
    return f"{expanded} {_OTHERS}{no_agent}"


_OTHERS = "an interrupted run of the stack or another client"
"""A run that failed has expanded topics, and has not recorded it."""


def _kind_of(state: TopicState, *, grows: bool, changes: bool) -> ActionKind:
    if not state.is_ours:
        return ActionKind.ADOPT
    if grows:
        return ActionKind.EXPAND
    return ActionKind.RECONFIGURE if changes else ActionKind.KEEP


def _config_changes(
    application: ActiveApplication, state: TopicState, settings: Settings
) -> tuple[tuple[ConfigChange, ...], tuple[ConfigChange, ...]]:
    """Return changes and remaining differences. `automatic` setup changes settings, `manual` does not."""
    declared = state.declared
    wrong = find_misconfigurations(declared, settings) if isinstance(declared, InternalTopic) else ()
    changes = {change.key: change for change in find_differences(declared.config, settings)}
    changes |= {fault.change.key: fault.change for fault in wrong}
    others = {change.key: change for change in undeclared_settings(declared.config, settings)}
    if application.is_manual:
        return (), _sort_changes(others | changes)
    return _sort_changes(changes), _sort_changes(
        {key: change for key, change in others.items() if key not in changes}
    )


def _sort_changes(changes: Mapping[str, ConfigChange]) -> tuple[ConfigChange, ...]:
    return tuple(changes[key] for key in sorted(changes))


def _apply_changes(config: Mapping[str, str], changes: tuple[ConfigChange, ...]) -> Mapping[str, str]:
    changed = dict(config)
    for change in changes:
        if change.declared is None:
            changed.pop(change.key, None)
        else:
            changed[change.key] = change.declared
    return changed


def _undeclared_topics(application: ActiveApplication) -> list[TopicAction]:
    """Return actions for topics that the topology no longer has: they stay unless they are retired."""
    if not application.is_decided:
        return []
    declared = {state.name for state in application.topics}
    recorded = application.record.topics if application.record else {}
    left = {name: topic for name, topic in recorded.items() if name not in declared}
    live = application.snapshot.topics
    for name in application.compiled.application.leftovers.retire:
        if application.caller.knows_setup and name in live and name not in declared:
            # A topic that no run has recorded is adopted and retired at once.
            left.setdefault(name, RecordedTopic(name, live[name].topic_id, live[name].partitions))
    return [
        untouched_topic(topic, application.snapshot, *_end_of_leftover(application, topic))
        for _, topic in sorted(left.items())
    ]


def _end_of_leftover(application: ActiveApplication, topic: RecordedTopic) -> tuple[ActionKind, str]:
    """Return what happens to a topic that the topology no longer has, and a note. Sinks are never deleted."""
    leftovers = application.compiled.application.leftovers
    if topic.name in leftovers.keep:
        return ActionKind.RELEASE, "`leftovers.keep`: it stays"
    if topic.name in leftovers.delete and topic.is_retired:
        return ActionKind.DELETE, "it was retired"
    if topic.name in leftovers.retire and not topic.is_sink:
        return ActionKind.RETIRE, "it is deleted once it is listed below `leftovers.delete`"
    return ActionKind.KEEP, _LEFT_SINK if topic.is_sink else _ORPHANED


_ORPHANED = "the topology no longer has it; it stays unless `leftovers` retires it"
_LEFT_SINK = "the document no longer declares it; it stays; `leftovers.keep` removes it from the stack"
_FORGOTTEN = "no longer on the cluster: removed from the record"


def untouched_topic(
    recorded: RecordedTopic, snapshot: ClusterSnapshot, kind: ActionKind, note: str
) -> TopicAction:
    """Return an action that does not change a recorded topic. If it no longer exists, it is released."""
    live = snapshot.topics.get(recorded.name)
    if live is None:
        kind, note = ActionKind.RELEASE, _FORGOTTEN
    return TopicAction(
        kind=kind,
        name=recorded.name,
        live=live,
        partitions=live.partitions if live else recorded.partitions,
        config=live.config if live else {},
        replication_factor=live.replication_factor if live else -1,
        note=note,
    )


def replication_factor(state: TopicState, snapshot: ClusterSnapshot) -> int:
    """Return the factor of a new topic. -1 is replaced by the broker's default, if that is known."""
    factor = state.declared.replication_factor
    if factor is None or factor < 1:
        return snapshot.default_replication_factor or -1
    return factor


def release_application(
    record: SetupRecord, compiled: CompiledApplication | None, snapshot: ClusterSnapshot
) -> ApplicationPlan:
    """Return the plan that stops managing the application. All its topics stay."""
    actions = tuple(
        untouched_topic(topic, snapshot, ActionKind.RELEASE, "it stays") for topic in _recorded_topics(record)
    )
    note = f"released: {counted(len(actions), 'topic')} no longer managed, nothing is deleted"
    return ApplicationPlan(record.application_id, compiled, actions, record=None, notes=(note,))


def retire_application(
    record: SetupRecord, compiled: CompiledApplication | None, evidence: Evidence
) -> ApplicationPlan:
    """Return the plan that prepares deletion: internal topics lose protection, other topics are released.

    The record gets the ids of the topics as they are now: the second step deletes only topics with these ids.
    """
    snapshot = evidence.snapshot
    deletable = {
        topic.name
        for topic in _recorded_topics(record)
        if topic.name in snapshot.topics
        and not topic.is_sink
        and is_internal(evidence.about_topic(record.application_id, snapshot.topics[topic.name]))
    }
    actions = tuple(
        untouched_topic(topic, snapshot, ActionKind.RETIRE, "it is deleted once the document is removed")
        if topic.name in deletable
        else untouched_topic(topic, snapshot, ActionKind.RELEASE, "it stays")
        for topic in _recorded_topics(record)
    )
    internal = {
        topic.name: attrs.evolve(topic, topic_id=snapshot.topics[topic.name].topic_id, is_retired=True)
        for topic in _recorded_topics(record)
        if topic.name in deletable
    }
    note = (
        f"retired, step 1 of 2: nothing is deleted yet. Remove the document and run again to delete "
        f"{counted(len(internal), 'internal topic')}"
    )
    after = attrs.evolve(record, topics=internal, retired=True)
    return ApplicationPlan(record.application_id, compiled, actions, record=after, notes=(note,))


def delete_application(record: SetupRecord, snapshot: ClusterSnapshot) -> ApplicationPlan:
    """Return the plan that deletes the internal topics of a retired application."""
    actions = tuple(
        untouched_topic(
            topic, snapshot, ActionKind.RELEASE if topic.is_sink else ActionKind.DELETE, "it was retired"
        )
        for topic in _recorded_topics(record)
    )
    deleted = sum(action.kind is ActionKind.DELETE for action in actions)
    note = f"retired, step 2 of 2: {counted(deleted, 'internal topic')} deleted"
    return ApplicationPlan(record.application_id, None, actions, record=None, notes=(note,))


def _recorded_topics(record: SetupRecord) -> list[RecordedTopic]:
    return sorted(record.topics.values(), key=lambda topic: topic.name)
