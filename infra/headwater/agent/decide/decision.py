"""Make a decision: apply an observation, assess the applications, choose the next action."""

from collections.abc import Mapping

import attrs

from headwater.agent.decide import expansions, observed_counts
from headwater.agent.decide.actions import Action
from headwater.agent.decide.apply_observation import apply_observation
from headwater.agent.decide.assessment import Assessment, assess, held_back
from headwater.agent.decide.clock import Moment, advance
from headwater.agent.decide.expansions import Context
from headwater.agent.decide.next_step import next_step
from headwater.agent.decide.observations import Observation
from headwater.agent.decide.pending import PendingDecision
from headwater.agent.decide.phases import has_given_up, update_application
from headwater.agent.decide.policy import AgentPolicy
from headwater.agent.events import AgentEvent
from headwater.agent.state import AgentState, ApplicationState, Phase


@attrs.frozen
class Decision:
    """The next state, the events to report, and the `action` to execute now; None: nothing before `wake_ms`.

    `wake_ms` is a duration in milliseconds from the decision.
    """

    state: AgentState
    events: tuple[AgentEvent, ...]
    action: Action | None
    wake_ms: int


def decide(observation: Observation, state: AgentState, now: Moment, policy: AgentPolicy) -> Decision:
    """Return the decision that follows from `observation`. Deterministic; never raises."""
    state = advance(state, now)
    context = Context(state.clock_ms, now.wall_ms, now.jitter, policy)
    pending = apply_observation(observation, PendingDecision(state, context))
    pending = _assessed(pending)
    action, wake_ms = next_step(pending.state, policy)
    return Decision(pending.state, pending.events, action, wake_ms)


def _assessed(pending: PendingDecision) -> PendingDecision:
    """Compare every application with the observed counts."""
    state = pending.state
    if state.observed_at_ms is None or state.due_processors:
        return pending
    live = observed_counts.counts(state.observed_counts)
    known = {
        compiled.application.id: state.applications.get(
            compiled.application.id, ApplicationState(id=compiled.application.id)
        )
        for compiled in state.requirements.applications
    }
    assessments = {
        compiled.application.id: assess(
            compiled,
            live,
            known[compiled.application.id].settled,
            state.processors.get(compiled.application.id),
            state.unread_processors.get(compiled.application.id, ""),
            policies=pending.context.policy.policies,
        )
        for compiled in state.requirements.applications
    }
    context = attrs.evolve(pending.context, observed_at_ms=state.observed_at_ms)
    leads = state.is_leader and state.is_recovered
    acting = [
        id_
        for id_, one in assessments.items()
        if one.is_expandable and not has_given_up(known[id_], one.shortfalls)
    ]
    held = held_back(assessments, acting)
    changes = [
        update_application(
            known[id_],
            one,
            context,
            leads=leads,
            is_held=id_ in held,
            is_confirmed=all(state.observed_counts[name].lower_since_ms is None for name in one.counts),
        )
        for id_, one in assessments.items()
    ]
    return _without_others(_expired(pending.with_changes(*changes), assessments), assessments)


def _expired(pending: PendingDecision, assessments: Mapping[str, Assessment]) -> PendingDecision:
    """Give up where nothing has succeeded for `partition.autoscaling.timeout.ms`."""
    late = [
        expansions.gave_up(app, app.expansion, assessments[app.id], pending.context)
        for app in pending.state.applications.values()
        if app.phase is Phase.EXPANDING and app.expansion is not None
        if app.expansion.failing_since_ms is not None
        if pending.context.clock_ms - app.expansion.failing_since_ms >= app.timeout_ms
    ]
    pending = pending.with_changes(*late)
    return pending.with_state(attrs.evolve(pending.state, failures=pending.state.failures + len(late)))


def _without_others(pending: PendingDecision, assessments: Mapping[str, Assessment]) -> PendingDecision:
    """Remove applications whose documents were removed."""
    removed = [app for app in pending.state.applications.values() if app.id not in assessments]
    if not removed:
        return pending
    pending = pending.with_changes(
        *(
            expansions.cancelled(app, app.expansion, None, pending.context, "its document was removed")
            for app in removed
            if app.expansion is not None
        )
    )
    left = {id_: app for id_, app in pending.state.applications.items() if id_ in assessments}
    return pending.with_state(attrs.evolve(pending.state, applications=left))
