"""A topic has more partitions than expected."""

from collections.abc import Iterator

from infra.model.problems import Problem, ProblemCode
from infra.planner.counts import CountedApplication, CountedTopic
from infra.planner.phrases import counted
from infra.planner.processors import has_own_count


def over_partitioned(application: CountedApplication) -> Iterator[Problem]:
    """KIP-878: an error in both setup modes. Headwater never replaces the topic.

    The number of processors decides the count of some changelogs: `processors_and_partitions` checks those.
    """
    for state in application.topics:
        if has_own_count(application, state):
            continue
        if state.live_partitions is not None and state.live_partitions > state.partitions:
            is_lowered = application.has_explicit_count(state) and _was_set_up(state, state.live_partitions)
            yield (_lowered if is_lowered else _problem)(application, state, state.live_partitions)


def _was_set_up(state: CountedTopic, have: int) -> bool:
    """Return whether the topic was set up with its present count: the document has changed, not the topic."""
    return state.recorded_partitions is not None and state.recorded_partitions >= have


def _lowered(application: CountedApplication, state: CountedTopic, have: int) -> Problem:
    return application.problem(
        ProblemCode.EXPLICIT_COUNT_CHANGED,
        f"{state.title} has more partitions than the explicit count of the document allows.",
        topic=state,
        expected=counted(state.partitions, "partition"),
        found=counted(have, "partition"),
        why=_IRREVERSIBLE + _REFUSED,
        fix=f"Declare {have} again. {_without_data(state)}",
    )


def _problem(application: CountedApplication, state: CountedTopic, have: int) -> Problem:
    return application.problem(
        ProblemCode.OVER_PARTITIONED,
        f"{state.title} has more partitions than expected{_cause(application, state, have)}.",
        topic=state,
        expected=counted(state.partitions, "partition"),
        found=counted(have, "partition"),
        why=_IRREVERSIBLE + (_REFUSED if state.is_internal else ""),
        fix=f"Expand the source topics, or set the explicit count, to {have} partitions. "
        + _without_data(state)
        if state.is_internal
        else f"Declare {have} partitions for it, or expand the sources of its writers to {have}.",
    )


_IRREVERSIBLE = "Kafka cannot remove partitions, and replacing the topic would lose its data."
_REFUSED = " The application does not start if an internal topic has another count than expected."


def _without_data(state: CountedTopic) -> str:
    return (
        f"If the data is not needed, stop the application, delete {state.name} and set "
        "`setup.reinitialize: true` for one `pulumi up`."
    )


def _cause(application: CountedApplication, state: CountedTopic, have: int) -> str:
    before = state.recorded_partitions
    if before is None:
        return ": Headwater did not set it up" if application.caller.knows_setup else ""
    if _was_set_up(state, have):
        return f": it was set up with {before}, and its sources now have fewer (were they re-created?)"
    return f": it was set up with {before}, and another client expanded it"
