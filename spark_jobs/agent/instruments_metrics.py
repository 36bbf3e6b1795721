"""The metrics of one agent, in Prometheus' spelling.

Kafka's names with `_` for `-`, tags as labels, and `_total` after what only counts up; `application_id` is
added, because one agent serves several applications:

| KIP | name and tag there | name here |
|---|---|---|
| 878 | current-subtopology-parallelism, subtopology-id | current_subtopology_parallelism |
| 878 | expected-subtopology-parallelism, subtopology-id | expected_subtopology_parallelism |
| 878 | num-autoscaling-failures, client-id | num_autoscaling_failures_total |
| 663 | failed-stream-threads, client-id | failed_stream_threads_total (`control.Surface`) |

Expected parallelism and failures are there only where `partition.autoscaling.enabled` is true. Over several
clients take the maximum: only the leader sees every expansion.
"""

import time
from collections.abc import Iterable, Iterator

from prometheus_client import CollectorRegistry, Counter, Histogram
from prometheus_client.core import CounterMetricFamily, GaugeMetricFamily, Metric
from prometheus_client.registry import Collector

from spark_jobs.agent.events import AgentEvent, AttemptEnded, AttemptFailed, Expanded
from spark_jobs.agent.state import AgentState, ApplicationState, Outcome, Phase

_APPLICATION = "application_id"
_REQUEST_SECONDS = (0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1, 2.5, 5, 10, 30)
_CONVERGENCE_SECONDS = (0.1, 0.25, 0.5, 1, 2.5, 5, 10, 30, 60, 300, 900)


class AgentMetrics:
    """What the state tells is read when somebody asks; what happens is counted when it does."""

    def __init__(self, registry: CollectorRegistry, client_id: str) -> None:
        self._states = _States(client_id)
        registry.register(self._states)
        self._expanded = Counter(
            "headwater_agent_expanded_topics", "Topics expanded", [_APPLICATION], registry=registry
        )
        self._retries = Counter(
            "headwater_agent_retries",
            "Failed attempts, each followed by another",
            [_APPLICATION],
            registry=registry,
        )
        self._convergence = Histogram(
            "headwater_agent_convergence_seconds",
            "From the first sight of a shortfall to the last topic expanded",
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
            "Admin requests failed",
            ["operation"],
            registry=registry,
        )

    def observed(self, state: AgentState) -> None:
        self._states.show(state)

    def told(self, event: AgentEvent) -> None:
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

    def asked(self, operation: str, seconds: float, *, succeeded: bool) -> None:
        self._requests.labels(operation).observe(seconds)
        if not succeeded:
            self._failures.labels(operation).inc()


class _States(Collector):
    def __init__(self, client_id: str) -> None:
        self._client_id = client_id
        self._state = AgentState()
        self._read_at = 0.0

    def show(self, state: AgentState) -> None:
        if state.observed_at_ms != self._state.observed_at_ms:
            self._read_at = time.time()
        self._state = state

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
        yield _gauge("headwater_agent_leader", "1 on the agent that expands", float(state.is_leader))
        readable = state.observed_at_ms is not None and not state.unreadable
        yield _gauge("headwater_agent_cluster_readable", "1 when the last reading succeeded", float(readable))
        yield _gauge(
            "headwater_agent_last_reading_timestamp_seconds", "When the cluster was last read", self._read_at
        )
        yield from _phases(applications)

    def _parallelism(
        self, applications: Iterable[ApplicationState], enabled: Iterable[ApplicationState]
    ) -> Iterator[Metric]:
        labels = ["client_id", _APPLICATION, "subtopology_id"]
        current = GaugeMetricFamily(
            "current_subtopology_parallelism",
            "Tasks that the partitions of all topics of the sub-topology allow at present (KIP-878)",
            labels=labels,
        )
        expected = GaugeMetricFamily(
            "expected_subtopology_parallelism",
            "Tasks that its source topics ask for (KIP-878)",
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


def _phases(applications: Iterable[ApplicationState]) -> Iterator[Metric]:
    phases = GaugeMetricFamily(
        "headwater_agent_application_phase",
        "1 for the phase in which the application is",
        labels=[_APPLICATION, "phase"],
    )
    missing = GaugeMetricFamily(
        "headwater_agent_missing_partitions",
        "Partitions that internal and managed topics lack",
        labels=[_APPLICATION],
    )
    for application in applications:
        for phase in Phase:
            phases.add_metric([application.id, phase.value], float(application.phase is phase))
        lacking = sum(lack.wanted - lack.partitions for lack in application.shortfalls)
        missing.add_metric([application.id], lacking)
    yield phases
    yield missing


def _gauge(name: str, what: str, value: float) -> Metric:
    return GaugeMetricFamily(name, what, value=value)
