"""Metrics, status and log of one agent (`ports.Instruments`), metrics in Prometheus' spelling.

The metrics of KIPs have Kafka's names with `_` for `-`, tags as labels, and `_total` after a counter;
`application_id` is added, because one agent serves several applications:

| KIP | name and tag in Kafka | name here |
|---|---|---|
| 878 | current-subtopology-parallelism, subtopology-id | current_subtopology_parallelism |
| 878 | expected-subtopology-parallelism, subtopology-id | expected_subtopology_parallelism |
| 878 | num-autoscaling-failures, client-id | num_autoscaling_failures_total |
| 663 | failed-stream-threads, client-id | failed_stream_threads_total (`control.Surface`) |

Expected parallelism and failures exist only where `partition.autoscaling.enabled` is true. Over several
clients take the maximum: only the leader observes every expansion.
"""

import time
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import suppress
from datetime import UTC, datetime
from typing import Any

import structlog
from prometheus_client import CollectorRegistry, Counter, Gauge, Histogram
from prometheus_client.core import CounterMetricFamily, GaugeMetricFamily, Metric
from prometheus_client.registry import Collector

from headwater.agent.events import AgentEvent, AttemptEnded, AttemptFailed, Expanded, log_line
from headwater.agent.state import AgentState, ApplicationState, Outcome, Phase, agent_status
from headwater.control import HEALTHY, Health, Section
from headwater.model.problems import Problem

_LONGEST_ITERATION_SECONDS = 300.0
"""The loop iterates about once a second; several requests without an answer can delay it for minutes."""
_APPLICATION = "application_id"
_REQUEST_SECONDS = (0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1, 2.5, 5, 10, 30)
_CONVERGENCE_SECONDS = (0.1, 0.25, 0.5, 1, 2.5, 5, 10, 30, 60, 300, 900)

_log = structlog.get_logger("agent")


class AgentInstruments:
    """Written by the thread of the loop and read by threads of the endpoint: the state is one frozen value.

    `election_error` returns why this agent cannot take part in the election (`KafkaLeadership.error`),
    `journal_problems` the records of the journal that it has skipped (`KafkaJournal.problems`).
    """

    def __init__(
        self,
        registry: CollectorRegistry,
        client_id: str,
        election_error: Callable[[], str] = lambda: "",
        journal_problems: Callable[[], Sequence[Problem]] = lambda: (),
    ) -> None:
        self._metrics = AgentMetrics(registry, client_id)
        self._election_error = election_error
        self._journal_problems = journal_problems
        skipped = Gauge(
            "headwater_agent_skipped_journal_records",
            "Records of the journal that no agent has written",
            registry=registry,
        )
        skipped.set_function(lambda: len(journal_problems()))
        self._iterated = time.monotonic()
        self._read_at: str | None = None
        self.state = AgentState()
        """The last recorded state."""

    def record_state(self, state: AgentState) -> None:
        """See `ports.Instruments.record_state`."""
        self._iterated = time.monotonic()
        if state.observed_at_ms != self.state.observed_at_ms:
            self._read_at = f"{datetime.now(UTC):%Y-%m-%dT%H:%M:%SZ}"
        self.state = state
        self._metrics.record_state(state)

    def record_event(self, event: AgentEvent) -> None:
        """See `ports.Instruments.record_event`."""
        self._metrics.record_event(event)
        line = log_line(event)
        with suppress(OSError, ValueError):  # standard error was closed: no reason to stop
            getattr(_log, line.level)(line.message, **line.fields)

    def record_request(self, operation: str, seconds: float, *, succeeded: bool) -> None:
        """See `ports.Instruments.record_request`."""
        self._metrics.record_request(operation, seconds, succeeded=succeeded)

    def section(self) -> Section:
        """Return the section `agent` of the endpoint."""
        return Section(name="agent", status=self._status, ready=self._ready, live=self._live)

    def _status(self) -> Mapping[str, Any]:
        return agent_status(self.state, self._read_at, self._election_error(), self._journal_problems())

    def _ready(self) -> Health:
        if problems := (*self.state.read_problems, *self.state.journal_problems):
            return Health(ok=False, reason=problems[0].summary)
        if self.state.observed_at_ms is None:
            return Health(ok=False, reason="The cluster has not been read yet.")
        return HEALTHY

    def _live(self) -> Health:
        if (silent := time.monotonic() - self._iterated) > _LONGEST_ITERATION_SECONDS:
            return Health(ok=False, reason=f"The loop has not iterated for {silent:.0f} s.")
        return HEALTHY


class AgentMetrics(Collector):
    """Gauges are read from the state on each scrape; events are counted when they are recorded."""

    def __init__(self, registry: CollectorRegistry, client_id: str) -> None:
        self._client_id = client_id
        self._state = AgentState()
        self._read_at = 0.0
        registry.register(self)
        self._expanded = Counter(
            "headwater_agent_expanded_topics", "Topics expanded", [_APPLICATION], registry=registry
        )
        self._retries = Counter(
            "headwater_agent_retries",
            "Failed attempts that were retried",
            [_APPLICATION],
            registry=registry,
        )
        self._convergence = Histogram(
            "headwater_agent_convergence_seconds",
            "Time from the first observation of a shortfall to the last expanded topic",
            [_APPLICATION],
            buckets=_CONVERGENCE_SECONDS,
            registry=registry,
        )
        self._requests = Histogram(
            "headwater_agent_admin_request_seconds",
            "Latency of admin requests",
            ["operation"],
            buckets=_REQUEST_SECONDS,
            registry=registry,
        )
        self._failures = Counter(
            "headwater_agent_admin_request_failures",
            "Failed admin requests",
            ["operation"],
            registry=registry,
        )

    def record_state(self, state: AgentState) -> None:
        if state.observed_at_ms != self._state.observed_at_ms:
            self._read_at = time.time()
        self._state = state

    def record_event(self, event: AgentEvent) -> None:
        match event:
            case AttemptEnded():
                expanded = sum(result.outcome is Outcome.EXPANDED for result in event.results)
                self._expanded.labels(event.application).inc(expanded)
            case AttemptFailed():
                self._retries.labels(event.application).inc()
            case Expanded():
                self._convergence.labels(event.application).observe(event.took_ms / 1_000)
            case _:
                pass

    def record_request(self, operation: str, seconds: float, *, succeeded: bool) -> None:
        self._requests.labels(operation).observe(seconds)
        if not succeeded:
            self._failures.labels(operation).inc()

    def collect(self) -> Iterator[Metric]:
        state = self._state
        applications = tuple(state.applications.values())
        enabled = tuple(application for application in applications if application.is_enabled)
        yield from self._parallelism(applications, enabled)
        failures = CounterMetricFamily(
            "num_autoscaling_failures",
            "Expansions given up after partition.autoscaling.timeout.ms (KIP-878)",
            labels=["client_id"],
        )
        if enabled:
            failures.add_metric([self._client_id], state.failures)
        yield failures
        yield _gauge_metric(
            "headwater_agent_leader", "1 on the leader, the agent that expands topics", float(state.is_leader)
        )
        readable = state.observed_at_ms is not None and not state.read_problems
        yield _gauge_metric(
            "headwater_agent_cluster_readable", "1 if the last read of the cluster succeeded", float(readable)
        )
        yield _gauge_metric(
            "headwater_agent_last_reading_timestamp_seconds",
            "Time of the last read of the cluster",
            self._read_at,
        )
        yield from _phase_metrics(applications)

    def _parallelism(
        self, applications: Iterable[ApplicationState], enabled: Iterable[ApplicationState]
    ) -> Iterator[Metric]:
        labels = ["client_id", _APPLICATION, "subtopology_id"]
        current = GaugeMetricFamily(
            "current_subtopology_parallelism",
            "Tasks that the current partitions of all topics of the sub-topology allow (KIP-878)",
            labels=labels,
        )
        expected = GaugeMetricFamily(
            "expected_subtopology_parallelism",
            "Tasks that the partitions of its source topics require (KIP-878)",
            labels=labels,
        )
        for application in applications:
            for part in application.parallelism:
                values = [self._client_id, application.id, str(part.subtopology)]
                current.add_metric(values, part.current)
        for application in enabled:
            for part in application.parallelism:
                values = [self._client_id, application.id, str(part.subtopology)]
                expected.add_metric(values, part.expected)
        yield current
        yield expected


def _phase_metrics(applications: Iterable[ApplicationState]) -> Iterator[Metric]:
    phases = GaugeMetricFamily(
        "headwater_agent_application_phase",
        "1 for the current phase of the application",
        labels=[_APPLICATION, "phase"],
    )
    missing = GaugeMetricFamily(
        "headwater_agent_missing_partitions",
        "Partitions missing on internal and managed topics",
        labels=[_APPLICATION],
    )
    lost = GaugeMetricFamily(
        "headwater_agent_missing_internal_topics",
        "Internal topics that do not exist: not created yet, or lost with their data",
        labels=[_APPLICATION],
    )
    for application in applications:
        lost.add_metric([application.id], application.missing_topics)
        for phase in Phase:
            phases.add_metric([application.id, phase.value], float(application.reported_phase is phase))
        count = sum(each.required - each.partitions for each in application.shortfalls)
        missing.add_metric([application.id], count)
    yield phases
    yield missing
    yield lost


def _gauge_metric(name: str, text: str, value: float) -> Metric:
    return GaugeMetricFamily(name, text, value=value)
