"""Settings of topics that lose data or stop writes."""

from collections.abc import Iterator

from headwater.model.compiled import InternalTopic
from headwater.model.problems import Problem
from headwater.planner.actions import ConfigChange, TopicAction
from headwater.planner.application import ActiveApplication, TopicState
from headwater.planner.phrases import whole
from headwater.planner.rules.topic_messages import (
    KEY,
    live_min_insync,
    misconfigured_topic,
    never_in_sync,
    not_as_declared,
    setting_removes_data,
    too_few_brokers,
)
from headwater.planner.run import Run
from headwater.planner.settings import Settings, misconfigurations, removing_changes
from headwater.planner.topic_actions import replication_factor


def misconfigured(application: ActiveApplication) -> Iterator[Problem]:
    """KIP-698: `MisconfiguredInternalTopicException`. With `automatic` setup the setting is reset."""
    for state in application.internal:
        if isinstance(state.declared, InternalTopic) and state.live is not None:
            settings = Settings(state.live, application.snapshot.topic_defaults)
            for fault in misconfigurations(state.declared, settings):
                yield misconfigured_topic(application, state, fault)


def replication(application: ActiveApplication) -> Iterator[Problem]:
    """The controller may refuse to create the first. Every write with acks=all to the second fails.

    Neither Headwater nor Pulumi's provider changes the replicas of a topic that exists.
    """
    for state in application.topics:
        factor = (
            state.live.replication_factor if state.live else replication_factor(state, application.snapshot)
        )
        if state.live is None and factor > application.snapshot.brokers:
            yield too_few_brokers(application, state, factor)
        required = _min_insync(application, state)
        declared = state.declared.replication_factor or -1
        if 0 < factor < required:
            is_new = state.live is None or required > live_min_insync(application, state)
            yield never_in_sync(application, state, factor, required, is_new=is_new)
        elif state.live is not None and 0 < declared != factor and not application.caller.is_running:
            yield not_as_declared(application, state, factor, declared)


def _min_insync(application: ActiveApplication, state: TopicState) -> int:
    """Return what writes require after the run: `automatic` setup changes a declared setting."""
    declared = whole(state.declared.config.get(KEY, "")) or 0
    if declared and (state.live is None or not application.is_manual):
        return declared
    return live_min_insync(application, state)


def removing_settings(run: Run) -> Iterator[Problem]:
    """Yield a warning for each topic of an earlier run that will keep less: sinks and internal topics.

    A setting that Kafka Streams requires, and that another client has changed, is reset without it
    (`misconfigured`). Topics of other clients are reported by `unproven_adoption`.
    """
    actions = {action.name: action for action in run.actions}
    for application in run.active:
        for state in application.topics:
            if state.live is not None and state.is_ours and not state.is_replaced:
                changes = _chosen_changes(run, state, actions[state.name])
                if changes:
                    yield setting_removes_data(application, state, changes)


def _chosen_changes(run: Run, state: TopicState, action: TopicAction) -> tuple[ConfigChange, ...]:
    """Return the changes with which Kafka removes records, if not all of them repair the topic."""
    live, defaults = state.live, run.snapshot.topic_defaults
    if live is None:
        return ()
    changes = removing_changes(live, action, defaults)
    declared = state.declared
    if isinstance(declared, InternalTopic):
        repaired = {fault.change.key for fault in misconfigurations(declared, Settings(live, defaults))}
        if all(change.key in repaired for change in changes):
            return ()
    return changes
