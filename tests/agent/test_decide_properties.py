"""Random histories: sources are expanded, requests fail, the agent is killed, clocks jump."""

import itertools
from collections import defaultdict
from collections.abc import Mapping
from functools import cache
from typing import Any

import attrs
from hypothesis import given, settings
from hypothesis import strategies as st

from headwater.agent.decide.decision import Decision
from headwater.agent.decide.values import Action, Observation, TermObserved, Tick
from headwater.agent.events import ApplicationRefused, AttemptEnded, AttemptFailed, ExpansionStarted, GaveUp
from headwater.agent.state import ApplicationState, Outcome, Phase
from headwater.model.expansions import Stage
from tests.agent.simulation import ORDERS, POLICY, RANKS, Simulation, documents, set_up

TIMEOUT_MS = 20_000
_CONFIG = f"config: {{partition.autoscaling.timeout.ms: {TIMEOUT_MS}, "
DOCUMENTS = documents(ORDERS.replace("config: {", _CONFIG), RANKS.replace("config: {", _CONFIG))
START = {"orders": 2, "returns": 3}
SOURCES = tuple(START)
TOPICS = tuple(sorted(set_up(DOCUMENTS, START).keys() - START.keys()))
APPLICATIONS = ("totals-app", "ranks-app")

growth = st.tuples(st.just("grow"), st.sampled_from(SOURCES), st.integers(1, 3))
failing = st.tuples(st.just("fail"), st.frozensets(st.sampled_from(TOPICS)))
switches = st.tuples(
    st.sampled_from(["is_answer_lost", "is_unreadable", "is_journal_down", "is_unconfirmed"]), st.booleans()
)
others = st.one_of(
    st.tuples(st.just("lag"), st.integers(1, POLICY.lag_ms - 1)),
    st.tuples(st.just("clock"), st.integers(-1_000_000, -1)),
    st.tuples(st.just("kill"), st.integers(0, 8)),
    st.tuples(st.sampled_from(["pulumi", "re-elect", "depose"])),
)
passing = st.tuples(st.just("pass"), st.integers(1, 3 * TIMEOUT_MS) | st.integers(1, TIMEOUT_MS // 4))
rounds = st.lists(st.one_of(failing, switches, others, passing), max_size=6).flatmap(
    lambda events: st.tuples(growth, failing, passing).map(lambda first: [*first, *events])
)
histories = st.lists(rounds, min_size=1, max_size=5).map(
    lambda parts: [event for part in parts for event in part]
)


@cache
def counts_with(partitions: tuple[int, ...]) -> Mapping[str, int]:
    return set_up(DOCUMENTS, dict(zip(SOURCES, partitions, strict=True)))


@attrs.define
class Watched(Simulation):
    """A simulation that checks the invariants after every action."""

    kills: int = 0
    failing_since: dict[str, int] = attrs.field(factory=dict)
    """Failure clocks that are computed independently of the agent."""
    gave_up: int = 0
    past: dict[str, int] = attrs.field(factory=dict)
    """Earlier counts, as a lagging broker shows them."""
    past_until_ms: int = 0

    def most(self) -> Mapping[str, int]:
        """Return the counts that the sources require."""
        return counts_with(tuple(self.counts[source] for source in SOURCES))

    def _do(self, action: Action) -> Observation:
        before = dict(self.counts)
        observation = super()._do(action)
        most = self.most()
        for topic, count in self.counts.items():
            assert before[topic] <= count <= most[topic], f"{topic}: {before[topic]} → {count}"
        return observation

    def _decide(self, observation: Observation) -> Decision:
        seen = len(self.events)
        failures = self.state.failures
        decision = super()._decide(observation)
        now = decision.state.clock_ms
        for event in self.events[seen:]:
            match event:
                case AttemptEnded(application, _, results):
                    if any(result.is_success for result in results):
                        self.failing_since.pop(application, None)
                case AttemptFailed(application):
                    self.failing_since.setdefault(application, now)
                    assert event.failing_for_ms == now - self.failing_since[application]
                case ExpansionStarted(application):
                    self.failing_since.pop(application, None)
                case GaveUp(application):
                    assert now - self.failing_since.pop(application) >= TIMEOUT_MS
                    self.gave_up += 1
        gone = sum(isinstance(event, GaveUp) for event in self.events[seen:])
        assert decision.state.failures == failures + gone
        for app in decision.state.applications.values():
            self._check(app, now)
        return decision

    def _check(self, app: ApplicationState, now: int) -> None:
        """Only the agent knows of progress that it reads from the metadata."""
        if app.expansion is None or app.expansion.failing_since_ms is None:
            self.failing_since.pop(app.id, None)
        elif app.phase is Phase.EXPANDING:
            assert now - self.failing_since[app.id] < TIMEOUT_MS

    def crash(self) -> None:
        super().crash()
        self.kills += 1
        self.failing_since.clear()
        if self.time_ms - self.past_until_ms >= POLICY.lag_ms:
            # No broker lags this far behind; such a broker would mislead a restarted agent.
            self.past = dict(self.counts)
            self.stale = None


def start() -> Watched:
    policy = attrs.evolve(POLICY, poll_ms=5_000)
    simulation = Watched(DOCUMENTS, set_up(DOCUMENTS, START), policy)
    simulation.lead()
    return simulation


def play(simulation: Watched, event: tuple[Any, ...]) -> None:
    match event:
        case ("pass", milliseconds):
            simulation.pass_time(milliseconds)
        case ("fail", topics):
            simulation.outcome = lambda topic: Outcome.FAILED if topic in topics else None
        case ("clock", step):
            simulation.monotonic_ms += step
        case ("kill", steps):
            simulation.crash_after = steps
        case ("re-elect",):
            simulation.lead()
        case ("depose",):
            simulation.run(TermObserved(None))
            simulation.pass_time(7_000)
            simulation.lead()
        case ("grow" | "lag" | "pulumi", *_):
            change(simulation, event)
        case (switch, is_on):
            setattr(simulation, switch, is_on)


def change(simulation: Watched, event: tuple[Any, ...]) -> None:
    """Change the cluster or its metadata."""
    match event:
        case ("grow", source, by):
            simulation.past = dict(simulation.counts)
            simulation.past_until_ms = simulation.time_ms
            simulation.counts[source] += by
        case ("lag", milliseconds) if not simulation.is_unreadable:
            simulation.stale = simulation.past
            simulation.pass_time(milliseconds)
            simulation.stale = None
            simulation.run(Tick(read_now=True))
        case ("pulumi",):
            simulation.counts = dict(simulation.most())


def heal(simulation: Watched) -> None:
    simulation.outcome = lambda _: None
    simulation.is_answer_lost = simulation.is_unreadable = False
    simulation.is_journal_down = simulation.is_unconfirmed = False


@given(histories)
def test_counts_follow_sources_and_each_expansion_has_one_callback(history: list[tuple[Any, ...]]) -> None:
    """Each action is checked: no over-partitioning, no smaller counts. Counts converge when failures stop."""
    simulation = start()
    for event in history:
        play(simulation, event)
    heal(simulation)
    # An expansion that was given up is not retried until a source changes.
    simulation.pass_time(120_000)
    for source in SOURCES:
        simulation.counts[source] += 4
    simulation.pass_time(240_000)
    assert simulation.counts == simulation.most()
    assert not simulation.reported(ApplicationRefused)
    assert {app.phase for app in simulation.state.applications.values()} == {Phase.STEADY}
    assert {entry.stage for entry in simulation.last_entries().values()} == {Stage.NOTIFIED}
    for application in APPLICATIONS:
        _check_journal(simulation, application)
        _check_calls(simulation, application)


def _check_journal(simulation: Watched, application: str) -> None:
    """Each expansion starts where the last finished one ended; the final counts are the current ones."""
    entries = [entry for entry in simulation.journal if entry.application == application]
    numbers = [entry.number for entry in entries]
    assert numbers == sorted(numbers)
    finished = [entry for entry in entries if entry.stage is Stage.NOTIFIED]
    for earlier, later in itertools.pairwise(finished):
        assert earlier.after == later.before
    assert finished[-1].after == {name: simulation.counts[name] for name in finished[-1].after}


def _check_calls(simulation: Watched, application: str) -> None:
    """Each expansion has one callback; a kill between the callback and its journal entry repeats it."""
    calls: defaultdict[int, int] = defaultdict(int)
    for name, number, old, new in simulation.calls:
        if name == application:
            calls[number] += 1
            assert old < new
    finished = [
        entry.number
        for entry in simulation.journal
        if entry.application == application and entry.stage is Stage.NOTIFIED
    ]
    assert len(finished) == len(set(finished))
    assert calls.keys() == set(finished)
    widest = max(simulation.counts[name] for name in simulation.app(application).settled)
    assert [new for name, _, _, new in simulation.calls if name == application][-1] == widest
    assert sum(calls.values()) - len(calls) <= simulation.kills


@settings(max_examples=2 * settings().max_examples // 5)
@given(histories)
def test_agent_gives_up_only_after_full_timeout_of_failures(history: list[tuple[Any, ...]]) -> None:
    """The timeout runs from the first failure after the last success. `Watched` has its own clock."""
    simulation = start()
    for event in history:
        play(simulation, event)
    assert sum(isinstance(event, GaveUp) for event in simulation.events) == simulation.gave_up


@settings(max_examples=3 * settings().max_examples // 10)
@given(histories)
def test_decision_is_deterministic(history: list[tuple[Any, ...]]) -> None:
    first, second = start(), start()
    for event in history:
        play(first, event)
        play(second, event)
    assert first.state == second.state
    assert first.actions == second.actions
