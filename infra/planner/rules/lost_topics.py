"""An internal topic that was set up is gone."""

from collections.abc import Iterator

from infra.model.problems import Problem, ProblemCode, Severity
from infra.planner.application import ActiveApplication, TopicState
from infra.planner.wording import counted


def lost_topics(application: ActiveApplication) -> Iterator[Problem]:
    """KIP-698: only a recorded set-up tells a first start from data loss. `automatic` creates anew, loudly.

    A managed sink topic is created anew in both modes: the application can go on without what it held.
    """
    for state in application.topics:
        if state.is_lost:
            yield _problem(application, state, is_error=state.is_internal and not application.accepts_loss)


def _problem(application: ActiveApplication, state: TopicState, *, is_error: bool) -> Problem:
    return application.problem(
        ProblemCode.MISSING_INTERNAL_TOPICS,
        f"{state.title} was set up and no longer exists.",
        topic=state,
        expected=f"the topic that was set up, {counted(state.partitions, 'partition')}",
        found="none",
        why=_LOST
        if state.is_internal
        else "Its records are lost unless its readers have processed them all.",
        fix=_RESTORE if is_error else f"{application.caller.reconciler} re-creates it, empty. {_CHECK}",
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
