"""A run changes settings of the stack's own topics so that Kafka removes records that it keeps now."""

from collections.abc import Iterator

from headwater.model.compiled import InternalTopic
from headwater.model.problems import Problem, ProblemCode, Severity
from headwater.planner.actions import ConfigChange, TopicAction
from headwater.planner.application import ActiveApplication, TopicState
from headwater.planner.run import Run
from headwater.planner.settings import Settings, misconfigurations, removing_changes


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
                    yield _problem(application, state, changes)


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


def _problem(application: ActiveApplication, state: TopicState, changes: tuple[ConfigChange, ...]) -> Problem:
    return application.problem(
        ProblemCode.SETTING_REMOVES_DATA,
        f"{state.title} gets settings with which Kafka removes records that it keeps now.",
        topic=state,
        expected=", ".join(f"{change.key} {change.declared or 'not set'}" for change in changes),
        found=", ".join(f"{change.key} {change.live or 'not set'}" for change in changes),
        why="Records that Kafka removes cannot be restored.",
        fix="If the records are needed, declare the live values in the document. A policy "
        "`blastRadius: {removingSettings: 0}` refuses such changes.",
        severity=Severity.WARNING,
    )
