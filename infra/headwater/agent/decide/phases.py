"""The phase of an application, from its assessment, and the expansions that begin or end with it."""

from collections.abc import Iterable

import attrs

from headwater.agent.decide import expansions
from headwater.agent.decide.assessment import Assessment
from headwater.agent.decide.expansions import Change, Context
from headwater.agent.events import (
    AgentEvent,
    ApplicationRefused,
    ApplicationStopped,
    ApplicationWarned,
    ProblemsSolved,
)
from headwater.agent.state import ApplicationState, Phase, Shortfall
from headwater.model.problems import Problem


def update_application(
    before: ApplicationState,
    assessment: Assessment,
    context: Context,
    *,
    leads: bool,
    is_held: bool,
    is_confirmed: bool,
) -> Change:
    """Return the application with its current phase.

    `leads`: this agent leads and has read the journal. `is_held`: another application must first expand a
    source topic of this one. `is_confirmed`: the last metadata shows every count that the agent uses.
    """
    state = attrs.evolve(
        _with_progress(before, assessment),
        is_enabled=assessment.is_enabled,
        timeout_ms=assessment.timeout_ms,
        parallelism=assessment.parallelism,
        shortfalls=assessment.shortfalls,
        problems=(
            *assessment.refusals,
            *(() if assessment.refusals else assessment.expanded),
            *assessment.warnings,
        ),
    )
    if assessment.refusals:
        change = Change(_without_attempts(state, Phase.REFUSED))
    elif assessment.shortfalls and not assessment.is_enabled:
        change = _stop_application(state, assessment, context)
    elif assessment.shortfalls and (is_held or not leads):
        change = Change(_without_attempts(state, Phase.WAITING))
    elif assessment.shortfalls:
        change = _with_shortfalls(state, assessment, context)
    elif leads:
        change = _complete_application(state, assessment, context, is_confirmed=is_confirmed)
    else:
        change = Change(_keep_phase(state, assessment))
    return attrs.evolve(
        change, events=(*_problem_events(before, change.application, assessment), *change.events)
    )


def _with_progress(state: ApplicationState, assessment: Assessment) -> ApplicationState:
    """Reset the failures if a topic was expanded since, by any client or by a request without an answer."""
    has_grown = any(assessment.counts.get(item.topic, 0) > item.partitions for item in state.shortfalls)
    if state.expansion is None or not has_grown:
        return state
    return attrs.evolve(state, expansion=expansions.reset_failures(state.expansion))


def _without_attempts(state: ApplicationState, phase: Phase) -> ApplicationState:
    """Set a phase without attempts: without attempts, the failure clock stops."""
    if state.expansion is None:
        return attrs.evolve(state, phase=phase)
    return attrs.evolve(state, phase=phase, expansion=expansions.reset_failures(state.expansion))


def _stop_application(state: ApplicationState, assessment: Assessment, context: Context) -> Change:
    stopped = attrs.evolve(state, phase=Phase.STOPPED, given_up={})
    if stopped.expansion is None:
        return Change(stopped)
    return expansions.cancel_expansion(
        stopped, stopped.expansion, assessment, context, "partition.autoscaling.enabled was switched off"
    )


def _with_shortfalls(state: ApplicationState, assessment: Assessment, context: Context) -> Change:
    expanding = attrs.evolve(state, phase=Phase.EXPANDING)
    if state.expansion is not None and expansions.is_callback_called(state):
        over = expansions.finish_expansion(expanding, state.expansion, assessment, context)
        return over.then(lambda ended: expansions.begin_expansion(ended, assessment, context))
    if state.expansion is not None:
        return Change(attrs.evolve(expanding, expansion=expansions.continue_expansion(state.expansion)))
    if has_given_up(state, assessment.shortfalls):
        return Change(attrs.evolve(state, phase=Phase.GIVEN_UP))
    return expansions.begin_expansion(expanding, assessment, context)


def has_given_up(state: ApplicationState, shortfalls: Iterable[Shortfall]) -> bool:
    """Return whether the agent gave up on exactly these shortfalls: a source that grew since changes them."""
    return state.expansion is None and all(
        state.given_up.get(item.topic) == item.required for item in shortfalls
    )


def _complete_application(
    state: ApplicationState, assessment: Assessment, context: Context, *, is_confirmed: bool
) -> Change:
    has_grown = any(count > state.settled.get(name, count) for name, count in assessment.counts.items())
    settling = attrs.evolve(state, phase=Phase.SETTLING)
    if state.expansion is not None:
        if state.expansion.follow_up_at_ms is None:
            return expansions.schedule_follow_up(settling, assessment, context)
        return expansions.follow_up(settling, state.expansion, assessment, context, is_confirmed=is_confirmed)
    if not has_grown or not assessment.is_enabled:
        return Change(_keep_phase(state, assessment))
    begun = expansions.begin_expansion(settling, assessment, context)
    return begun.then(lambda grown: expansions.schedule_follow_up(grown, assessment, context))


def _keep_phase(state: ApplicationState, assessment: Assessment) -> ApplicationState:
    return attrs.evolve(
        state, phase=Phase.STEADY, settled=assessment.counts, settled_sources=assessment.sources, given_up={}
    )


def _problem_events(
    before: ApplicationState, after: ApplicationState, assessment: Assessment
) -> tuple[AgentEvent, ...]:
    """Report problems when they are new, and once when they are solved."""
    if _problem_keys(before.problems) == _problem_keys(after.problems):
        return ()
    if assessment.refusals:
        return (ApplicationRefused(after.id, after.problems),)
    if after.phase is Phase.STOPPED:
        return (ApplicationStopped(after.id, after.problems),)
    if after.problems:
        return (ApplicationWarned(after.id, after.problems),)
    return (ProblemsSolved(after.id),)


def _problem_keys(problems: tuple[Problem, ...]) -> frozenset[tuple[object, ...]]:
    return frozenset((p.code, p.topic, p.node, p.expected, p.found) for p in problems)
