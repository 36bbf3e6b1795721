"""What is to be done now, or until when there is nothing to do. All of it follows from the state."""

from collections import defaultdict
from collections.abc import Iterator

from infra.planner.waves import waves
from spark_jobs.agent.decide import sightings
from spark_jobs.agent.decide.actions import Action, Expand, Notify, Observe, Record, Recover
from spark_jobs.agent.decide.expansions import is_due, widest
from spark_jobs.agent.decide.policy import AgentPolicy
from spark_jobs.agent.state import AgentState, ApplicationState, Phase, Retry, Shortfall, Sighting


def next_step(state: AgentState, policy: AgentPolicy) -> tuple[Action | None, int]:
    """Return the action, or None and for how many milliseconds there is none.

    The journal comes first: what is not written down is not done. Then a look, for every attempt goes by
    metadata of its own.
    """
    look_at = _look_at(state, policy)
    times = [look_at]
    if state.is_leader and (not state.is_recovered or state.outbox):
        if _is_due(state.journalling, state.clock_ms):
            return (Record(state.outbox) if state.is_recovered else Recover()), 0
        times.append(state.journalling.at_ms or 0)
    if look_at <= state.clock_ms:
        return Observe(), 0
    if state.is_leader and state.is_recovered and not state.outbox:
        action = next(_notifications(state), None) or _expansion(state)
        if action is not None:
            return action, 0
    times += _expiries(state)
    return None, max(0, min(times) - state.clock_ms)


def _is_due(retry: Retry, clock_ms: int) -> bool:
    return retry.at_ms is None or retry.at_ms <= clock_ms


def _look_at(state: AgentState, policy: AgentPolicy) -> int:
    """Return when the cluster is to be read next."""
    if state.unreadable:
        return state.reading.at_ms or state.clock_ms
    if state.observed_at_ms is None or state.is_look_wanted:
        return state.clock_ms
    reasons = [state.observed_at_ms + policy.interval_ms(state.wanted.applications)]
    for app in state.applications.values():
        if app.expansion is not None:
            times = (app.expansion.retry_at_ms, app.expansion.follow_up_at_ms)
            reasons += [at for at in times if at is not None and at > state.observed_at_ms]
    doubtful = sightings.doubtful_until(_of_interest(state), policy.lag_ms)
    if doubtful is not None and doubtful > state.observed_at_ms:
        reasons.append(doubtful)
    return min(reasons)


def _of_interest(state: AgentState) -> Iterator[Sighting]:
    """Topics that somebody else deletes are nobody's concern."""
    names = set(state.wanted.counts)
    for app in state.applications.values():
        names |= app.settled.keys()
    return (state.sightings[name] for name in names if name in state.sightings)


def _notifications(state: AgentState) -> Iterator[Notify]:
    for app in state.applications.values():
        if app.phase is Phase.SETTLING and app.expansion is not None:
            counts = widest(app.expansion.before, sightings.counts(state.sightings))
            if counts and is_due(app.expansion, state.observed_at_ms):
                yield Notify(app.id, *counts)


def _expansion(state: AgentState) -> Expand | None:
    """One attempt for all applications that are due, downstream topics first."""
    lacking = [item for app in state.applications.values() if _may_try(app, state) for item in app.shortfalls]
    if not lacking:
        return None
    numbers = waves(state.wanted.applications, {item.topic for item in lacking})
    ordered: defaultdict[int, list[Shortfall]] = defaultdict(list)
    for item in lacking:
        ordered[numbers[item.topic]].append(item)
    return Expand(tuple(tuple(ordered[number]) for number in sorted(ordered)))


def _may_try(app: ApplicationState, state: AgentState) -> bool:
    """After a failure the next attempt is due later, and then goes by a look of its own."""
    if app.phase is not Phase.EXPANDING or app.expansion is None or state.observed_at_ms is None:
        return False
    return app.expansion.retry_at_ms is None or app.expansion.retry_at_ms <= state.observed_at_ms


def _expiries(state: AgentState) -> list[int]:
    """Return when failing expansions are to be given up."""
    return [
        app.expansion.failing_since_ms + app.timeout_ms
        for app in state.applications.values()
        if app.phase is Phase.EXPANDING and app.expansion is not None
        if app.expansion.failing_since_ms is not None
    ]
