"""The phase of an application after each comparison with the cluster, value by value."""

from typing import Any

import attrs
import pytest

from headwater.agent.decide.assessment import Assessment
from headwater.agent.decide.expansions import (
    Change,
    Context,
    begin_expansion,
    cancel_expansion,
    finish_expansion,
    schedule_follow_up,
)
from headwater.agent.decide.phases import has_given_up, update_application
from headwater.agent.decide.values import AgentPolicy
from headwater.agent.events import ApplicationRefused, ApplicationStopped, ApplicationWarned, ProblemsSolved
from headwater.agent.state import ApplicationState, Expansion, Parallelism, Phase, Shortfall
from headwater.model.problems import Problem, ProblemCode, Severity

POLICY = AgentPolicy(client_id="agent-1")
CONTEXT = Context(clock_ms=50_000, wall_ms=1_700_000, jitter=0.5, policy=POLICY, observed_at_ms=49_000)
SHORTFALLS = (Shortfall("app", "a", 4, 6),)
EXPANSION = Expansion(number=3, started_ms=40_000, before={"a": 4}, sources_before={"in": 4})
FAILING = attrs.evolve(EXPANSION, attempts=2, failing_since_ms=45_000, retry_at_ms=51_000)
REFUSAL = Problem(code=ProblemCode.OVER_PARTITIONED, summary="Too many.", topic="b")
EXPANDED = Problem(code=ProblemCode.SOURCE_TOPICS_EXPANDED, summary="Too few.", topic="a")
WARNING = Problem(
    code=ProblemCode.MISSING_INTERNAL_TOPICS, summary="Missing.", topic="c", severity=Severity.WARNING
)
COMPLETE = Assessment(
    id="app",
    is_enabled=True,
    timeout_ms=9,
    counts={"a": 6},
    required={"a": 6},
    sources={"in": 6},
    reads=frozenset(),
    sinks=frozenset(),
    shortfalls=(),
    parallelism=(Parallelism(0, 6, 6),),
    refusals=(),
    expanded=(),
    warnings=(),
)
SHORT = attrs.evolve(COMPLETE, counts={"a": 4}, shortfalls=SHORTFALLS)
SETTLED = ApplicationState(id="app", settled={"a": 4}, settled_sources={"in": 4}, last_number=2)


def before(**fields: Any) -> ApplicationState:  # noqa: ANN401 - the fields of the state
    return attrs.evolve(SETTLED, **fields)


def assessed(state: ApplicationState, assessment: Assessment) -> ApplicationState:
    """Return the state with what the assessment says, without its phase."""
    return attrs.evolve(
        state,
        is_enabled=assessment.is_enabled,
        timeout_ms=9,
        parallelism=assessment.parallelism,
        shortfalls=assessment.shortfalls,
        problems=(*assessment.refusals, *assessment.expanded, *assessment.warnings),
    )


def updated(
    state: ApplicationState,
    assessment: Assessment,
    *,
    leads: bool = True,
    is_held: bool = False,
    is_confirmed: bool = True,
) -> Change:
    return update_application(
        state, assessment, CONTEXT, leads=leads, is_held=is_held, is_confirmed=is_confirmed
    )


@pytest.mark.parametrize("leads", [True, False])
def test_a_refused_application_is_not_tried(*, leads: bool) -> None:
    """Its missing partitions are not reported in addition, and the clock of its failures stops."""
    refused = attrs.evolve(SHORT, refusals=(REFUSAL,), expanded=(EXPANDED,), warnings=(WARNING,))
    change = updated(before(expansion=FAILING), refused, leads=leads)
    state = attrs.evolve(
        assessed(before(), refused),
        phase=Phase.REFUSED,
        expansion=attrs.evolve(FAILING, attempts=0, failing_since_ms=None),
        problems=(REFUSAL, WARNING),
    )
    assert change == Change(state, (ApplicationRefused("app", (REFUSAL, WARNING)),))


def test_an_application_without_autoscaling_stops() -> None:
    stopping = attrs.evolve(SHORT, is_enabled=False, expanded=(EXPANDED,))
    stopped = attrs.evolve(assessed(before(), stopping), phase=Phase.STOPPED)
    event = ApplicationStopped("app", (EXPANDED,))
    assert updated(before(given_up={"a": 6}), stopping) == Change(stopped, (event,))
    change = updated(before(expansion=EXPANSION), stopping)
    reason = "partition.autoscaling.enabled was switched off"
    over = cancel_expansion(attrs.evolve(stopped, expansion=EXPANSION), EXPANSION, stopping, CONTEXT, reason)
    assert change == Change(stopped, (event, *over.events), over.entries)


@pytest.mark.parametrize(("leads", "is_held"), [(True, True), (False, False), (False, True)])
def test_another_agent_or_application_acts_first(*, leads: bool, is_held: bool) -> None:
    waiting = attrs.evolve(assessed(before(), SHORT), phase=Phase.WAITING)
    assert updated(before(), SHORT, leads=leads, is_held=is_held) == Change(waiting)
    change = updated(before(expansion=FAILING), SHORT, leads=leads, is_held=is_held)
    stopped_clock = attrs.evolve(FAILING, attempts=0, failing_since_ms=None)
    assert change == Change(attrs.evolve(waiting, expansion=stopped_clock))


def test_missing_partitions_begin_an_expansion() -> None:
    state = attrs.evolve(assessed(before(), SHORT), phase=Phase.EXPANDING)
    assert updated(before(), SHORT) == begin_expansion(state, SHORT, CONTEXT)


def test_missing_partitions_continue_an_expansion() -> None:
    settling = attrs.evolve(FAILING, follow_up_at_ms=60_000)
    state = attrs.evolve(assessed(before(), SHORT), phase=Phase.EXPANDING, expansion=FAILING)
    assert updated(before(expansion=settling), SHORT) == Change(state)


def test_missing_partitions_after_the_callback_begin_the_next_expansion() -> None:
    called = before(expansion=EXPANSION, called_number=3, last_number=3)
    expanding = attrs.evolve(assessed(called, SHORT), phase=Phase.EXPANDING)
    over = finish_expansion(expanding, EXPANSION, SHORT, CONTEXT)
    assert updated(called, SHORT) == over.then(lambda ended: begin_expansion(ended, SHORT, CONTEXT))


def test_counts_that_were_given_up_are_not_tried_again() -> None:
    given_up = before(given_up={"a": 6})
    assert updated(given_up, SHORT) == Change(attrs.evolve(assessed(given_up, SHORT), phase=Phase.GIVEN_UP))
    other = before(given_up={"a": 5})
    assert updated(other, SHORT).application.phase is Phase.EXPANDING
    assert not has_given_up(before(given_up={"a": 6}, expansion=EXPANSION), SHORTFALLS)


@pytest.mark.parametrize("phase", Phase)
def test_a_missing_internal_topic_is_reported_instead_of_steady(phase: Phase) -> None:
    state = before(phase=phase)
    assert state.reported_phase is phase
    incomplete = attrs.evolve(state, problems=(WARNING, WARNING, EXPANDED))
    assert incomplete.missing_topics == 2
    assert incomplete.reported_phase is (Phase.INCOMPLETE if phase is Phase.STEADY else phase)


@pytest.mark.parametrize("leads", [True, False])
def test_a_complete_application_is_steady(*, leads: bool) -> None:
    """Its counts are the settled ones, and what was given up is tried again when partitions are missing."""
    complete = attrs.evolve(COMPLETE, counts={"a": 4}, warnings=(WARNING,))
    change = updated(before(phase=Phase.WAITING, given_up={"a": 6}), complete, leads=leads)
    steady = attrs.evolve(assessed(before(settled_sources={"in": 6}), complete), phase=Phase.STEADY)
    assert change == Change(steady, (ApplicationWarned("app", (WARNING,)),))


def test_the_expansion_by_another_client_is_settled() -> None:
    settling = attrs.evolve(assessed(before(), COMPLETE), phase=Phase.SETTLING)
    begun = begin_expansion(settling, COMPLETE, CONTEXT)
    assert updated(before(), COMPLETE) == begun.then(
        lambda grown: schedule_follow_up(grown, COMPLETE, CONTEXT)
    )
    for change in (
        updated(before(), COMPLETE, leads=False),
        updated(before(), attrs.evolve(COMPLETE, is_enabled=False)),
        updated(before(settled={}), COMPLETE),
        updated(before(settled={"a": 7}), COMPLETE),
    ):
        assert (change.application.phase, change.application.settled) == (Phase.STEADY, {"a": 6})
        assert change.application.expansion is None


def test_an_expanded_application_settles() -> None:
    state = attrs.evolve(assessed(before(expansion=EXPANSION), COMPLETE), phase=Phase.SETTLING)
    assert updated(before(expansion=EXPANSION), COMPLETE) == schedule_follow_up(state, COMPLETE, CONTEXT)
    due = attrs.evolve(EXPANSION, follow_up_at_ms=49_000)
    confirmed = updated(before(expansion=due), COMPLETE).application
    assert (confirmed.phase, confirmed.expansion) == (Phase.SETTLING, due)
    postponed = updated(before(expansion=due), COMPLETE, is_confirmed=False).application
    assert postponed.expansion == attrs.evolve(due, follow_up_at_ms=50_000 + POLICY.backoff(1, 0.5))


@pytest.mark.parametrize(("live", "reset"), [(5, True), (4, False), (3, False)])
def test_more_partitions_than_before_reset_the_failures(live: int, *, reset: bool) -> None:
    """Another client added them, or a request did whose answer was lost."""
    failing = before(expansion=FAILING, shortfalls=(Shortfall("app", "a", 4, 6), Shortfall("app", "b", 1, 2)))
    expansion = updated(failing, attrs.evolve(SHORT, counts={"a": live})).application.expansion
    assert expansion == (attrs.evolve(FAILING, attempts=0, failing_since_ms=None) if reset else FAILING)


def test_problems_are_reported_when_they_change_and_when_they_are_solved() -> None:
    warned = updated(before(), attrs.evolve(COMPLETE, counts={"a": 4}, warnings=(WARNING,)))
    assert warned.events == (ApplicationWarned("app", (WARNING,)),)
    again = attrs.evolve(WARNING, summary="Still missing.", found=None)
    assert (
        updated(warned.application, attrs.evolve(COMPLETE, counts={"a": 4}, warnings=(again,))).events == ()
    )
    for field in ("code", "topic", "node", "expected", "found"):
        value: Any = ProblemCode.TIMEOUT if field == "code" else "other"
        other = attrs.evolve(WARNING, **{field: value})
        changed = updated(warned.application, attrs.evolve(COMPLETE, counts={"a": 4}, warnings=(other,)))
        assert changed.events == (ApplicationWarned("app", (other,)),)
    solved = updated(warned.application, attrs.evolve(COMPLETE, counts={"a": 4}))
    assert solved.events == (ProblemsSolved("app"),)
