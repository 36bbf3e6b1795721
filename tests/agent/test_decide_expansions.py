"""Each step of an expansion: the new state, the events and the journal entries, value by value."""

from typing import Any

import attrs
import pytest

from headwater.agent.decide.apply_observation import next_confirmation
from headwater.agent.decide.assessment import Assessment
from headwater.agent.decide.expansions import (
    Change,
    Context,
    apply_results,
    begin_expansion,
    cancel_expansion,
    finish_expansion,
    follow_up,
    give_up_expansion,
    problem_of_result,
    resume_expansion,
    schedule_follow_up,
    schedule_retry,
    widest_change,
)
from headwater.agent.decide.values import AgentPolicy
from headwater.agent.events import (
    AttemptEnded,
    AttemptFailed,
    Cancelled,
    Expanded,
    ExpansionStarted,
    GaveUp,
    Notified,
)
from headwater.agent.state import (
    ApplicationState,
    Expansion,
    ObservedCount,
    Outcome,
    Phase,
    Shortfall,
    TopicResult,
)
from headwater.model.expansions import ExpansionEntry, Stage
from headwater.model.problems import Problem, ProblemCode
from headwater.planner.phrases import failure_texts

POLICY = AgentPolicy(client_id="agent-1", poll_ms=30_000)
CONTEXT = Context(clock_ms=50_000, wall_ms=1_700_000, jitter=0.5, policy=POLICY, observed_at_ms=49_000)
PAUSE_MS = POLICY.backoff(1, 0.5)
BEFORE, AFTER = {"a": 4, "b": 4}, {"a": 6, "b": 4}
SHORTFALLS = (Shortfall("app", "a", 4, 6), Shortfall("app", "b", 4, 6))
EXPANSION = Expansion(number=3, started_ms=40_000, before=BEFORE, sources_before={"in": 4}, done=("z",))
STATE = ApplicationState(
    id="app", phase=Phase.EXPANDING, expansion=EXPANSION, last_number=3, shortfalls=SHORTFALLS, timeout_ms=9
)
UNREACHABLE = Problem(
    code=ProblemCode.CLUSTER_UNREACHABLE, summary="No broker can be reached.", found="refused"
)
FAILING = attrs.evolve(EXPANSION, attempts=2, failing_since_ms=45_000, retry_at_ms=51_000)


def assessment(**counts: int) -> Assessment:
    return Assessment(
        id="app",
        is_enabled=True,
        timeout_ms=9,
        counts=counts or AFTER,
        required={"a": 6, "b": 6},
        sources={"in": 6},
        reads=frozenset(),
        sinks=frozenset(),
        shortfalls=SHORTFALLS,
        parallelism=(),
        refusals=(),
        expanded=(),
        warnings=(),
    )


def entry(stage: Stage, **fields: Any) -> ExpansionEntry:  # noqa: ANN401 - the fields of ExpansionEntry
    known: dict[str, Any] = {
        "application": "app",
        "number": 3,
        "stage": stage,
        "wall_ms": 1_700_000,
        "client_id": "agent-1",
        "before": BEFORE,
        "after": AFTER,
        "sources_before": {"in": 4},
        "sources_after": {"in": 6},
        "done": ("z",),
    }
    return ExpansionEntry(**(known | fields))


def with_expansion(expansion: Expansion | None, **fields: Any) -> ApplicationState:  # noqa: ANN401 - fields of the state
    return attrs.evolve(STATE, expansion=expansion, **fields)


def test_an_expansion_begins_with_the_counts_that_matched_the_sources() -> None:
    state = ApplicationState(id="app", last_number=2, settled={"a": 3}, given_up={"a": 6})
    change = begin_expansion(state, assessment(), CONTEXT)
    expansion = Expansion(number=3, started_ms=50_000, before={"a": 3, "b": 4}, sources_before={"in": 6})
    assert change.application == attrs.evolve(
        state, phase=Phase.EXPANDING, expansion=expansion, last_number=3, given_up={}
    )
    assert change.events == (ExpansionStarted("app", 3, SHORTFALLS),)
    (written,) = change.entries
    assert (written.after, written.reason) == ({"a": 6, "b": 6}, "partitions are missing")
    first = ApplicationState(id="app")
    (written,) = begin_expansion(first, assessment(), CONTEXT).entries
    assert written.reason == "partitions were missing when the agent first read the cluster"
    grown = ApplicationState(id="app", settled={"a": 3}, settled_sources={"in": 4, "more": 1, "same": 2})
    sources = attrs.evolve(assessment(), sources={"same": 2, "more": 3, "in": 6})
    (written,) = begin_expansion(grown, sources, CONTEXT).entries
    assert written.reason == "in grew from 4 to 6; more grew from 1 to 3"
    without_shortfalls = attrs.evolve(assessment(), shortfalls=())
    assert begin_expansion(state, without_shortfalls, CONTEXT).application.phase is Phase.SETTLING


def test_the_next_confirmation_is_that_of_the_first_lower_count() -> None:
    observed = [ObservedCount(4, 100), ObservedCount(4, 50), ObservedCount(3)]
    assert next_confirmation(observed, 10) == 60
    assert next_confirmation(observed[2:], 10) is None


@pytest.mark.parametrize(
    ("stage", "settles_at"), [(Stage.STARTED, None), (Stage.EXPANDED, 50_000 + POLICY.settle_ms)]
)
def test_an_expansion_of_the_journal_is_resumed(stage: Stage, settles_at: int | None) -> None:
    change = resume_expansion(ApplicationState(id="app"), entry(stage), CONTEXT)
    expansion = Expansion(
        number=3,
        started_ms=50_000,
        before=BEFORE,
        sources_before={"in": 4},
        done=("z",),
        follow_up_at_ms=settles_at,
    )
    known = ApplicationState(
        id="app", last_number=3, settled=BEFORE, settled_sources={"in": 4}, expansion=expansion
    )
    assert change == Change(known, (ExpansionStarted("app", 3, (), is_resumed=True),))


@pytest.mark.parametrize(
    ("stage", "settled", "sources"),
    [
        (Stage.NOTIFIED, AFTER, {"in": 6}),
        (Stage.GIVEN_UP, BEFORE, {"in": 4}),
        (Stage.CANCELLED, BEFORE, {"in": 4}),
    ],
)
def test_a_final_entry_of_the_journal_is_not_resumed(
    stage: Stage, settled: dict[str, int], sources: dict[str, int]
) -> None:
    known = ApplicationState(id="app", last_number=3, settled=settled, settled_sources=sources)
    assert resume_expansion(ApplicationState(id="app"), entry(stage), CONTEXT) == Change(known)


def test_a_success_removes_the_shortfall_and_the_failures() -> None:
    results = (TopicResult("a", 6, Outcome.EXPANDED), TopicResult("b", 6, Outcome.ALREADY))
    change = apply_results(with_expansion(FAILING), FAILING, results, CONTEXT)
    after = attrs.evolve(EXPANSION, done=("a", "z"))
    assert change == Change(with_expansion(after, shortfalls=()), (AttemptEnded("app", 3, results),))


def test_a_partial_success_starts_the_failure_clock_again() -> None:
    results = (
        TopicResult("a", 6, Outcome.EXPANDED),
        TopicResult("b", 6, Outcome.FAILED, "_TIMED_OUT", "no answer"),
    )
    change = apply_results(with_expansion(FAILING), FAILING, results, CONTEXT)
    after = attrs.evolve(
        EXPANSION, done=("a", "z"), attempts=1, failing_since_ms=50_000, retry_at_ms=50_000 + PAUSE_MS
    )
    problem = problem_of_result("app", results[1])
    failure = AttemptFailed("app", 3, failure_texts([problem]), PAUSE_MS, 0)
    assert change == Change(
        with_expansion(after, shortfalls=SHORTFALLS[1:], attempt_problems=(problem,)),
        (AttemptEnded("app", 3, results), failure),
    )


def test_a_failure_continues_the_failure_clock() -> None:
    change = schedule_retry(with_expansion(FAILING), [UNREACHABLE], CONTEXT)
    pause = POLICY.backoff(3, 0.5)
    after = attrs.evolve(FAILING, attempts=3, retry_at_ms=50_000 + pause)
    assert change == Change(
        with_expansion(after, attempt_problems=(UNREACHABLE,)),
        (AttemptFailed("app", 3, ("No broker can be reached. Found: refused.",), pause, 5_000),),
    )
    assert schedule_retry(with_expansion(None), [UNREACHABLE], CONTEXT) == Change(with_expansion(None))


def test_an_expansion_settles_when_all_topics_are_expanded() -> None:
    change = schedule_follow_up(with_expansion(FAILING), assessment(), CONTEXT)
    after = attrs.evolve(EXPANSION, follow_up_at_ms=50_000 + POLICY.settle_ms)
    assert change == Change(with_expansion(after), (Expanded("app", 3, 10_000),), (entry(Stage.EXPANDED),))
    assert schedule_follow_up(with_expansion(None), assessment(), CONTEXT) == Change(with_expansion(None))


def test_the_widest_topic_is_the_expanded_one_with_the_most_partitions() -> None:
    assert widest_change({"a": 4, "b": 2, "c": 9}, {"a": 6, "b": 8, "c": 9}) == (2, 8)
    assert widest_change({"a": 4}, {"a": 4}) is None
    assert widest_change({"a": 4}, {}) is None
    assert widest_change({"a": 0}, {"a": 1}) == (0, 1)


def test_an_expansion_is_finished_after_its_callback() -> None:
    called = with_expansion(EXPANSION, called_number=3, called_error="refused")
    over = attrs.evolve(called, phase=Phase.STEADY, expansion=None, settled=AFTER, settled_sources={"in": 6})
    done = Change(over, (Notified("app", 3, 4, 6, "refused"),), (entry(Stage.NOTIFIED, reason="refused"),))
    assert finish_expansion(called, EXPANSION, assessment(), CONTEXT) == done
    assert follow_up(called, EXPANSION, assessment(), CONTEXT, is_confirmed=True) == done


def test_an_expansion_of_no_topic_ends_without_a_callback() -> None:
    due = attrs.evolve(EXPANSION, follow_up_at_ms=49_000)
    unchanged = assessment(**BEFORE)
    over = with_expansion(None, phase=Phase.STEADY, settled=BEFORE, settled_sources={"in": 6})
    done = Change(over, (), (entry(Stage.NOTIFIED, after=BEFORE),))
    assert follow_up(with_expansion(due), due, unchanged, CONTEXT, is_confirmed=True) == done
    called = with_expansion(due, called_number=3)
    assert not finish_expansion(called, due, unchanged, CONTEXT).events
    earlier = with_expansion(due, called_number=2, called_error="of an earlier call")
    assert [each.reason for each in finish_expansion(earlier, due, unchanged, CONTEXT).entries] == [""]


def test_the_follow_up_waits_until_it_is_due_and_confirmed() -> None:
    due = attrs.evolve(EXPANSION, follow_up_at_ms=49_000)
    later = attrs.evolve(EXPANSION, follow_up_at_ms=49_001)
    state = with_expansion(later)
    assert follow_up(state, later, assessment(), CONTEXT, is_confirmed=True) == Change(state)
    postponed = attrs.evolve(EXPANSION, follow_up_at_ms=50_000 + PAUSE_MS)
    assert follow_up(with_expansion(due), due, assessment(), CONTEXT, is_confirmed=False) == Change(
        with_expansion(postponed)
    )
    confirmed = with_expansion(due)
    assert follow_up(confirmed, due, assessment(), CONTEXT, is_confirmed=True) == Change(confirmed)


@pytest.mark.parametrize(
    ("since", "failing_for", "text"),
    [(45_000, 5_000, "5 seconds"), (-850_000, 900_000, "15 minutes"), (None, 0, "1 second")],
)
def test_the_same_counts_are_not_tried_again_after_giving_up(
    since: int | None, failing_for: int, text: str
) -> None:
    failing = attrs.evolve(EXPANSION, failing_since_ms=since)
    over = with_expansion(None, phase=Phase.GIVEN_UP, given_up={"a": 6, "b": 6})
    assert give_up_expansion(with_expansion(failing), failing, assessment(), CONTEXT) == Change(
        over,
        (GaveUp("app", 3, failing_for, SHORTFALLS),),
        (entry(Stage.GIVEN_UP, reason=f"no success for {text}"),),
    )


def test_the_journal_and_the_status_say_why_an_expansion_was_given_up() -> None:
    denied, late = (
        problem_of_result("app", TopicResult(name, 6, Outcome.FAILED, error, "no"))
        for name, error in (("a", "TOPIC_AUTHORIZATION_FAILED"), ("b", "_TIMED_OUT"))
    )
    failing = attrs.evolve(EXPANSION, failing_since_ms=45_000)
    for problems, text in (
        ((denied,), ""),
        ((denied, late), " (and 1 more problem)"),
    ):
        state = with_expansion(failing, attempt_problems=problems)
        assert state.reported_problems == problems
        over = give_up_expansion(state, failing, assessment(), CONTEXT)
        assert over.application.reported_problems == problems
        assert over.events == (GaveUp("app", 3, 5_000, SHORTFALLS, problems),)
        (written,) = over.entries
        assert written.reason == (
            "no success for 5 seconds: The Kafka brokers do not let the agent add partitions to topic a. "
            f"Found: TOPIC_AUTHORIZATION_FAILED: no.{text}"
        )


def test_problems_of_attempts_are_reported_while_attempts_fail() -> None:
    problems = (problem_of_result("app", TopicResult("a", 6, Outcome.FAILED, "_TIMED_OUT")),)
    assert with_expansion(EXPANSION, attempt_problems=problems).reported_problems == ()
    assert with_expansion(None, attempt_problems=problems).reported_problems == ()
    state = with_expansion(None, phase=Phase.GIVEN_UP, attempt_problems=problems)
    assert begin_expansion(state, assessment(), CONTEXT).application.attempt_problems == ()


def test_a_cancelled_expansion_is_in_the_journal() -> None:
    change = cancel_expansion(STATE, EXPANSION, assessment(), CONTEXT, "switched off")
    assert change == Change(
        with_expansion(None),
        (Cancelled("app", 3, "switched off"),),
        (entry(Stage.CANCELLED, reason="switched off"),),
    )
    (without_counts,) = cancel_expansion(STATE, EXPANSION, None, CONTEXT, "removed").entries
    assert without_counts == entry(Stage.CANCELLED, reason="removed", after={}, sources_after={})
