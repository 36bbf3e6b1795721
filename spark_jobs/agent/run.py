"""One agent, put together: from settings to a running loop, and to its end."""

import signal
from collections.abc import Iterator
from contextlib import contextmanager
from types import FrameType

import attrs

from infra.observe import Connection
from spark_jobs.agent.callbacks import callbacks_of
from spark_jobs.agent.coordination import DEFAULT_SESSION_TIMEOUT_MS, Coordination
from spark_jobs.agent.decide import AgentPolicy
from spark_jobs.agent.kafka_cluster import KafkaCluster
from spark_jobs.agent.loop import Loop
from spark_jobs.agent.ports import Documents, Instruments
from spark_jobs.agent.state import AgentState, Phase
from spark_jobs.agent.system_clock import SystemClock

_UNDER_WAY = (Phase.EXPANDING, Phase.SETTLING)
_WAITING = (*_UNDER_WAY, Phase.WAITING)


@attrs.frozen(kw_only=True)
class AgentSettings:
    """`group`: agents of one group share their work, one of them leads. Durations are milliseconds."""

    connection: Connection
    documents: Documents
    client_id: str
    group: str = "default"
    metadata_max_age_ms: int | None = None
    settle_ms: int = 10_000
    """How long metadata takes to spread: before the final follow-up, and before a lower count is believed."""
    request_timeout_ms: int = 10_000
    session_timeout_ms: int = DEFAULT_SESSION_TIMEOUT_MS
    callback: str | None = None
    """`module:Class` with `on_partition_expansion`, for all applications."""


class Agent:
    """A loop on a real cluster. `stop` and `look_now` may be called by other threads and signal handlers."""

    def __init__(
        self,
        settings: AgentSettings,
        instruments: Instruments,
        coordination: Coordination | None = None,
        clock: SystemClock | None = None,
    ) -> None:
        """Raises `ProblemsError` (InvalidConfig) for unfit settings; connects when it runs."""
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
            ),
            callbacks=callbacks,
        )

    @property
    def state(self) -> AgentState:
        return self._loop.state

    def run(self) -> None:
        """Run until stopped."""
        self._loop.run(lambda: self._is_stopped)

    def run_once(self, patience_ms: int = 60_000) -> bool:
        """Bring everything to rest, then end; return whether all applications have what they need.

        Waits no longer than `patience_ms` for another agent that leads or for a cluster that does not answer.
        """
        end = self._clock.monotonic_ms() + patience_ms

        def is_over() -> bool:
            phases = {app.phase for app in self.state.applications.values()}
            if phases.isdisjoint(_UNDER_WAY) and self._clock.monotonic_ms() > end:
                return True
            is_settled = self.state.looks > 0 and phases.isdisjoint(_WAITING) and not self.state.outbox
            return self._is_stopped or (is_settled and self.state.is_recovered)

        self._loop.run(is_over)
        return self.state.looks > 0 and {app.phase for app in self.state.applications.values()} <= {
            Phase.STEADY
        }

    def stop(self) -> None:
        self._is_stopped = True
        self._clock.wake()

    def look_now(self) -> None:
        """Have the cluster read at once."""
        self._loop.look_now()
        self._clock.wake()

    @contextmanager
    def signals(self) -> Iterator[None]:
        """Within, SIGTERM and SIGINT stop the agent, SIGHUP has it look at the cluster."""

        def stop(_: int, __: FrameType | None) -> None:
            self.stop()

        def look(_: int, __: FrameType | None) -> None:
            self.look_now()

        before = {
            number: signal.signal(number, handler)
            for number, handler in ((signal.SIGTERM, stop), (signal.SIGINT, stop), (signal.SIGHUP, look))
        }
        try:
            yield
        finally:
            for number, handler in before.items():
                signal.signal(number, handler)


def coordination_of(settings: AgentSettings) -> Coordination:
    """Return the agent's part in its group; connects when it is first used."""
    return Coordination.of(
        settings.connection, settings.group, settings.client_id, settings.session_timeout_ms
    )
