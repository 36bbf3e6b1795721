"""What a run does with each topic of an active application. Whether it may is for the rules."""

from collections.abc import Mapping

from infra.model.cluster import ClusterSnapshot
from infra.model.compiled import InternalTopic
from infra.model.record import RecordedTopic
from infra.planner.actions import ActionKind, ConfigChange, TopicAction
from infra.planner.application import ActiveApplication, TopicState
from infra.planner.settings import Settings, differences, foreign, misconfigurations


def topic_actions(application: ActiveApplication) -> tuple[TopicAction, ...]:
    """Return an action for each topic that is wanted, and each that was set up and no longer is."""
    wanted = [
        _create(application, state) if state.live is None else _look_after(application, state)
        for state in application.topics
    ]
    return (*wanted, *_left_behind(application))


def _create(application: ActiveApplication, state: TopicState) -> TopicAction:
    return TopicAction(
        kind=ActionKind.RECREATE if state.is_lost else ActionKind.CREATE,
        name=state.name,
        topic=state.declared,
        partitions=state.partitions,
        config=state.declared.config,
        replication_factor=replication_factor(state, application.snapshot),
        note="it was set up before and is gone: what it held is lost" if state.is_lost else "",
    )


def _look_after(application: ActiveApplication, state: TopicState) -> TopicAction:
    live = state.live
    if live is None:
        raise ValueError(state.name)
    grows = state.missing_partitions > 0 and (application.config.autoscaling or not state.is_internal)
    changes, drift = _config_changes(application, state, Settings(live, application.snapshot.topic_defaults))
    return TopicAction(
        kind=_kind(state, grows=grows, changes=bool(changes)),
        name=state.name,
        topic=state.declared,
        live=live,
        partitions=state.partitions if grows else live.partitions,
        config=_changed(live.config, changes),
        replication_factor=live.replication_factor,
        changes=changes,
        drift=drift,
        note="it was deleted and re-created since it was set up" if state.is_replaced else "",
    )


def _kind(state: TopicState, *, grows: bool, changes: bool) -> ActionKind:
    if not state.is_ours:
        return ActionKind.ADOPT
    if grows:
        return ActionKind.EXPAND
    return ActionKind.RECTIFY if changes else ActionKind.KEEP


def _config_changes(
    application: ActiveApplication, state: TopicState, settings: Settings
) -> tuple[tuple[ConfigChange, ...], tuple[ConfigChange, ...]]:
    """Return what is changed and what stays different: `automatic` puts right, `manual` shows."""
    wanted = state.declared
    wrong = misconfigurations(wanted, settings) if isinstance(wanted, InternalTopic) else ()
    changes = {change.key: change for change in differences(wanted.config, settings)}
    changes |= {fault.change.key: fault.change for fault in wrong}
    others = {change.key: change for change in foreign(wanted.config, settings.live)}
    if application.is_manual:
        return (), _sorted(others | changes)
    return _sorted(changes), _sorted({key: change for key, change in others.items() if key not in changes})


def _sorted(changes: Mapping[str, ConfigChange]) -> tuple[ConfigChange, ...]:
    return tuple(changes[key] for key in sorted(changes))


def _changed(config: Mapping[str, str], changes: tuple[ConfigChange, ...]) -> Mapping[str, str]:
    changed = dict(config)
    for change in changes:
        if change.wanted is None:
            changed.pop(change.key, None)
        else:
            changed[change.key] = change.wanted
    return changed


def _left_behind(application: ActiveApplication) -> list[TopicAction]:
    """Topics that were set up and that the topology no longer has: they stay as long as they exist."""
    if application.record is None or not application.is_decided:
        return []
    wanted = {state.name for state in application.topics}
    gone = (topic for topic in application.record.topics.values() if topic.name not in wanted)
    return [untouched(topic, application.snapshot, ActionKind.KEEP, _ORPHANED) for topic in gone]


_ORPHANED = "the topology no longer has it; it stays until you delete it"
_FORGOTTEN = "gone from the cluster: forgotten"


def untouched(recorded: RecordedTopic, snapshot: ClusterSnapshot, kind: ActionKind, note: str) -> TopicAction:
    """Return an action that leaves a recorded topic as it is; when it no longer exists, it is released."""
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
    """Return the factor of a new topic: -1 (the broker's default) is resolved when that is known."""
    factor = state.declared.replication_factor
    if factor is None or factor < 1:
        return snapshot.default_replication_factor or -1
    return factor
