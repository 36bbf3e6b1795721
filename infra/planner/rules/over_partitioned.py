"""A topic has more partitions than expected."""

from collections.abc import Iterator

from infra.model.problems import Problem, ProblemCode
from infra.planner.counts import CountedApplication, CountedTopic
from infra.planner.phrases import counted


def over_partitioned(application: CountedApplication) -> Iterator[Problem]:
    """KIP-878: an error in both setup modes. Headwater never replaces the topic."""
    for state in application.topics:
        if state.live_partitions is not None and state.live_partitions > state.partitions:
            yield _problem(application, state, state.live_partitions)


def _problem(application: CountedApplication, state: CountedTopic, have: int) -> Problem:
    return application.problem(
        ProblemCode.OVER_PARTITIONED,
        f"{state.title} has more partitions than expected{_cause(application, state, have)}.",
        topic=state,
        expected=counted(state.partitions, "partition"),
        found=counted(have, "partition"),
        why=_IRREVERSIBLE + (_REFUSED if state.is_internal else ""),
        fix=f"Expand the source topics, or set the explicit count, to {have} partitions. If the data is not "
        f"needed, stop the application, delete {state.name} and set `setup.reinitialize: true` for one "
        "`pulumi up`."
        if state.is_internal
        else f"Declare {have} partitions for it, or expand the sources of its writers to {have}.",
    )


_IRREVERSIBLE = "Kafka cannot remove partitions, and replacing the topic would lose its data."
_REFUSED = " The application does not start if an internal topic has another count than expected."


def _cause(application: CountedApplication, state: CountedTopic, have: int) -> str:
    before = state.recorded_partitions
    if before is None:
        return ": Headwater did not set it up" if application.caller.knows_setup else ""
    if before >= have:
        return f": it was set up with {before}, and its sources now have fewer (were they re-created?)"
    return f": it was set up with {before}, and another client expanded it"
