"""The decision: an observation is taken in, applications are assessed anew, the next action follows."""

from collections.abc import Mapping

import attrs

from spark_jobs.agent.decide import expansions, sightings
from spark_jobs.agent.decide.actions import Action
from spark_jobs.agent.decide.assessment import Assessment, assess, held_back
from spark_jobs.agent.decide.clock import Moment, advance
from spark_jobs.agent.decide.expansions import Context
from spark_jobs.agent.decide.next_step import next_step
from spark_jobs.agent.decide.observations import Observation
from spark_jobs.agent.decide.policy import AgentPolicy
from spark_jobs.agent.decide.standing import has_given_up, stand
from spark_jobs.agent.decide.taking_in import take_in
from spark_jobs.agent.decide.turn import Turn
from spark_jobs.agent.events import AgentEvent
from spark_jobs.agent.state import AgentState, ApplicationState, Phase


@attrs.frozen
class Decision:
    """The next state, what is to be told, and what to do: `action` now, or nothing before `wake_ms`.

    `wake_ms` is a time to wait in milliseconds, counted from the decision.
    """

    state: AgentState
    events: tuple[AgentEvent, ...]
    action: Action | None
    wake_ms: int


def decide(observation: Observation, state: AgentState, now: Moment, policy: AgentPolicy) -> Decision:
    """Return what follows from `observation`. Deterministic; raises for no observation."""
    state = advance(state, now)
    context = Context(state.clock_ms, now.wall_ms, now.jitter, policy)
    turn = take_in(observation, Turn(state, context))
    turn = _assessed(turn)
    action, wake_ms = next_step(turn.state, policy)
    return Decision(turn.state, turn.events, action, wake_ms)


def _assessed(turn: Turn) -> Turn:
    """Hold every application against the counts that are believed by now."""
    state = turn.state
    if state.observed_at_ms is None:
        return turn
    live = sightings.counts(state.sightings)
    known = {
        compiled.application.id: state.applications.get(
            compiled.application.id, ApplicationState(id=compiled.application.id)
        )
        for compiled in state.wanted.applications
    }
    seen = {
        compiled.application.id: assess(compiled, live, known[compiled.application.id].settled)
        for compiled in state.wanted.applications
    }
    context = attrs.evolve(turn.context, observed_at_ms=state.observed_at_ms)
    leads = state.is_leader and state.is_recovered
    acting = [
        id_ for id_, one in seen.items() if one.is_expandable and not has_given_up(known[id_], one.shortfalls)
    ]
    held = held_back(seen, acting)
    changes = [
        stand(
            known[id_],
            one,
            context,
            leads=leads,
            is_held=id_ in held,
            is_confirmed=all(state.sightings[name].lower_since_ms is None for name in one.counts),
        )
        for id_, one in seen.items()
    ]
    return _without_others(_expired(turn.change(*changes), seen), seen)


def _expired(turn: Turn, seen: Mapping[str, Assessment]) -> Turn:
    """Give up where nothing has succeeded for `partition.autoscaling.timeout.ms`."""
    late = [
        expansions.gave_up(app, app.expansion, seen[app.id], turn.context)
        for app in turn.state.applications.values()
        if app.phase is Phase.EXPANDING and app.expansion is not None
        if app.expansion.failing_since_ms is not None
        if turn.context.clock_ms - app.expansion.failing_since_ms >= app.timeout_ms
    ]
    turn = turn.change(*late)
    return turn.to(attrs.evolve(turn.state, failures=turn.state.failures + len(late)))


def _without_others(turn: Turn, seen: Mapping[str, Assessment]) -> Turn:
    """Forget applications that have no document any more."""
    gone = [app for app in turn.state.applications.values() if app.id not in seen]
    if not gone:
        return turn
    turn = turn.change(
        *(
            expansions.cancelled(app, app.expansion, None, turn.context, "its document is gone")
            for app in gone
            if app.expansion is not None
        )
    )
    left = {id_: app for id_, app in turn.state.applications.items() if id_ in seen}
    return turn.to(attrs.evolve(turn.state, applications=left))
