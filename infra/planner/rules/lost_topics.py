"""An internal topic that was set up is gone."""

from collections.abc import Iterator

from infra.model.problems import Problem, ProblemCode, Severity
from infra.planner.situation import Situation, TopicState
from infra.planner.wording import counted


def lost_topics(situation: Situation) -> Iterator[Problem]:
    """KIP-698: only a recorded set-up tells a first start from data loss. `automatic` creates anew, loudly.

    A managed sink topic is created anew in both modes: the application can go on without what it held.
    """
    accepted = not situation.is_manual or situation.compiled.application.setup.reinitialize
    for state in situation.topics:
        if state.is_lost:
            yield _problem(situation, state, is_error=state.is_internal and not accepted)


def _problem(situation: Situation, state: TopicState, *, is_error: bool) -> Problem:
    return situation.problem(
        ProblemCode.MISSING_INTERNAL_TOPICS,
        f"{state.title} was set up and is gone" + ("." if is_error else "; it is created anew, empty."),
        about=state,
        expected=f"the topic that was set up, {counted(state.partitions, 'partition')}",
        found="none",
        why=_LOST
        if state.is_internal
        else "Its records are lost unless its readers have processed them all.",
        fix=_RESTORE if is_error else _CHECK,
        severity=Severity.ERROR if is_error else Severity.WARNING,
    )


_LOST = (
    "State or unprocessed records may be lost. An empty topic in its place would hide that from everybody."
)
_RESTORE = (
    "Restore the topic from a backup. To go on without its data, stop the application and set "
    "`setup.reinitialize: true` for one run."
)
_CHECK = (
    "Check what is lost. Where it matters, restore the topic or rebuild its content by reprocessing the "
    "source topics."
)
