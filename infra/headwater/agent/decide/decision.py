"""The decision: an observation and a state give the next state, the next action and events."""

from collections import defaultdict
from collections.abc import Iterator, Mapping
from itertools import islice

import attrs

from headwater.agent.decide import expansions
from headwater.agent.decide.apply_observation import (
    PendingDecision,
    apply_observation,
    next_confirmation,
    used_counts,
)
from headwater.agent.decide.assessment import Assessment, assess_application, held_back
from headwater.agent.decide.expansions import Context, is_follow_up_due, widest_change
from headwater.agent.decide.phases import has_given_up, update_application
from headwater.agent.decide.values import (
    Action,
    AgentPolicy,
    Expand,
    Moment,
    Notify,
    Observation,
    Observe,
    ReadOffsetMetadata,
    Record,
    Recover,
    advance_clock,
)
from headwater.agent.events import AgentEvent
from headwater.agent.state import AgentState, ApplicationState, ObservedCount, Phase, Retry, Shortfall
from headwater.planner.waves import wave_numbers

_MOST_GROUPS = 16
"""Of so many groups, offset metadata are read at the same time. Then the election is polled."""


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
    state = advance_clock(state, now)
    context = Context(state.clock_ms, now.wall_ms, now.jitter, policy)
    pending = apply_observation(observation, PendingDecision(state, context))
    pending = _assess_applications(pending)
    action, wake_ms = next_step(pending.state, policy)
    return Decision(pending.state, pending.events, action, wake_ms)


def _assess_applications(pending: PendingDecision) -> PendingDecision:
    """Compare every application with the observed counts."""
    state = pending.state
    if state.observed_at_ms is None or state.due_metadata:
        return pending
    live = used_counts(state.observed_counts)
    known = {
        compiled.application.id: state.applications.get(
            compiled.application.id, ApplicationState(id=compiled.application.id)
        )
        for compiled in state.requirements.applications
    }
    assessments = {
        compiled.application.id: assess_application(
            compiled,
            live,
            known[compiled.application.id].settled,
            state.processors.get(compiled.application.id),
            has_undeclared_processors=compiled.application.id in state.undeclared,
            is_resharded=compiled.application.id in state.resharded,
            unread=state.unread_metadata.get(compiled.application.id),
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
    return _remove_applications(_expire_expansions(pending.with_changes(*changes), assessments), assessments)


def _expire_expansions(pending: PendingDecision, assessments: Mapping[str, Assessment]) -> PendingDecision:
    """Give up where nothing has succeeded for `partition.autoscaling.timeout.ms`."""
    late = [
        expansions.give_up_expansion(app, app.expansion, assessments[app.id], pending.context)
        for app in pending.state.applications.values()
        if app.phase is Phase.EXPANDING and app.expansion is not None
        if app.expansion.failing_since_ms is not None
        if pending.context.clock_ms - app.expansion.failing_since_ms >= app.timeout_ms
    ]
    pending = pending.with_changes(*late)
    return pending.with_state(attrs.evolve(pending.state, failures=pending.state.failures + len(late)))


def _remove_applications(pending: PendingDecision, assessments: Mapping[str, Assessment]) -> PendingDecision:
    """Remove applications whose documents were removed."""
    removed = [app for app in pending.state.applications.values() if app.id not in assessments]
    if not removed:
        return pending
    pending = pending.with_changes(
        *(
            expansions.cancel_expansion(app, app.expansion, None, pending.context, "its document was removed")
            for app in removed
            if app.expansion is not None
        )
    )
    left = {id_: app for id_, app in pending.state.applications.items() if id_ in assessments}
    return pending.with_state(attrs.evolve(pending.state, applications=left))


def next_step(state: AgentState, policy: AgentPolicy) -> tuple[Action | None, int]:
    """Return the action, or None and the milliseconds until the next one is due.

    The journal is written first: nothing is changed that is not in it. Then the cluster is read, because
    every attempt needs metadata of its own. What groups have committed belongs to the read.
    """
    read_at = _next_read(state, policy)
    times = [read_at]
    if state.is_leader and (not state.is_recovered or state.outbox):
        if _is_retry_due(state.journal_retry, state.clock_ms):
            return (Record(state.outbox) if state.is_recovered else Recover()), 0
        times.append(state.journal_retry.at_ms or 0)
    if state.due_metadata:
        return ReadOffsetMetadata(dict(islice(state.due_metadata.items(), _MOST_GROUPS))), 0
    if read_at <= state.clock_ms:
        return Observe(), 0
    if state.is_leader and state.is_recovered and not state.outbox:
        action = next(_pending_notifications(state), None) or _next_expansion(state)
        if action is not None:
            return action, 0
    times += _timeouts_of(state)
    return None, max(0, min(times) - state.clock_ms)


def _is_retry_due(retry: Retry, clock_ms: int) -> bool:
    return retry.at_ms is None or retry.at_ms <= clock_ms


def _next_read(state: AgentState, policy: AgentPolicy) -> int:
    """Return the time of the next read of the cluster."""
    if state.read_problems:
        return state.read_retry.at_ms or state.clock_ms
    if state.observed_at_ms is None or state.is_read_requested:
        return state.clock_ms
    due = [state.observed_at_ms + policy.interval_ms(state.requirements.applications)]
    for app in state.applications.values():
        if app.expansion is not None:
            times = (app.expansion.retry_at_ms, app.expansion.follow_up_at_ms)
            due += [at for at in times if at is not None and at > state.observed_at_ms]
    if state.unread_metadata:
        due.append(state.observed_at_ms + policy.backoff_max_ms)
    confirmation = next_confirmation(_relevant_counts(state), policy.lag_ms)
    if confirmation is not None and confirmation > state.observed_at_ms:
        due.append(confirmation)
    return min(due)


def _relevant_counts(state: AgentState) -> Iterator[ObservedCount]:
    """Yield the counts of the topics of the applications: other topics may be deleted at any time."""
    names = set(state.requirements.counts)
    for app in state.applications.values():
        names |= app.settled.keys()
    return (state.observed_counts[name] for name in names if name in state.observed_counts)


def _pending_notifications(state: AgentState) -> Iterator[Notify]:
    for app in state.applications.values():
        if app.phase is Phase.SETTLING and app.expansion is not None:
            counts = widest_change(app.expansion.before, used_counts(state.observed_counts))
            if counts and is_follow_up_due(app.expansion, state.observed_at_ms):
                yield Notify(app.id, *counts)


def _next_expansion(state: AgentState) -> Expand | None:
    """Return one attempt for all applications that are due, downstream topics first."""
    shortfalls = [
        item for app in state.applications.values() if _is_attempt_due(app, state) for item in app.shortfalls
    ]
    if not shortfalls:
        return None
    numbers = wave_numbers(state.requirements.applications, {item.topic for item in shortfalls})
    ordered: defaultdict[int, list[Shortfall]] = defaultdict(list)
    for item in shortfalls:
        ordered[numbers[item.topic]].append(item)
    return Expand(tuple(tuple(ordered[number]) for number in sorted(ordered)))


def _is_attempt_due(app: ApplicationState, state: AgentState) -> bool:
    """Return whether to try now: after a failure, the pause must be over and the cluster read after it."""
    if app.phase is not Phase.EXPANDING or app.expansion is None or state.observed_at_ms is None:
        return False
    return app.expansion.retry_at_ms is None or app.expansion.retry_at_ms <= state.observed_at_ms


def _timeouts_of(state: AgentState) -> list[int]:
    """Return the times at which failing expansions are given up."""
    return [
        app.expansion.failing_since_ms + app.timeout_ms
        for app in state.applications.values()
        if app.phase is Phase.EXPANDING and app.expansion is not None
        if app.expansion.failing_since_ms is not None
    ]
