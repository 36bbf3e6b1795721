"""The loop: does what was decided and comes back with what it saw. One thread, no decision of its own."""

import time
from collections.abc import Callable, Iterable, Sequence

import attrs

from infra.model.problems import ProblemsError
from spark_jobs.agent.callbacks import Callbacks, call
from spark_jobs.agent.decide import (
    Action,
    AgentPolicy,
    Attempted,
    Called,
    Deposed,
    Expand,
    Led,
    Metadata,
    Moment,
    Notify,
    NotWritten,
    Observation,
    Observe,
    Record,
    Recover,
    Recovered,
    Tick,
    Unconfirmed,
    Unreadable,
    Written,
    decide,
)
from spark_jobs.agent.events import AgentEvent
from spark_jobs.agent.expand import expand
from spark_jobs.agent.ports import (
    Clock,
    Cluster,
    Documents,
    Instruments,
    Journal,
    Leadership,
    NoLongerLeaderError,
)
from spark_jobs.agent.state import AgentState, ExpansionEntry, Outcome, Shortfall, TopicResult

_LONGEST_WAIT_SECONDS = 1.0
"""The election has to be served also while nothing is due."""


@attrs.define(kw_only=True)
class Loop:
    """One agent. `state` is what it knows; `turn` and `run` are called by one thread only."""

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
    _wants_look: bool = attrs.field(default=False, init=False)
    _validated: dict[str, int] = attrs.field(factory=dict, init=False)

    def look_now(self) -> None:
        """Have the next turn read the cluster; for other threads: then wake the clock."""
        self._wants_look = True

    def run(self, is_over: Callable[[], bool]) -> None:
        """Turn until `is_over`, then hand the leadership over at once."""
        try:
            while not is_over():
                self.turn(is_over)
                wait = min((self._due_ms - self.clock.monotonic_ms()) / 1000, _LONGEST_WAIT_SECONDS)
                self.clock.wait(max(wait, 0))
        finally:
            self.leadership.close()
            self.journal.close()
            self.cluster.close()

    def turn(self, is_over: Callable[[], bool] = lambda: False) -> None:
        """Take in what is new, and do all there is to be done for now."""
        observation = self._news()
        if observation is None:
            self.instruments.observed(self.state)
        while observation is not None:
            now = Moment(self.clock.monotonic_ms(), self.clock.wall_ms(), self.clock.jitter())
            decision = decide(observation, self.state, now, self.policy)
            self.state = decision.state
            self._decided_ms, self._due_ms = now.monotonic_ms, now.monotonic_ms + decision.wake_ms
            self._tell(decision.events)
            self.instruments.observed(self.state)
            if decision.action is None or is_over():
                return
            # Requests without an answer take long, and the next one is due at once: serve the election too.
            observation = self._election() or self._do(decision.action)

    def _election(self) -> Led | None:
        """Serve it; return what it has changed."""
        term = self.leadership.poll()
        is_news = term != self.state.term and (term is None or term > self.state.deposed_term)
        return Led(term) if is_news else None

    def _news(self) -> Observation | None:
        led = self._election()
        changes = self.documents.refresh()
        self._tell(changes)
        if led is not None:
            return led
        if changes or self._wants_look:
            self._wants_look = False
            return Tick(look_now=True)
        is_waiting = self._decided_ms <= self.clock.monotonic_ms() < self._due_ms
        return None if is_waiting else Tick()

    def _tell(self, events: Iterable[AgentEvent]) -> None:
        for event in events:
            self.instruments.told(event)

    def _do(self, action: Action) -> Observation:
        match action:
            case Observe():
                return self._observe()
            case Recover():
                return self._recover()
            case Record(entries):
                return self._record(entries)
            case Expand(waves):
                return Attempted(self._expand(waves))
            case Notify(application, old, new):
                return self._notify(application, old, new)

    def _observe(self) -> Observation:
        start = time.perf_counter()
        try:
            counts = self.cluster.partition_counts()
        except ProblemsError as error:
            self._asked("metadata", start, succeeded=False)
            return Unreadable(error.problems)
        self._asked("metadata", start, succeeded=True)
        return Metadata(counts, self.documents.current())

    def _recover(self) -> Observation:
        return self._journalled(lambda term: Recovered(self.journal.latest(term)))

    def _record(self, entries: Sequence[ExpansionEntry]) -> Observation:
        def append(term: int) -> Observation:
            for entry in entries:
                self.journal.append(entry, term)
            return Written(tuple(entries))

        return self._journalled(append)

    def _journalled(self, act: Callable[[int], Observation]) -> Observation:
        term, start = self.state.term, time.perf_counter()
        if term is None:
            return Deposed()
        try:
            observation = act(term)
        except NoLongerLeaderError:
            return Deposed()
        except ProblemsError as error:
            self._asked("journal", start, succeeded=False)
            return NotWritten(error.problems)
        self._asked("journal", start, succeeded=True)
        return observation

    def _expand(self, waves: Sequence[Sequence[Shortfall]]) -> tuple[TopicResult, ...]:
        return expand(
            waves,
            validate=self._validate,
            create=lambda lacking: self._ask("expand", lacking, validate_only=False),
            is_leader=self._is_confirmed,
        )

    def _validate(self, lacking: Sequence[Shortfall]) -> tuple[TopicResult, ...]:
        """Return results of what was not validated before: also that counts against the mutation quota.

        Under a quota an attempt would otherwise spend on asking what it needs for doing, again and again.
        """
        new = [item for item in lacking if self._validated.get(item.topic) != item.wanted]
        results = self._ask("validate", new, validate_only=True) if new else ()
        self._validated |= {
            result.topic: result.partitions for result in results if result.outcome is Outcome.EXPANDED
        }
        return results

    def _ask(
        self, operation: str, lacking: Sequence[Shortfall], *, validate_only: bool
    ) -> tuple[TopicResult, ...]:
        start = time.perf_counter()
        results = self.cluster.expand(lacking, validate_only=validate_only)
        succeeded = all(result.outcome is not Outcome.FAILED for result in results)
        self._asked(operation, start, succeeded=succeeded)
        return results

    def _is_confirmed(self) -> bool:
        return self.state.term is not None and self.leadership.confirm(self.state.term)

    def _notify(self, application: str, old: int, new: int) -> Observation:
        if not self._is_confirmed():
            return Unconfirmed(application)
        return Called(application, call(self.callbacks, application, old, new))

    def _asked(self, operation: str, start: float, *, succeeded: bool) -> None:
        self.instruments.asked(operation, time.perf_counter() - start, succeeded=succeeded)
