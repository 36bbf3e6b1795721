"""An internal topic was deleted and created anew behind the back of the record."""

from collections.abc import Iterator

from infra.model.problems import Problem, ProblemCode, Severity
from infra.planner.situation import Situation, TopicState


def replaced_topics(situation: Situation) -> Iterator[Problem]:
    """The name is the same, the topic id is not. One with records in it may have been restored: a warning."""
    accepted = not situation.is_manual or situation.compiled.application.setup.reinitialize
    for state in situation.internal:
        if state.is_emptied:
            severity = Severity.WARNING if accepted else Severity.ERROR
            yield _problem(situation, state, "and is empty", severity)
        elif state.is_replaced:
            yield _problem(situation, state, "and holds records", Severity.WARNING)


def _problem(situation: Situation, state: TopicState, what: str, severity: Severity) -> Problem:
    recorded = state.recorded.topic_id if state.recorded else ""
    live = state.live.topic_id if state.live else ""
    return situation.problem(
        ProblemCode.MISSING_INTERNAL_TOPICS,
        f"Internal topic {state.name} was deleted and created anew since it was set up {what}.",
        about=state,
        expected=f"topic id {recorded}",
        found=f"topic id {live}, {'empty' if state.is_emptied else 'not empty'}",
        why="What the topic held is lost unless it was restored: state, or records that were not processed "
        "yet.",
        fix="Restore the topic from a backup. To go on without its data, stop the application and set "
        "`setup.reinitialize: true` for one run."
        if severity is Severity.ERROR
        else "Make sure that it was restored on purpose; otherwise rebuild the state by reprocessing the "
        "source topics.",
        severity=severity,
    )
