"""The loop: executes the action of each decision and observes its result. One thread; decides nothing."""

import time
from collections.abc import Callable, Iterable, Mapping, Sequence

import attrs

from headwater.agent.callbacks import Callbacks, call_callback
from headwater.agent.decide.decision import decide
from headwater.agent.decide.values import (
    Action,
    AgentPolicy,
    Attempted,
    CallbackCalled,
    Deposed,
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
from headwater.agent.expand import expand_waves
from headwater.agent.ports import (
    Clock,
    Cluster,
    Documents,
    Instruments,
    Journal,
    Leadership,
    NoLongerLeaderError,
)
from headwater.agent.state import AgentState, Outcome, Shortfall, TopicResult
from headwater.model.expansions import ExpansionEntry, TopicCounts
from headwater.model.problems import Problem, ProblemsError
from headwater.model.topology import TopologyDocument

_LONGEST_WAIT_SECONDS = 1.0
"""The election must be polled also while no action is due."""


@attrs.define(kw_only=True)
class Loop:
    """One agent. Only one thread may call `iterate` and `run`."""

    cluster: Cluster
    leadership: Leadership
    journal: Journal
    instruments: Instruments
    documents: Documents
    clock: Clock
    policy: AgentPolicy
    callbacks: Callbacks = lambda _: None
    state: AgentState = attrs.field(factory=AgentState)
    _decided_ms: int = attrs.field(default=0, init=False)
    _due_ms: int = attrs.field(default=0, init=False)
    _is_read_requested: bool = attrs.field(default=False, init=False)
    _documents: tuple[TopologyDocument, ...] | None = attrs.field(default=None, init=False)
    """The documents of the last read of the cluster; a switch replaces them without a change of a file."""
    _validated: dict[str, int] = attrs.field(factory=dict, init=False)

    def read_now(self) -> None:
        """Make the next iteration read the cluster; another thread then has to wake the clock."""
        self._is_read_requested = True

    def run(self, is_over: Callable[[], bool]) -> None:
        """Iterate until `is_over` returns true, then give the leadership up."""
        try:
            while not is_over():
                self.iterate(is_over)
                wait = min((self._due_ms - self.clock.monotonic_ms()) / 1000, _LONGEST_WAIT_SECONDS)
                self.clock.wait(max(wait, 0))
        finally:
            self.leadership.close()
            self.journal.close()

    def iterate(self, is_over: Callable[[], bool] = lambda: False) -> None:
        """Observe what is new and execute actions until none is due."""
        observation = self._next_observation()
        if observation is None:
            self.instruments.record_state(self.state)
        while observation is not None:
            now = Moment(self.clock.monotonic_ms(), self.clock.wall_ms(), self.clock.jitter())
            decision = decide(observation, self.state, now, self.policy)
            self.state = decision.state
            self._decided_ms, self._due_ms = now.monotonic_ms, now.monotonic_ms + decision.wake_ms
            self._report(decision.events)
            self.instruments.record_state(self.state)
            if decision.action is None or is_over():
                return
            # Requests without an answer take long: poll the election between two of them.
            observation = self._poll_leadership() or self._execute(decision.action)

    def _poll_leadership(self) -> TermObserved | None:
        """Poll the election; return the term if it changed."""
        term = self.leadership.poll()
        is_new = term != self.state.term and (term is None or term > self.state.deposed_term)
        return TermObserved(term) if is_new else None

    def _next_observation(self) -> Observation | None:
        term = self._poll_leadership()
        changes = self.documents.refresh()
        self._report(changes)
        if term is not None:
            return term
        if changes or self._is_read_requested or self.documents.current() is not self._documents:
            self._is_read_requested = False
            return Tick(read_now=True)
        is_waiting = self._decided_ms <= self.clock.monotonic_ms() < self._due_ms
        return None if is_waiting else Tick()

    def _report(self, events: Iterable[AgentEvent]) -> None:
        for event in events:
            self.instruments.record_event(event)

    def _execute(self, action: Action) -> Observation:
        match action:
            case Observe():
                return self._observe()
            case ReadOffsetMetadata(topics):
                return self._read_offset_metadata(topics)
            case Recover():
                return self._recover()
            case Record(entries):
                return self._record(entries)
            case Expand(waves):
                return Attempted(self._expand(waves))
            case Notify(application, old, new):
                return self._notify(application, old, new)

    def _observe(self) -> Observation:
        self._documents = documents = self.documents.current()
        start = time.perf_counter()
        try:
            counts = self.cluster.partition_counts()
        except ProblemsError as error:
            self._record_request("metadata", start, succeeded=False)
            return Unreadable(error.problems)
        self._record_request("metadata", start, succeeded=True)
        return Metadata(counts, documents)

    def _read_offset_metadata(self, topics: Mapping[str, TopicCounts]) -> Observation:
        start = time.perf_counter()
        found = self.cluster.offset_metadata(topics)
        succeeded = not any(isinstance(texts, Problem) for texts in found.values())
        self._record_request("offsets", start, succeeded=succeeded)
        return OffsetMetadataRead(found)

    def _recover(self) -> Observation:
        return self._with_journal(lambda term: Recovered(self.journal.latest(term)))

    def _record(self, entries: Sequence[ExpansionEntry]) -> Observation:
        def append(term: int) -> Observation:
            for entry in entries:
                self.journal.append(entry, term)
            return Written(tuple(entries))

        return self._with_journal(append)

    def _with_journal(self, use: Callable[[int], Observation]) -> Observation:
        term, start = self.state.term, time.perf_counter()
        if term is None:
            return Deposed()
        try:
            observation = use(term)
        except NoLongerLeaderError:
            return Deposed()
        except ProblemsError as error:
            self._record_request("journal", start, succeeded=False)
            return NotWritten(error.problems)
        self._record_request("journal", start, succeeded=True)
        return observation

    def _expand(self, waves: Sequence[Sequence[Shortfall]]) -> tuple[TopicResult, ...]:
        return expand_waves(
            waves,
            validate=self._validate,
            create=lambda shortfalls: self._request("expand", shortfalls, validate_only=False),
            is_leader=self._is_confirmed,
        )

    def _validate(self, shortfalls: Sequence[Shortfall]) -> tuple[TopicResult, ...]:
        """Validate the counts that were not validated before and return their results.

        Validation counts against the controller's mutation quota, which retries would use up.
        """
        new = [item for item in shortfalls if self._validated.get(item.topic) != item.required]
        results = self._request("validate", new, validate_only=True) if new else ()
        self._validated |= {
            result.topic: result.partitions for result in results if result.outcome is Outcome.EXPANDED
        }
        return results

    def _request(
        self, operation: str, shortfalls: Sequence[Shortfall], *, validate_only: bool
    ) -> tuple[TopicResult, ...]:
        start = time.perf_counter()
        results = self.cluster.expand(shortfalls, validate_only=validate_only)
        succeeded = all(result.outcome is not Outcome.FAILED for result in results)
        self._record_request(operation, start, succeeded=succeeded)
        return results

    def _is_confirmed(self) -> bool:
        return self.state.term is not None and self.leadership.confirm(self.state.term)

    def _notify(self, application: str, old: int, new: int) -> Observation:
        if not self._is_confirmed():
            return Unconfirmed(application)
        return CallbackCalled(application, call_callback(self.callbacks, application, old, new))

    def _record_request(self, operation: str, start: float, *, succeeded: bool) -> None:
        self.instruments.record_request(operation, time.perf_counter() - start, succeeded=succeeded)
