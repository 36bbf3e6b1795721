"""What one agent tells of itself: metrics, status and log (`ports.Instruments`)."""

import time
from collections.abc import Callable, Mapping
from contextlib import suppress
from datetime import UTC, datetime
from typing import Any

import structlog
from prometheus_client import CollectorRegistry

from spark_jobs.agent.events import AgentEvent
from spark_jobs.agent.instruments_logs import log_line
from spark_jobs.agent.instruments_metrics import AgentMetrics
from spark_jobs.agent.instruments_status import agent_status
from spark_jobs.agent.state import AgentState
from spark_jobs.control import FINE, Health, Section

_LONGEST_TURN_SECONDS = 300.0
"""The loop turns about once a second; several requests without an answer can hold it up for minutes."""

_log = structlog.get_logger("agent")


class AgentInstruments:
    """Fed by the loop's thread, read by the endpoint's: the state is one frozen value that is replaced.

    `trouble` tells what hinders the election (`KafkaLeadership.trouble`).
    """

    def __init__(
        self, registry: CollectorRegistry, client_id: str, trouble: Callable[[], str] = lambda: ""
    ) -> None:
        self._metrics = AgentMetrics(registry, client_id)
        self._trouble = trouble
        self._turned = time.monotonic()
        self._read_at: str | None = None
        self.state = AgentState()
        """As last observed."""

    def observed(self, state: AgentState) -> None:
        """See `ports.Instruments.observed`."""
        self._turned = time.monotonic()
        if state.observed_at_ms != self.state.observed_at_ms:
            self._read_at = f"{datetime.now(UTC):%Y-%m-%dT%H:%M:%SZ}"
        self.state = state
        self._metrics.observed(state)

    def told(self, event: AgentEvent) -> None:
        """See `ports.Instruments.told`."""
        self._metrics.told(event)
        line = log_line(event)
        with suppress(OSError, ValueError):  # nobody reads standard error any more: no reason to stop
            getattr(_log, line.level)(line.words, **line.fields)

    def asked(self, operation: str, seconds: float, *, succeeded: bool) -> None:
        """See `ports.Instruments.asked`."""
        self._metrics.asked(operation, seconds, succeeded=succeeded)

    def section(self) -> Section:
        """Return what the endpoint shows of the agent."""
        return Section(name="agent", status=self._status, ready=self._ready, live=self._live)

    def _status(self) -> Mapping[str, Any]:
        return agent_status(self.state, self._read_at, self._trouble())

    def _ready(self) -> Health:
        if problems := (*self.state.unreadable, *self.state.journal):
            return Health(ok=False, reason=problems[0].summary)
        if self.state.observed_at_ms is None:
            return Health(ok=False, reason="The cluster was not read yet.")
        return FINE

    def _live(self) -> Health:
        if (silent := time.monotonic() - self._turned) > _LONGEST_TURN_SECONDS:
            return Health(ok=False, reason=f"The loop has not turned for {silent:.0f} s.")
        return FINE
