"""A topic has more partitions than it may have."""

from collections.abc import Iterator

from infra.model.problems import Problem, ProblemCode
from infra.planner.situation import Situation, TopicState


def over_partitioned(situation: Situation) -> Iterator[Problem]:
    """KIP-878: an error in every mode, never answered by a replacement."""
    for state in situation.topics:
        if state.live is not None and state.live.partitions > state.partitions:
            have = state.live.partitions
            yield situation.problem(
                ProblemCode.OVER_PARTITIONED,
                f"{'Internal' if state.is_internal else 'Sink'} topic {state.name} has more partitions than "
                f"expected: {_cause(state, have)}.",
                about=state,
                expected=f"{state.partitions} partitions",
                found=f"{have} partitions",
                why="Kafka cannot take partitions away, and a replacement would lose the data. The "
                "application refuses to start on an internal topic with another count than it expects."
                if state.is_internal
                else "Kafka cannot take partitions away, and a replacement would lose the data.",
                fix=f"Expand the source topics, or raise the explicit count, to {have} partitions so that "
                f"the counts agree again. If the data may go, stop the application, delete {state.name} and "
                "re-initialise."
                if state.is_internal
                else f"Declare {have} partitions for it, or let its writers' sources grow to {have}.",
            )


def _cause(state: TopicState, have: int) -> str:
    recorded = state.recorded.partitions if state.recorded else None
    if recorded is None:
        return "it was not set up by Headwater"
    if recorded >= have:
        return (
            f"it was set up with {recorded}, its sources have fewer now (created anew with fewer partitions?)"
        )
    return f"it was set up with {recorded} and expanded by somebody else"
