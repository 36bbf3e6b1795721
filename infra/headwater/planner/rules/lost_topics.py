"""A topic that was set up no longer exists."""

from collections.abc import Iterator

from headwater.model.problems import Problem, ProblemCode, Severity
from headwater.planner.application import ActiveApplication, TopicState
from headwater.planner.phrases import counted


def lost_topics(application: ActiveApplication) -> Iterator[Problem]:
    """KIP-698: only a setup record distinguishes a first start from data loss.

    With `automatic` setup the topic is re-created, with a warning. A managed sink topic is re-created in both
    modes, because the application can continue without its data.
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
        why=_LOST if state.is_internal else "Its records are lost, unless its readers processed all of them.",
        fix=_RESTORE if is_error else f"{application.caller.reconciler} re-creates it, empty. {_CHECK}",
        severity=Severity.ERROR if is_error else Severity.WARNING,
    )


_LOST = "State or unprocessed records may be lost. An empty topic would hide the loss."
_RESTORE = (
    "Restore the topic from a backup. To continue without its data, stop the application and set "
    "`setup.reinitialize: true` for one `pulumi up`."
)
_CHECK = (
    "If you need the lost data, restore the topic, or rebuild its content by reprocessing the source topics."
)
