"""Simulate a cluster, a journal and an agent in virtual time, with faults that a test switches on."""

from collections.abc import Callable, Mapping

import attrs

from headwater.agent.decide.decision import Decision, decide
from headwater.agent.decide.values import (
    Action,
    AgentPolicy,
    Attempted,
    CallbackCalled,
    Expand,
    Metadata,
    Moment,
    Notify,
    NotWritten,
    Observation,
    Observe,
    OffsetMetadataRead,
    ReadOffsetMetadata,
    Record,
    Recover,
    Recovered,
    TermObserved,
    Tick,
    Unconfirmed,
    Unreadable,
    Written,
)
from headwater.agent.events import AgentEvent
from headwater.agent.state import AgentState, ApplicationState, OffsetTexts, Outcome, TopicResult
from headwater.compiler import compile_documents
from headwater.model.expansions import ExpansionEntry, Stage, TopicCounts
from headwater.model.offset_metadata import RESHARD_KEY, MoveMark, MovePhase, OffsetMetadata
from headwater.model.problems import Problem, ProblemCode
from headwater.model.topology import TopologyDocument
from headwater.planner.waves import wave_numbers as waves_of
from headwater.spec import load_text

POLICY = AgentPolicy(client_id="agent-1", poll_ms=30_000)
_MOST_ACTIONS = 1_000

ORDERS = """
application:
  id: totals-app
  config: {partition.autoscaling.enabled: true, static.partitioner.class: "tenants:ByTenant"}
topics:
  totals: {partitions: follow}
topology:
  - stream: {topics: [orders, returns]}
  - groupBy: {key: value.customer, name: by-customer}
  - count: {materialized: counts}
  - toStream: {name: changes}
  - to: {topic: totals}
"""
RANKS = """
application:
  id: ranks-app
  config: {partition.autoscaling.enabled: true, static.partitioner.class: "tenants:ByTenant"}
topology:
  - table: {topic: totals, materialized: {store: latest}}
  - toStream: {name: changes}
  - to: {topic: ranks}
"""
REPARTITION = "totals-app-by-customer-repartition"
CHANGELOG = "totals-app-counts-changelog"


def documents(*texts: str) -> tuple[TopologyDocument, ...]:
    loaded = [load_text(text, f"document-{number}.yaml") for number, text in enumerate(texts)]
    assert not [problem for one in loaded for problem in one.problems if problem.severity.value == "error"]
    return tuple(document for one in loaded for document in one.documents)


def set_up(documents: tuple[TopologyDocument, ...], sources: Mapping[str, int]) -> dict[str, int]:
    """Return the counts of a cluster on which the applications were set up with these sources."""
    compiled = compile_documents(documents, sources)
    return {
        **sources,
        **{topic.name: topic.partitions for one in compiled for topic in one.internal_topics},
        **{sink.topic: sink.partitions or 0 for one in compiled for sink in one.sinks},
    }


def reshard_text() -> str:
    """Return what a reshard commits for the first partition of a changelog topic."""
    return OffsetMetadata(0, {f"{RESHARD_KEY}phase": 0}).encode(-1, mark=MoveMark(MovePhase.COPY, 4, 8))


def unreachable() -> tuple[Problem, ...]:
    return (Problem(code=ProblemCode.CLUSTER_UNREACHABLE, summary="No Kafka broker can be reached."),)


@attrs.define
class Simulation:
    """A simulated agent; `counts` is the cluster. Tests set fields to cause faults."""

    documents: tuple[TopologyDocument, ...]
    counts: dict[str, int]
    policy: AgentPolicy = POLICY
    state: AgentState = attrs.field(factory=AgentState)
    monotonic_ms: int = 5_000
    time_ms: int = 0
    """The real time, also if the wall clock is wrong."""
    term: int = 0
    journal: list[ExpansionEntry] = attrs.field(factory=list)
    events: list[AgentEvent] = attrs.field(factory=list)
    actions: list[Action] = attrs.field(factory=list)
    calls: list[tuple[str, int, int, int]] = attrs.field(factory=list)
    """(application, number of the expansion, old count, new count) of each callback."""
    decision: Decision | None = None

    outcome: Callable[[str], Outcome | None] = lambda topic: None  # noqa: ARG005
    """Topic → outcome of its expansion; None expands the topic."""
    is_answer_lost: bool = False
    """The cluster executes requests, but the agent receives no response."""
    is_unreadable: bool = False
    are_offsets_unreadable: bool = False
    is_journal_down: bool = False
    is_unconfirmed: bool = False
    processors: int | None = None
    """The committed number of processors of each application, if some were removed."""
    declared: int | None = None
    """The number of processors with which tasks have committed."""
    resharded: frozenset[str] = frozenset()
    """Applications whose reshard is not complete."""
    stale: dict[str, int] | None = None
    """Counts that the metadata shows instead of the current ones."""
    crash_after: int | None = None
    """The agent is killed after this many more actions."""

    def lead(self) -> None:
        """Become leader in a new term."""
        self.term += 1
        self.run(TermObserved(self.term))

    def run(self, observation: Observation) -> None:
        """Decide and act until no action is left."""
        for _ in range(_MOST_ACTIONS):
            self.decision = self._decide(observation)
            if self.decision.action is None:
                return
            if self.crash_after == 0:
                self.crash()
                observation = TermObserved(self.term)
                continue
            if self.crash_after is not None:
                self.crash_after -= 1
            observation = self._do(self.decision.action)
        raise AssertionError(f"the agent does not stop acting: {self.actions[-4:]}")

    def pass_time(self, milliseconds: int) -> None:
        """Advance the time; the agent wakes when its decisions say so."""
        end = self.time_ms + milliseconds
        while self.decision is not None and self.time_ms + self.decision.wake_ms <= end:
            self._tick(max(1, self.decision.wake_ms))
        if self.time_ms < end:
            self._tick(end - self.time_ms)

    def _tick(self, milliseconds: int) -> None:
        self.time_ms += milliseconds
        self.monotonic_ms += milliseconds
        self.run(Tick())

    def crash(self) -> None:
        """Kill the agent; a new leader has only the cluster and the journal."""
        self.state = AgentState()
        self.crash_after = None
        self.term += 1

    def app(self, id_: str = "totals-app") -> ApplicationState:
        return self.state.applications[id_]

    def reported(self, kind: type) -> list[AgentEvent]:
        return [event for event in self.events if isinstance(event, kind)]

    def _decide(self, observation: Observation) -> Decision:
        decision = decide(observation, self.state, Moment(self.monotonic_ms, self.time_ms, 0.5), self.policy)
        self.state = decision.state
        self.events += decision.events
        return decision

    def _do(self, action: Action) -> Observation:
        self.actions.append(action)
        match action:
            case Observe():
                if self.is_unreadable:
                    return Unreadable(unreachable())
                return Metadata(dict(self.counts if self.stale is None else self.stale), self.documents)
            case ReadOffsetMetadata(topics):
                return OffsetMetadataRead({id_: self._read_texts(id_, topics[id_]) for id_ in topics})
            case Recover():
                if self.is_journal_down:
                    return NotWritten(unreachable())
                return Recovered({entry.application: entry for entry in self.journal})
            case Record(entries):
                if self.is_journal_down:
                    return NotWritten(unreachable())
                self.journal += entries
                return Written(entries)
            case Notify(application, old, new):
                if self.is_unconfirmed:
                    return Unconfirmed(application)
                expansion = self.app(application).expansion
                assert expansion is not None
                self.calls.append((application, expansion.number, old, new))
                return CallbackCalled(application)
            case Expand():
                return Attempted(self._expand(action))

    def _read_texts(self, application: str, topics: TopicCounts) -> OffsetTexts:
        assert all(count <= self.counts.get(name, count) for name, count in topics.items())
        if self.are_offsets_unreadable:
            return unreachable()[0]
        if application in self.resharded:
            assert 1 in topics.values()
            return (reshard_text(),)
        if all(name.endswith("-changelog") for name in topics):  # no task commits offsets of these
            return ()
        return (OffsetMetadata(3).encode(0, count=self.processors, declared=self.declared),)

    def _expand(self, action: Expand) -> tuple[TopicResult, ...]:
        shortfalls = [item for wave in action.waves for item in wave]
        assert {item.topic: item.required for item in shortfalls}.keys() <= self.counts.keys()
        order = [
            waves_of(self.state.requirements.applications, {item.topic for item in shortfalls})[item.topic]
            for item in shortfalls
        ]
        assert order == sorted(order)
        results = []
        for item in shortfalls:
            outcome = self.outcome(item.topic)
            if outcome is None:
                outcome = Outcome.EXPANDED if self.counts[item.topic] < item.required else Outcome.ALREADY
                self.counts[item.topic] = max(self.counts[item.topic], item.required)
                if self.is_answer_lost:
                    outcome = Outcome.FAILED
            error = "_TIMED_OUT" if outcome is Outcome.FAILED else ""
            results.append(TopicResult(item.topic, item.required, outcome, error))
        return tuple(results)

    def last_entries(self) -> dict[str, ExpansionEntry]:
        return {entry.application: entry for entry in self.journal}

    def stages(self, application: str = "totals-app") -> list[Stage]:
        return [entry.stage for entry in self.journal if entry.application == application]


def leading_agent(*texts: str) -> Simulation:
    """Return a leading agent on a cluster with 4 partitions per topic, after its first topic check."""
    parsed = documents(*(texts or (ORDERS, RANKS)))
    simulation = Simulation(parsed, set_up(parsed, {"orders": 4, "returns": 4}))
    simulation.lead()
    return simulation
