"""One agent: its journal, leadership, cluster, clock and loop."""

import random
import signal
import time
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from functools import partial
from queue import Empty, SimpleQueue
from types import FrameType
from typing import Self

import attrs

from headwater.agent.callbacks import callbacks_of
from headwater.agent.decide.values import AgentPolicy
from headwater.agent.journal import KafkaJournal, highest_term
from headwater.agent.kafka_cluster import KafkaCluster
from headwater.agent.leadership import DEFAULT_SESSION_TIMEOUT_MS, KafkaLeadership
from headwater.agent.loop import Loop
from headwater.agent.ports import Documents, Instruments
from headwater.agent.state import AgentState, Phase
from headwater.kafka import Connection
from headwater.kafka.expansion_journal import coordination_topic
from headwater.model.policies import Policy


class SystemClock:
    """A `ports.Clock`. Other threads and signal handlers may call `wake`."""

    def __init__(self) -> None:
        # A signal handler may run at any moment of `wait`, in the same thread. `Event.set` would then wait
        # for a lock that `Event.wait` or `Event.clear` has acquired; `SimpleQueue.put` is reentrant.
        self._wakes: SimpleQueue[None] = SimpleQueue()

    def monotonic_ms(self) -> int:
        return time.monotonic_ns() // 1_000_000

    def wall_ms(self) -> int:
        return time.time_ns() // 1_000_000

    def jitter(self) -> float:
        return random.random()  # noqa: S311 - spreads retries, guards nothing

    def wait(self, seconds: float) -> None:
        with suppress(Empty):
            self._wakes.get(timeout=seconds)
            for _ in range(self._wakes.qsize()):  # several calls of `wake` end one wait
                self._wakes.get_nowait()

    def wake(self) -> None:
        self._wakes.put(None)


_IN_PROGRESS = (Phase.EXPANDING, Phase.SETTLING)
_WAITING = (*_IN_PROGRESS, Phase.WAITING)


@attrs.frozen(kw_only=True)
class AgentSettings:
    """Agents of one `group` share the work: one of them leads. Durations are milliseconds."""

    connection: Connection
    documents: Documents
    client_id: str
    group: str = "default"
    metadata_max_age_ms: int | None = None
    settle_ms: int = 10_000
    """How long brokers need to share metadata: the final follow-up waits for it, a lower count, too."""
    request_timeout_ms: int = 10_000
    session_timeout_ms: int = DEFAULT_SESSION_TIMEOUT_MS
    callback: str | None = None
    """`module:Class` with `on_partition_expansion`, for all applications."""
    policies: tuple[Policy, ...] = ()
    """Policies that an expansion must not violate."""


@attrs.frozen
class Coordination:
    """Leadership and journal of one agent; a context manager. Agents of one `group` share the work."""

    leadership: KafkaLeadership
    journal: KafkaJournal

    @classmethod
    def create(
        cls,
        connection: Connection,
        group: str,
        client_id: str,
        session_timeout_ms: int = DEFAULT_SESSION_TIMEOUT_MS,
    ) -> "Coordination":
        topic = coordination_topic(group)
        journal_term = partial(highest_term, connection, topic, client_id)
        leadership = KafkaLeadership(connection, topic, client_id, session_timeout_ms, journal_term)
        return cls(leadership, KafkaJournal(connection, topic, client_id, leadership.status))

    def close(self) -> None:
        self.leadership.close()
        self.journal.close()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()


class Agent:
    """A loop on a Kafka cluster. Other threads and signal handlers may call `stop` and `read_now`."""

    def __init__(
        self,
        settings: AgentSettings,
        instruments: Instruments,
        coordination: Coordination | None = None,
        clock: SystemClock | None = None,
    ) -> None:
        """Raises `ProblemsError` (InvalidConfig) for wrong settings; connects when it runs."""
        self._clock = clock or SystemClock()
        self._is_stopped = False
        callbacks = callbacks_of(settings.callback, settings.documents)
        cluster = KafkaCluster(settings.connection, settings.client_id, settings.request_timeout_ms / 1000)
        coordination = coordination or coordination_of(settings)
        self._loop = Loop(
            cluster=cluster,
            leadership=coordination.leadership,
            journal=coordination.journal,
            instruments=instruments,
            documents=settings.documents,
            clock=self._clock,
            policy=AgentPolicy(
                client_id=settings.client_id,
                poll_ms=settings.metadata_max_age_ms,
                settle_ms=settings.settle_ms,
                lag_ms=settings.settle_ms,
                policies=settings.policies,
            ),
            callbacks=callbacks,
        )

    @property
    def state(self) -> AgentState:
        return self._loop.state

    def run(self) -> None:
        """Run until stopped."""
        self._loop.run(lambda: self._is_stopped)

    def run_once(self, timeout_ms: int = 60_000) -> bool:
        """Expand what is due, then end; return whether all internal topics exist and have their partitions.

        It creates no topic, so a missing internal topic alone makes the result false.
        Waits at most `timeout_ms` for another agent that leads, or for a cluster that does not answer.
        """
        end = self._clock.monotonic_ms() + timeout_ms

        def is_over() -> bool:
            phases = {app.phase for app in self.state.applications.values()}
            if phases.isdisjoint(_IN_PROGRESS) and self._clock.monotonic_ms() > end:
                return True
            is_settled = self.state.reads > 0 and phases.isdisjoint(_WAITING) and not self.state.outbox
            return self._is_stopped or (is_settled and self.state.is_recovered)

        self._loop.run(is_over)
        return self.state.reads > 0 and all(
            app.reported_phase is Phase.STEADY for app in self.state.applications.values()
        )

    def stop(self) -> None:
        self._is_stopped = True
        self._clock.wake()

    def read_now(self) -> None:
        """Read the cluster at once."""
        self._loop.read_now()
        self._clock.wake()

    @contextmanager
    def reading_on_sighup(self) -> Iterator[None]:
        """Read the cluster at once on SIGHUP, in this context."""

        def read(_: int, __: FrameType | None) -> None:
            self.read_now()

        before = signal.signal(signal.SIGHUP, read)
        try:
            yield
        finally:
            signal.signal(signal.SIGHUP, before)


def coordination_of(settings: AgentSettings) -> Coordination:
    """Return leadership and journal of an agent; they connect on first use."""
    return Coordination.create(
        settings.connection, settings.group, settings.client_id, settings.session_timeout_ms
    )
