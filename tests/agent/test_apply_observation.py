"""Each observation of the loop: the whole next state, and the events, value by value."""

import attrs
import pytest

from headwater.agent.decide.apply_observation import PendingDecision, apply_observation
from headwater.agent.decide.expansions import Change, Context
from headwater.agent.decide.values import (
    AgentPolicy,
    CallbackCalled,
    Deposed,
    Metadata,
    NotWritten,
    Observation,
    Recovered,
    TermObserved,
    Tick,
    Unconfirmed,
    Unreadable,
    Written,
)
from headwater.agent.events import (
    AgentEvent,
    AttemptFailed,
    ClusterReadable,
    ClusterUnreadable,
    JournalAvailable,
    JournalUnavailable,
    LeadershipGained,
    LeadershipLost,
)
from headwater.agent.state import AgentState, ApplicationState, Expansion, ObservedCount, Phase, Retry
from headwater.model.expansions import ExpansionEntry, Stage
from headwater.model.problems import Problem, ProblemCode

POLICY = AgentPolicy(client_id="agent-1", poll_ms=30_000)
CONTEXT = Context(clock_ms=50_000, wall_ms=1_700_000, jitter=0.5, policy=POLICY)
UNREACHABLE = (
    Problem(code=ProblemCode.CLUSTER_UNREACHABLE, summary="No broker can be reached.", found="refused"),
    Problem(code=ProblemCode.CLUSTER_UNREACHABLE, summary="Timed out."),
)
TEXTS = ("No broker can be reached. Found: refused.", "Timed out.")
FIRST, SECOND = (
    ExpansionEntry(
        application=application,
        number=1,
        stage=Stage.NOTIFIED,
        wall_ms=1,
        client_id="agent-2",
        before={"a": 1},
        after={"a": 2},
    )
    for application in ("first", "second")
)
EXPANSION = Expansion(number=3, started_ms=40_000, before={"a": 1})
EXPANDING = ApplicationState(id="expanding", phase=Phase.EXPANDING, expansion=EXPANSION, given_up={"a": 2})
SETTLING = attrs.evolve(EXPANDING, id="settling", phase=Phase.SETTLING, given_up={})
STATE = AgentState(
    clock_ms=50_000,
    monotonic_ms=7,
    applications={"expanding": EXPANDING, "settling": SETTLING},
    observed_counts={"a": ObservedCount(2), "b": ObservedCount(4)},
    term=5,
    is_recovered=True,
    reads=8,
    observed_at_ms=20_000,
    is_read_requested=False,
    outbox=(FIRST, SECOND),
)
FAILING = attrs.evolve(
    STATE,
    read_problems=UNREACHABLE,
    read_retry=Retry(2, 49_000),
    journal_problems=UNREACHABLE,
    journal_retry=Retry(1, 49_500),
    is_read_requested=True,
)


def after(observation: Observation, state: AgentState) -> tuple[AgentState, tuple[AgentEvent, ...]]:
    pending = apply_observation(observation, PendingDecision(state, CONTEXT))
    return pending.state, pending.events


def with_failed_expansion(state: AgentState) -> AgentState:
    """Return the state after one more failure of the expansion that is being tried; the other one settles."""
    retry_at = 50_000 + POLICY.backoff(1, 0.5)
    failed = attrs.evolve(EXPANSION, attempts=1, failing_since_ms=50_000, retry_at_ms=retry_at)
    expanding = attrs.evolve(EXPANDING, expansion=failed, attempt_problems=UNREACHABLE)
    applications = {**state.applications, "expanding": expanding}
    return attrs.evolve(state, applications=applications)


FAILED = AttemptFailed("expanding", 3, TEXTS, POLICY.backoff(1, 0.5), 0)


@pytest.mark.parametrize("requested", [True, False])
@pytest.mark.parametrize("read_now", [True, False])
def test_a_tick_can_request_a_read(*, requested: bool, read_now: bool) -> None:
    state = attrs.evolve(STATE, is_read_requested=requested)
    ticked = attrs.evolve(state, is_read_requested=requested or read_now)
    assert after(Tick(read_now), state) == (ticked, ())


def test_metadata_ends_the_failures_of_reading() -> None:
    read = attrs.evolve(
        FAILING,
        observed_counts={"a": ObservedCount(2, 50_000), "b": ObservedCount(6)},
        observed_at_ms=50_000,
        reads=9,
        is_read_requested=False,
        read_problems=(),
        read_retry=Retry(),
    )
    assert after(Metadata({"a": 1, "b": 6}, ()), FAILING) == (read, (ClusterReadable(),))
    again = attrs.evolve(read, reads=10)
    assert after(Metadata({"a": 1, "b": 6}, ()), read) == (again, ())


def test_a_lower_count_is_used_when_brokers_have_shared_the_metadata() -> None:
    for since, used in ((50_000 - POLICY.lag_ms, 1), (50_001 - POLICY.lag_ms, 2)):
        lagging = attrs.evolve(STATE, observed_counts={"a": ObservedCount(2, since)})
        state, _ = after(Metadata({"a": 1}, ()), lagging)
        assert state.observed_counts["a"].partitions == used


@pytest.mark.parametrize("before", [STATE, FAILING])
def test_each_failed_read_counts_as_a_failure_of_running_expansions(before: AgentState) -> None:
    attempts = before.read_retry.attempts + 1
    retry = Retry(attempts, 50_000 + POLICY.backoff(attempts, 0.5))
    state = with_failed_expansion(attrs.evolve(before, read_problems=UNREACHABLE, read_retry=retry))
    reported = () if before.read_problems else (ClusterUnreadable(UNREACHABLE),)
    assert after(Unreadable(UNREACHABLE), before) == (state, (*reported, FAILED))


@pytest.mark.parametrize("before", [STATE, FAILING])
def test_each_failed_write_counts_as_a_failure_of_running_expansions(before: AgentState) -> None:
    attempts = before.journal_retry.attempts + 1
    retry = Retry(attempts, 50_000 + POLICY.backoff(attempts, 0.5))
    state = with_failed_expansion(attrs.evolve(before, journal_problems=UNREACHABLE, journal_retry=retry))
    reported = () if before.journal_problems else (JournalUnavailable(UNREACHABLE),)
    assert after(NotWritten(UNREACHABLE), before) == (state, (*reported, FAILED))


def test_written_entries_leave_the_outbox_and_end_the_failures_of_the_journal() -> None:
    written = attrs.evolve(FAILING, outbox=(SECOND,), journal_problems=(), journal_retry=Retry())
    assert after(Written((FIRST,)), FAILING) == (written, (JournalAvailable(),))
    assert after(Written((FIRST,)), STATE)[1] == ()


@pytest.mark.parametrize("term", [6, None])
def test_a_new_term_forgets_what_the_journal_knows_better(term: int | None) -> None:
    follower = attrs.evolve(
        FAILING,
        term=term,
        is_recovered=False,
        is_read_requested=True,
        outbox=(),
        journal_problems=(),
        journal_retry=Retry(),
        applications={
            "expanding": attrs.evolve(EXPANDING, expansion=None, given_up={}),
            "settling": attrs.evolve(SETTLING, expansion=None),
        },
    )
    assert after(TermObserved(term), attrs.evolve(FAILING, is_read_requested=False)) == (
        follower,
        (LeadershipLost(5),),
    )
    assert after(TermObserved(5), FAILING) == (FAILING, ())


def test_a_follower_that_becomes_the_leader_has_lost_nothing() -> None:
    state, events = after(TermObserved(6), attrs.evolve(STATE, term=None))
    assert (state.term, events) == (6, ())


@pytest.mark.parametrize(
    ("term", "deposed", "expected"), [(5, -1, 5), (5, 7, 7), (None, -1, -1), (None, 3, 3), (0, -1, 0)]
)
def test_a_deposed_leader_knows_the_refused_term(term: int | None, deposed: int, expected: int) -> None:
    state, events = after(Deposed(), attrs.evolve(STATE, term=term, deposed_term=deposed))
    assert (state.term, state.deposed_term) == (None, expected)
    assert events == (() if term is None else (LeadershipLost(term),))


def test_the_journal_is_recovered_only_by_a_leader() -> None:
    entries = {"expanding": attrs.evolve(FIRST, application="expanding"), "second": SECOND}
    state = attrs.evolve(FAILING, is_recovered=False, outbox=())
    applications = {
        "expanding": attrs.evolve(EXPANDING, last_number=1, settled={"a": 2}),
        "settling": SETTLING,
        "second": ApplicationState(id="second", last_number=1, settled={"a": 2}),
    }
    recovered = attrs.evolve(
        state, is_recovered=True, journal_problems=(), journal_retry=Retry(), applications=applications
    )
    assert after(Recovered(entries), state) == (recovered, (JournalAvailable(), LeadershipGained(5)))
    assert after(Recovered({}), attrs.evolve(STATE, is_recovered=False))[1] == (LeadershipGained(5),)
    follower = attrs.evolve(state, term=None)
    assert after(Recovered(entries), follower) == (follower, ())


def test_only_a_leader_queues_journal_entries() -> None:
    change = Change(EXPANDING, entries=(SECOND,))
    leader, follower = (
        PendingDecision(attrs.evolve(STATE, term=term, outbox=(FIRST,)), CONTEXT).with_changes(change)
        for term in (5, None)
    )
    assert (leader.state.outbox, follower.state.outbox) == ((FIRST, SECOND), ())


def test_the_callback_is_recorded_or_postponed() -> None:
    called = attrs.evolve(SETTLING, called_number=3, called_error="refused")
    later = attrs.evolve(
        SETTLING,
        expansion=attrs.evolve(EXPANSION, follow_up_at_ms=50_000 + POLICY.backoff(1, 0.5)),
    )
    for observation, app in (
        (CallbackCalled("settling", "refused"), called),
        (Unconfirmed("settling"), later),
    ):
        applications = {**STATE.applications, "settling": app}
        assert after(observation, STATE) == (attrs.evolve(STATE, applications=applications), ())
