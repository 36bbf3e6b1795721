"""A topic has more partitions than it may have."""

from collections.abc import Iterator

from infra.model.problems import Problem, ProblemCode
from infra.planner.situation import Situation, TopicState
from infra.planner.wording import counted


def over_partitioned(situation: Situation) -> Iterator[Problem]:
    """KIP-878: an error in every mode, never answered by a replacement."""
    for state in situation.topics:
        if state.live is not None and state.live.partitions > state.partitions:
            yield _problem(situation, state, state.live.partitions)


def _problem(situation: Situation, state: TopicState, have: int) -> Problem:
    return situation.problem(
        ProblemCode.OVER_PARTITIONED,
        f"{state.title} has more partitions than expected: {_cause(state, have)}.",
        about=state,
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


def _cause(state: TopicState, have: int) -> str:
    if state.recorded is None:
        return "it was not set up by Headwater"
    before = state.recorded.partitions
    if before >= have:
        return f"it was set up with {before}, its sources have fewer now (were they created anew?)"
    return f"it was set up with {before} and expanded by somebody else"
