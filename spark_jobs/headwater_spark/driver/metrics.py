"""The status, metrics and health of an application, for its HTTP endpoint, also before Spark runs."""

import time
from collections.abc import Callable, Iterable, Mapping
from typing import Any, Protocol

import attrs
import structlog
from prometheus_client.core import CounterMetricFamily, GaugeMetricFamily, Metric

from headwater.control import Health, Section, Surface
from headwater.model.problems import Problem, ProblemsError
from headwater_spark.driver.control_routes import (
    ControlledApplication,
    processors_route,
    processors_status,
    threads_route,
)
from headwater_spark.driver.processor_expansion.problems import not_running
from headwater_spark.driver.states import ClientState, ThreadState
from headwater_spark.driver.threads.stream_threads import StreamThreads, client_id
from headwater_spark.stream_threads import ProcessorsStatus, ThreadMetadata

_log = structlog.get_logger(__name__)
_COUNTERS = {
    "recordsRead": ("headwater_runtime_records_read", "Records read from source topics."),
    "recordsWritten": ("headwater_runtime_records_written", "Records sent to sinks and changelogs."),
    "recordsDropped": (
        "headwater_runtime_records_dropped",
        "Records dropped by operators (no key, too late) or exception handlers (dropped-records-total).",
    ),
    "recordsRestored": ("headwater_runtime_records_restored", "Records restored from changelogs."),
    "tasksOpened": (
        "headwater_runtime_tasks_opened",
        "Tasks opened: at the start, on other executors, after failures.",
    ),
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
    "batchSeconds": (
        "headwater_runtime_batch_seconds",
        "Seconds since the running batch, or the running step of one, has begun; 0 = none runs.",
    ),
    "taskSeconds": (
        "headwater_runtime_task_seconds",
        "Seconds for which the slowest task of this machine has processed its batch; 0 = less than 5.",
    ),
    "lag": ("headwater_runtime_lag_records", "Records of source topics that are not processed yet."),
    "stateBytes": ("headwater_runtime_state_bytes", "Bytes of local state on disk."),
    "parallelism": (
        "headwater_runtime_parallelism",
        "Number of tasks: the partitions of the largest source topic.",
    ),
}


class MonitoredApplication(ControlledApplication, Protocol):
    """An application that starts (`StartingApplication`) or runs (`StreamsApplication`)."""

    @property
    def problems(self) -> tuple[Problem, ...]: ...

    @property
    def starting(self) -> str:
        """What the application does until its queries run; empty then."""
        ...

    @property
    def cluster_problem(self) -> str:
        """Why the cluster cannot be read; empty if it can be."""
        ...

    def subtopology_status(self) -> Iterable[Mapping[str, Any]]: ...

    def stall_reason(self) -> str: ...


class Instruments:
    """Reads the status of an application at each request."""

    def __init__(self, application: MonitoredApplication, client: str | None = None) -> None:
        self._application = application
        self._count_failed_thread: Callable[[], None] = lambda: None
        self.client_id = client or client_id(application.id)

    def use(self, application: MonitoredApplication, threads: StreamThreads) -> None:
        """Show `application` from now on, and count its stream threads that fail."""
        self._application = application
        threads.on_failed = self._count_failed_thread

    def added_to(self, surface: Surface) -> Surface:
        """Return `surface` with the section `runtime`, the metrics, and control of threads and processors."""
        surface.registry.register(_Collector(self))
        self._count_failed_thread = surface.failed_stream_threads.inc
        section = Section(name="runtime", status=self.status, ready=self.ready, live=self.live)
        return (
            surface.with_section(section)
            .with_route(threads_route(lambda: self._application))
            .with_route(processors_route(lambda: self._application))
        )

    def status(self) -> Mapping[str, Any]:
        application = self._application
        return {
            "application": application.id,
            "state": application.state.value,
            "starting": application.starting,
            "problems": [problem.summary for problem in application.problems],
            "clusterReadable": not (cluster_problem := application.cluster_problem),
            "clusterProblem": cluster_problem,
            "subtopologies": list(application.subtopology_status()),
            "threads": [attrs.asdict(thread) for thread in application.threads()],
            "slots": application.slots,
            "processors": processors_status(application.processors()),
        }

    def ready(self) -> Health:
        """Return not OK while no broker answers, the client does not run, or there is no progress.

        A query that fails because no broker answers changes the state, too: then the brokers are the reason.
        """
        application = self._application
        if problem := application.cluster_problem:
            return Health(ok=False, reason=f"The cluster cannot be read: {problem}")
        if application.state is not ClientState.RUNNING:
            return Health(ok=False, reason=f"The application is {application.state.value}.")
        return self._progress_health()

    def live(self) -> Health:
        """Return not OK after an error, or without progress: a restart of the process may help."""
        if self._application.state is ClientState.ERROR:
            return Health(ok=False, reason="The application has stopped with an error.")
        return self._progress_health()

    def _progress_health(self) -> Health:
        reason = self._application.stall_reason()
        return Health(ok=not reason, reason=reason)


class _Collector:
    def __init__(self, instruments: Instruments) -> None:
        self._instruments = instruments

    def describe(self) -> Iterable[Metric]:
        return ()

    def collect(self) -> Iterable[Metric]:
        status = self._instruments.status()
        yield _state_metric(status)
        yield _cluster_metric(status)
        yield _alive_threads(status, self._instruments.client_id)
        yield from _processor_metrics(status["application"], status["processors"])
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


def _cluster_metric(status: Mapping[str, Any]) -> Metric:
    gauge = GaugeMetricFamily(
        "headwater_runtime_cluster_readable",
        "1 if the last read of the cluster succeeded, 0 if no broker answered.",
        labels=["application_id"],
    )
    gauge.add_metric([status["application"]], float(status["clusterReadable"]))
    return gauge


def _alive_threads(status: Mapping[str, Any], client: str) -> Metric:
    gauge = GaugeMetricFamily(
        "alive_stream_threads", "Stream threads that are alive (KIP-663).", labels=["client_id"]
    )
    alive = [thread for thread in status["threads"] if thread["state"] != ThreadState.PENDING_SHUTDOWN]
    gauge.add_metric([client], len(alive))
    return gauge


def _processor_metrics(application: str, status: Mapping[str, Any]) -> Iterable[Metric]:
    """Yield the numbers of processors, and what an expansion has not read yet.

    An application without a number of processors has no samples.
    """
    present, target = status["processors"], status["target"]
    labels = ["application_id"]
    processors = GaugeMetricFamily(
        "headwater_runtime_processors", "Processors of each sub-topology with state (KIP-287).", labels=labels
    )
    wanted = GaugeMetricFamily(
        "headwater_runtime_processors_target",
        "Processors after the expansion that runs; without one, the present number.",
        labels=labels,
    )
    remaining = GaugeMetricFamily(
        "headwater_runtime_expansion_remaining_records",
        "Records of changelog topics that the expansion of processors has not read yet, by its phase.",
        labels=[*labels, "phase"],
    )
    if present is not None:
        processors.add_metric([application], present)
        wanted.add_metric([application], target or present)
    if target is not None:
        remaining.add_metric([application, status["phase"]], status["remaining"])
    yield from (processors, wanted, remaining)


def _state_metric(status: Mapping[str, Any]) -> Metric:
    gauge = GaugeMetricFamily(
        "headwater_runtime_client_state",
        "1 for the current state of the client (KafkaStreams.State), 0 for the others.",
        labels=["application_id", "state"],
    )
    for state in ClientState:
        gauge.add_metric([status["application"], state.value], float(state.value == status["state"]))
    return gauge


class StartingApplication:
    """An application before Spark runs: it says which step takes how long.

    One thread calls `begin`, any thread reads the status; `StreamsApplication` replaces it.
    """

    state = ClientState.CREATED
    problems: tuple[Problem, ...] = ()
    cluster_problem = ""
    """A cluster that cannot be read ends the start with a problem."""
    slots = 0

    def __init__(self, application: str) -> None:
        self.id = application
        self._step, self._since = "starting", time.monotonic()

    def begin(self, step: str) -> None:
        """Log a step, which takes seconds, and show it in the status."""
        _log.info(step, application=self.id)
        self._step, self._since = step, time.monotonic()

    @property
    def starting(self) -> str:
        return f"{self._step}, for {time.monotonic() - self._since:.0f} s"

    def subtopology_status(self) -> Iterable[Mapping[str, Any]]:
        return ()

    def stall_reason(self) -> str:
        return ""

    def threads(self) -> tuple[ThreadMetadata, ...]:
        """Return no stream thread: they are created with the queries."""
        return ()

    def add_stream_thread(self) -> str | None:
        """Return None: the state is CREATED."""
        return None

    def remove_stream_thread(self, timeout_seconds: float | None = None) -> str | None:
        """Return None: the state is CREATED."""
        del timeout_seconds
        return None

    def processors(self) -> ProcessorsStatus:
        """Return no number of processors: it is read when the topics are checked."""
        return ProcessorsStatus(None)

    def expand_processors(self, processors: int) -> None:
        """Raise `ProblemsError`: the state is CREATED."""
        del processors
        raise ProblemsError([not_running(self.id, self.state)])
