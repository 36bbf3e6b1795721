"""The status, metrics and health of an application, for its HTTP endpoint."""

import os
import socket
from collections.abc import Iterable, Mapping
from typing import Any, Protocol

from prometheus_client.core import CounterMetricFamily, GaugeMetricFamily, Metric

from infra.model.problems import Problem
from spark_jobs.control import Health, Section, Surface
from spark_jobs.runtime.driver.states import ClientState

_COUNTERS = {
    "recordsRead": ("headwater_runtime_records_read", "Records read from source topics."),
    "recordsWritten": ("headwater_runtime_records_written", "Records sent to sinks and changelogs."),
    "recordsDropped": (
        "headwater_runtime_records_dropped",
        "Records dropped by operators (no key, too late) or exception handlers (dropped-records-total).",
    ),
    "recordsRestored": ("headwater_runtime_records_restored", "Records restored from changelogs."),
    "restarts": ("headwater_runtime_query_restarts", "Restarts of the query after failures."),
}
_GAUGES = {
    "recordsPerSecond": (
        "headwater_runtime_records_per_second",
        "Records read per second, over the last 30 seconds.",
    ),
    "secondsWithoutProgress": (
        "headwater_runtime_seconds_without_progress",
        "Seconds in which the query had records to read, and finished no batch and committed no offset.",
    ),
    "stalled": (
        "headwater_runtime_stalled",
        "1 if the query has made no progress for max.poll.interval.ms, else 0.",
    ),
    "lag": ("headwater_runtime_lag_records", "Records of source topics that are not processed yet."),
    "stateBytes": ("headwater_runtime_state_bytes", "Bytes of local state on disk."),
    "parallelism": (
        "headwater_runtime_parallelism",
        "Number of tasks: the partitions of the largest source topic.",
    ),
}


class MonitoredApplication(Protocol):
    """An application that starts (`StartingApplication`) or runs (`StreamsApplication`)."""

    @property
    def id(self) -> str: ...

    @property
    def state(self) -> ClientState: ...

    @property
    def problems(self) -> tuple[Problem, ...]: ...

    @property
    def starting(self) -> str:
        """What the application does until its queries run; empty then."""
        ...

    def subtopology_status(self) -> Iterable[Mapping[str, Any]]: ...

    def stall_reason(self) -> str: ...


class Instruments:
    """Reads the status of an application at each request."""

    def __init__(self, application: MonitoredApplication) -> None:
        self._application = application
        self.client_id = f"{application.id}-{socket.gethostname()}-{os.getpid()}"

    def use(self, application: MonitoredApplication) -> None:
        """Show `application` from now on."""
        self._application = application

    def added_to(self, surface: Surface) -> Surface:
        """Return `surface` with the section `runtime` and the metrics."""
        surface.registry.register(_Collector(self))
        return surface.with_section(
            Section(name="runtime", status=self.status, ready=self.ready, live=self.live)
        )

    def status(self) -> Mapping[str, Any]:
        application = self._application
        return {
            "application": application.id,
            "state": application.state.value,
            "starting": application.starting,
            "problems": [problem.summary for problem in application.problems],
            "subtopologies": list(application.subtopology_status()),
        }

    def ready(self) -> Health:
        state = self._application.state
        if state is ClientState.RUNNING:
            return self._progress()
        return Health(ok=False, reason=f"The application is {state.value}.")

    def live(self) -> Health:
        """Return not OK after an error, or without progress: a restart of the process may help."""
        if self._application.state is ClientState.ERROR:
            return Health(ok=False, reason="The application has stopped with an error.")
        return self._progress()

    def _progress(self) -> Health:
        reason = self._application.stall_reason()
        return Health(ok=not reason, reason=reason)


class _Collector:
    def __init__(self, instruments: Instruments) -> None:
        self._instruments = instruments

    def describe(self) -> Iterable[Metric]:
        return ()

    def collect(self) -> Iterable[Metric]:
        status = self._instruments.status()
        yield _states(status)
        labels = ["application_id", "subtopology_id"]
        for field, (name, text) in _COUNTERS.items():
            counter = CounterMetricFamily(name, text, labels=labels)
            for part in status["subtopologies"]:
                counter.add_metric([status["application"], part["id"]], part[field])
            yield counter
        for field, (name, text) in _GAUGES.items():
            gauge = GaugeMetricFamily(name, text, labels=labels)
            for part in status["subtopologies"]:
                if part[field] is not None:
                    gauge.add_metric([status["application"], part["id"]], part[field])
            yield gauge


def _states(status: Mapping[str, Any]) -> Metric:
    gauge = GaugeMetricFamily(
        "headwater_runtime_client_state",
        "1 for the current state of the client (KafkaStreams.State), 0 for the others.",
        labels=["application_id", "state"],
    )
    for state in ClientState:
        gauge.add_metric([status["application"], state.value], float(state.value == status["state"]))
    return gauge
