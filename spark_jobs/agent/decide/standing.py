"""Where an application stands, by its assessment: the phase, and what begins or ends with it."""

from collections.abc import Iterable

import attrs

from infra.model.problems import Problem
from spark_jobs.agent.decide import expansions
from spark_jobs.agent.decide.assessment import Assessment
from spark_jobs.agent.decide.expansions import Change, Context
from spark_jobs.agent.events import (
    AgentEvent,
    ApplicationRefused,
    ApplicationStopped,
    ApplicationWarned,
    ProblemsSolved,
)
from spark_jobs.agent.state import ApplicationState, Phase, Shortfall


def stand(
    before: ApplicationState,
    seen: Assessment,
    context: Context,
    *,
    leads: bool,
    is_held: bool,
    is_confirmed: bool,
) -> Change:
    """Return the application as it stands now.

    `is_held`: a source topic is for another application to expand. `is_confirmed`: the metadata shows every
    count that is believed.
    """
    state = attrs.evolve(
        _with_progress(before, seen),
        is_enabled=seen.is_enabled,
        timeout_ms=seen.timeout_ms,
        parallelism=seen.parallelism,
        shortfalls=seen.shortfalls,
        problems=(*seen.refusals, *(() if seen.refusals else seen.expanded), *seen.warnings),
    )
    if seen.refusals:
        change = Change(_untried(state, Phase.REFUSED))
    elif seen.shortfalls and not seen.is_enabled:
        change = _stopped(state, seen, context)
    elif seen.shortfalls and (is_held or not leads):
        change = Change(_untried(state, Phase.WAITING))
    elif seen.shortfalls:
        change = _lacking(state, seen, context)
    elif leads:
        change = _complete(state, seen, context, is_confirmed=is_confirmed)
    else:
        change = Change(_steady(state, seen))
    return attrs.evolve(change, events=(*_told(before, change.application, seen), *change.events))


def _with_progress(state: ApplicationState, seen: Assessment) -> ApplicationState:
    """A topic that has grown since is a success, whoever it was: also of a request without an answer."""
    has_grown = any(seen.counts.get(item.topic, 0) > item.partitions for item in state.shortfalls)
    if state.expansion is None or not has_grown:
        return state
    return attrs.evolve(state, expansion=expansions.unhindered(state.expansion))


def _untried(state: ApplicationState, phase: Phase) -> ApplicationState:
    """Nothing is tried for now, and what is not tried does not fail: the clock stops."""
    if state.expansion is None:
        return attrs.evolve(state, phase=phase)
    return attrs.evolve(state, phase=phase, expansion=expansions.unhindered(state.expansion))


def _stopped(state: ApplicationState, seen: Assessment, context: Context) -> Change:
    stopped = attrs.evolve(state, phase=Phase.STOPPED, given_up={})
    if stopped.expansion is None:
        return Change(stopped)
    return expansions.cancelled(
        stopped, stopped.expansion, seen, context, "partition.autoscaling.enabled was switched off"
    )


def _lacking(state: ApplicationState, seen: Assessment, context: Context) -> Change:
    expanding = attrs.evolve(state, phase=Phase.EXPANDING)
    if state.expansion is not None and expansions.is_told(state):
        over = expansions.finished(expanding, state.expansion, seen, context)
        return over.then(lambda ended: expansions.begin(ended, seen, context))
    if state.expansion is not None:
        return Change(attrs.evolve(expanding, expansion=expansions.again(state.expansion)))
    if has_given_up(state, seen.shortfalls):
        return Change(attrs.evolve(state, phase=Phase.GIVEN_UP))
    return expansions.begin(expanding, seen, context)


def has_given_up(state: ApplicationState, shortfalls: Iterable[Shortfall]) -> bool:
    """Whether nothing else lacks than what was given up: a source that has grown since makes a difference."""
    return state.expansion is None and all(
        state.given_up.get(item.topic) == item.wanted for item in shortfalls
    )


def _complete(state: ApplicationState, seen: Assessment, context: Context, *, is_confirmed: bool) -> Change:
    has_grown = any(count > state.settled.get(name, count) for name, count in seen.counts.items())
    settling = attrs.evolve(state, phase=Phase.SETTLING)
    if state.expansion is not None:
        if state.expansion.follow_up_at_ms is None:
            return expansions.expanded(settling, seen, context)
        return expansions.follow_up(settling, state.expansion, seen, context, is_confirmed=is_confirmed)
    if not has_grown or not seen.is_enabled:
        return Change(_steady(state, seen))
    begun = expansions.begin(settling, seen, context)
    return begun.then(lambda grown: expansions.expanded(grown, seen, context))


def _steady(state: ApplicationState, seen: Assessment) -> ApplicationState:
    return attrs.evolve(
        state, phase=Phase.STEADY, settled=seen.counts, settled_sources=seen.sources, given_up={}
    )


def _told(before: ApplicationState, after: ApplicationState, seen: Assessment) -> tuple[AgentEvent, ...]:
    """Tell of problems when they are new, and once when they are gone."""
    if _key(before.problems) == _key(after.problems):
        return ()
    if seen.refusals:
        return (ApplicationRefused(after.id, after.problems),)
    if after.phase is Phase.STOPPED:
        return (ApplicationStopped(after.id, after.problems),)
    if after.problems:
        return (ApplicationWarned(after.id, after.problems),)
    return (ProblemsSolved(after.id),)


def _key(problems: tuple[Problem, ...]) -> frozenset[tuple[object, ...]]:
    return frozenset((p.code, p.topic, p.node, p.expected, p.found) for p in problems)
