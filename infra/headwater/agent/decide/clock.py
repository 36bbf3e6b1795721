"""The clock of the agent, which never runs backwards."""

import attrs

from headwater.agent.state import AgentState


@attrs.frozen
class Moment:
    """The time of a decision in milliseconds, and a random number from 0 (included) to 1."""

    monotonic_ms: int
    wall_ms: int = 0
    jitter: float = 0.0


def advance(state: AgentState, now: Moment) -> AgentState:
    """Return the state with its clock advanced; a backward step of the monotonic clock counts as no time."""
    last = now.monotonic_ms if state.monotonic_ms is None else state.monotonic_ms
    step = max(0, now.monotonic_ms - last)
    return attrs.evolve(state, clock_ms=state.clock_ms + step, monotonic_ms=now.monotonic_ms)
