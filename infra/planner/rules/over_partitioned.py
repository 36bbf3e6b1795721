"""A topic has more partitions than it may have."""

from collections.abc import Iterator

from infra.model.problems import Problem, ProblemCode
from infra.planner.counts import CountedApplication, CountedTopic
from infra.planner.wording import counted


def over_partitioned(application: CountedApplication) -> Iterator[Problem]:
    """KIP-878: an error in every mode, never answered by a replacement."""
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
        fix=f"Let the source topics, or the explicit count, have {have} partitions so that the counts agree "
        f"again. If the data may go, stop the application, delete {state.name} and set `setup.reinitialize: "
        "true` for one run."
        if state.is_internal
        else f"Declare {have} partitions for it, or let its writers' sources grow to {have}.",
    )


_IRREVERSIBLE = "Kafka cannot take partitions away, and a replacement would lose the data."
_REFUSED = " The application refuses to start on an internal topic with another count than it expects."


def _cause(application: CountedApplication, state: CountedTopic, have: int) -> str:
    before = state.recorded_partitions
    if before is None:
        return ": Headwater did not set it up" if application.caller.knows_setup else ""
    if before >= have:
        return f": it was set up with {before}, and its sources now have fewer (were they re-created?)"
    return f": it was set up with {before}, and another client expanded it"
