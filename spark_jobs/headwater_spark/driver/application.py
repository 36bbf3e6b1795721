"""One application on Spark: a query for each sub-topology, and the client's state (`KafkaStreams`)."""

import threading
import time
from collections.abc import Iterator, Mapping, Sequence
from typing import Any

import structlog
from pyspark.sql import SparkSession

from headwater.compiler import StreamsConfig
from headwater.model.compiled import Backend
from headwater.model.problems import Problem, ProblemsError, errors
from headwater.model.topology import TopologyDocument
from headwater_spark.driver.active_client.membership import ActiveClient
from headwater_spark.driver.application_parts import create_parts, create_watches, new_client
from headwater_spark.driver.captured_failures import failure_reason
from headwater_spark.driver.client_lifecycle import ClientLifecycle
from headwater_spark.driver.layout import Programs
from headwater_spark.driver.queries.idle_queries import await_commits, wait_until_idle, watch_inputs
from headwater_spark.driver.queries.progress import NO_PROGRESS, Progress, Records
from headwater_spark.driver.queries.query import SubtopologyQuery, query_failures
from headwater_spark.driver.queries.stall import UNOBSERVED_SECONDS
from headwater_spark.driver.run_settings import RunSettings
from headwater_spark.driver.spark_session.session import is_remote
from headwater_spark.driver.states import ClientState, QueryState
from headwater_spark.driver.threads.shutdown_requests import shutdown_requested
from headwater_spark.driver.threads.stream_threads import StreamThreads
from headwater_spark.driver.threads.uncaught_exceptions import load_handler
from headwater_spark.spark_internals.input_signals import InputSignals
from headwater_spark.stream_threads import ProcessorsStatus, ThreadMetadata, UncaughtExceptionHandler

_log = structlog.get_logger(__name__)
_POLL_SECONDS = 0.1
_READ_TO_SECONDS = 5.0
_REQUESTS_SECONDS = 1.0
_RENEWAL_SECONDS = 2.0
"""How long a stop waits for the renewal of the record of the active client."""
_JOIN_SECONDS = 10.0
"""How long a stop waits for requests to Kafka, which may take 30 s: less than --stop-timeout-ms."""


class StreamsApplication:
    """Create it, `start` it, `close` it. Any thread may read `state`, `problems` and `subtopology_status`.

    Args:
        programs: Returns the programs of a compiled application; called again when topics change.
        handler: The instance of the class that `uncaught.exception.handler` names; default: a new one.
        client: The membership of this client, which may observe already; default: a new one.

    Raises:
        ProblemsError: The class cannot be loaded.
    """

    def __init__(
        self,
        spark: SparkSession,
        document: TopologyDocument,
        programs: Programs,
        settings: RunSettings,
        handler: UncaughtExceptionHandler | None = None,
        *,
        client: ActiveClient | None = None,
    ) -> None:
        self.id = document.application.id
        self.handler = handler or load_handler(document.application)
        self._lifecycle = ClientLifecycle(self.id)
        self._parts = create_parts(
            spark,
            document,
            programs,
            settings,
            lifecycle=self._lifecycle,
            handler=self.handler,
            client=client or new_client(document.application, settings),
        )
        self._watches = create_watches(self._parts, document.application, settings, self._lifecycle)
        self._is_exactly_once = StreamsConfig.from_application(document.application).guarantee.is_exactly_once
        self._parts.exceptions.init(self)
        self._open_offsets = threading.Lock()
        """Held where a thread of the caller reads offsets: their clients must not be closed meanwhile."""
        self._has_remote_checkpoint = is_remote(settings.checkpoint)
        self._polled_at = self._read_to_at = self._requests_read_at = time.monotonic()
        self._thread = threading.Thread(target=self._run, name=f"{self.id}-client", daemon=True)

    @property
    def state(self) -> ClientState:
        return self._lifecycle.state

    @property
    def problems(self) -> tuple[Problem, ...]:
        """Why the application stopped because of an error; empty if it did not."""
        return self._lifecycle.problems

    @property
    def queries(self) -> Mapping[str, SubtopologyQuery]:
        return self._parts.queries

    @property
    def progress(self) -> Progress:
        return self._parts.specs.progress

    @property
    def stream_threads(self) -> StreamThreads:
        return self._parts.threads

    @property
    def starting(self) -> str:
        """What the application does until its queries run; empty then."""
        if active := self._parts.client.waits_for:
            return f"waiting until this client ends: {active}"
        return "starting the queries" if self.state is ClientState.CREATED else ""

    def start(self) -> None:
        """Check the topics, set up the internal ones, wait until this client is active, start the queries.

        Return without queries if a stop is requested before.

        Raises:
            ProblemsError: The topics have errors, or all clients had to stop while this one waited;
                no query was started.
        """
        try:
            self._start_queries()
        except BaseException:
            self._lifecycle.stopping.set()
            self._parts.renewals.join(_RENEWAL_SECONDS)
            self._parts.releases.join(_RENEWAL_SECONDS)
            self._parts.client.close()
            self._parts.shutdown_requests.close()
            raise

    def _start_queries(self) -> None:
        parts = self._parts
        check = parts.topics.prepare()
        parts.specs.update(check)
        # Before the client waits: all clients may be requested to stop meanwhile.
        parts.shutdown_requests.start(parts.specs.source_topics)
        input_signals = InputSignals(parts.spark)  # compiled while this client waits, or would
        parts.releases.start()
        if not parts.client.acquire(parts.specs.source_topics, self._lifecycle.stopping):
            parts.releases.join(_RENEWAL_SECONDS)
            self._end(close_offsets=True)
            return
        parts.renewals.start()  # at once: the record of the active client soon expires
        if parts.client.has_waited:  # perhaps for days
            self._obey_shutdown_request()
            check = parts.topics.prepare()
        if parts.expansion.complete_interrupted():
            check = parts.topics.prepare()
        parts.specs.update(check)
        signals = watch_inputs(parts.input_watch, input_signals, parts.specs)
        for name in parts.specs.layout.queries:
            parts.queries[name] = SubtopologyQuery(parts.spark, parts.specs.spec(name), signals.get(name))
        parts.expansion.started()
        self._lifecycle.change_state(ClientState.REBALANCING)
        parts.rounds.start()
        for query in parts.queries.values():
            query.start()
        self._thread.start()

    def processors(self) -> ProcessorsStatus:
        """Return the number of processors, and what an expansion does (KIP-287)."""
        return self._parts.expansion.status

    def expand_processors(self, processors: int) -> None:
        """Request that processors are added while the application runs, up to this number (KIP-287).

        Return once the request is accepted: `processors` shows the progress. Nothing happens if the
        application has the number, or is being expanded to it.

        Raises:
            ProblemsError: The client is not RUNNING or REBALANCING, or cannot have this number.
        """
        self._parts.expansion.request(processors, self.state)

    def subtopology_status(self) -> Iterator[Mapping[str, Any]]:
        """Yield the status of each sub-topology with a query, as in the JSON of `/status`."""
        layout = self._parts.specs.layout
        progress = self._parts.specs.progress.status()
        for name, query in self._parts.queries.items():
            topics = layout.topics(name)
            yield {
                "id": name,
                "state": query.state.value,
                "backend": (Backend.NATIVE if name in layout.native else Backend.TASKS).value,
                "sources": list(topics),
                "parallelism": layout.parallelism(name),
                "restarts": query.restarts,
                "failure": "" if (failure := query.failure) is None else failure.reason,
                **self._parts.progress_watch.status(name, self._parts.specs.progress),
                **progress.get(name, NO_PROGRESS),
            }

    def add_stream_thread(self) -> str | None:
        """Add a stream thread with the configuration of the others (`KafkaStreams#addStreamThread`).

        Return its name when the next batch can take it; None if the client is not RUNNING or REBALANCING.
        """
        name = self._parts.threads.add(lambda: self.state)
        if name is not None:
            self._lifecycle.change_state(ClientState.REBALANCING)
        return name

    def remove_stream_thread(self, timeout_seconds: float | None = None) -> str | None:
        """Remove the oldest stream thread between two batches (`KafkaStreams#removeStreamThread`).

        Return its name when its batches have ended; None if no thread is alive, or the client is not RUNNING
        or REBALANCING. Without its last thread, the client stays RUNNING.

        Raises:
            RemovalTimeoutError: A batch has not ended within the timeout. The removal continues.
        """
        return self._parts.threads.remove(lambda: self.state, timeout_seconds)

    @property
    def slots(self) -> int:
        """The number of Spark tasks that run at the same time: more stream threads gain nothing."""
        return self._parts.threads.slots

    def threads(self) -> tuple[ThreadMetadata, ...]:
        """Return the stream threads that are not dead (`KafkaStreams#metadataForLocalThreads`)."""
        return self._parts.threads.metadata()

    @property
    def cluster_problem(self) -> str:
        """Why the cluster cannot be read; empty if it can be, or if the application does not run."""
        return "" if self._lifecycle.stopping.is_set() else self._parts.cluster_watch.problem

    def records(self) -> Records:
        """Return how many records all sub-topologies have read and written since the start."""
        return self._parts.specs.progress.records()

    def stall_reason(self) -> str:
        """Return why the application does not progress although there are records to read, else ""."""
        if self._lifecycle.stopping.is_set() or not self._thread.is_alive():
            return ""
        silent = time.monotonic() - self._polled_at
        if silent >= max(self._parts.progress_watch.limit_seconds, UNOBSERVED_SECONDS):
            return f"Spark has not answered for {silent:.0f} s."
        return self._parts.progress_watch.reason(self._parts.specs.progress)

    def stop(self) -> None:
        """Request the stop and return; `wait` waits for it."""
        self._lifecycle.stopping.set()

    def stop_with(self, problems: Sequence[Problem]) -> None:
        """Request the stop because of `problems`, and return."""
        self._lifecycle.stop_with(problems)

    def close(self) -> None:
        """Stop, and wait for the stop. Running batches are aborted; the next start repeats them."""
        self._lifecycle.stopping.set()
        if self._thread.is_alive():
            self._thread.join()

    def wait_until_stopping(self) -> None:
        """Wait until a stop is requested, or an error stops the application."""
        self._lifecycle.stopping.wait()

    def wait(self, seconds: float | None = None) -> bool:
        """Return whether the application has reached a final state within `seconds`; None = no limit."""
        return self._lifecycle.wait_until_final(seconds)

    def wait_until_idle(self) -> None:
        """Wait until all records are processed, or the application has reached a final state."""
        with self._parts.input_watch.suspend_signals():
            wait_until_idle(
                self._parts.queries,
                state=lambda: self.state,
                await_commits=self._await_commits,
                is_expanding=lambda: self._parts.expansion.status.is_advancing,
                pause=lambda: self.wait(_POLL_SECONDS),
            )

    def _await_commits(self) -> None:
        if self._is_exactly_once:  # queries read what is committed
            await_commits(
                self._parts.offsets,
                self._open_offsets,
                self._lifecycle.stopping,
                self._parts.specs.layout.own_partitions(),
            )

    def _run(self) -> None:
        parts = self._parts
        self._watches.start()
        try:
            self._polled_at = time.monotonic()
            while not self._lifecycle.stopping.wait(_POLL_SECONDS):
                self._poll_queries()
                self._polled_at = time.monotonic()
        except Exception as error:  # noqa: BLE001 - of Spark or its JVM; without this thread nothing continues
            self._lifecycle.stop_because_of(error)
        unended = [*self._watches.join(_JOIN_SECONDS), *parts.renewals.join(_RENEWAL_SECONDS)]
        parts.releases.join(_RENEWAL_SECONDS)  # before the session ends; it uses no client of Kafka
        if unended:
            _log.warning("stop continues without the answers that these threads wait for", threads=unended)
        self._end(close_offsets=not unended)

    def _poll_queries(self) -> None:
        now = time.monotonic()
        self._parts.threads.poll()
        if self._has_remote_checkpoint and now - self._read_to_at >= _READ_TO_SECONDS:
            self._read_to_at = now
            for name, query in self._parts.queries.items():
                self._parts.specs.progress.set_read_to(name, query.read_to)
        self._check_shutdown_requests(now)
        states = set()
        for query in self._parts.queries.values():
            states.add(query.poll())
            self._polled_at = time.monotonic()  # each start may wait for brokers
            if self._lifecycle.stopping.is_set():
                return
        if QueryState.FAILED in states:
            self._lifecycle.fail()
        elif states == {QueryState.RUNNING}:
            self._lifecycle.change_state(ClientState.RUNNING)
        else:
            self._lifecycle.change_state(ClientState.REBALANCING)

    def _end(self, *, close_offsets: bool) -> None:
        parts, lifecycle = self._parts, self._lifecycle
        failed = self.state is ClientState.PENDING_ERROR
        if not failed:
            lifecycle.change_state(ClientState.PENDING_SHUTDOWN)
        elif not self.problems:
            failed_queries = query_failures(self.id, parts.queries, parts.exceptions.last_response)
            lifecycle.problems = self._topic_errors() or failed_queries
        parts.threads.shut_down()
        try:
            for query in parts.queries.values():
                query.stop()
            if close_offsets:
                with self._open_offsets:
                    parts.offsets.close()
                parts.client.close(records_end=not parts.cluster_watch.problem)
            parts.shutdown_requests.close()
        except Exception as error:  # noqa: BLE001 - of Spark, which may have ended
            _log.warning("stop failed", application=self.id, reason=failure_reason(error))
        parts.threads.close()
        lifecycle.change_state(ClientState.ERROR if failed else ClientState.NOT_RUNNING)

    def _obey_shutdown_request(self) -> None:
        """Raise `ProblemsError` if all clients were requested to stop while this one waited."""
        if by := self._parts.shutdown_requests.requested_by():
            raise ProblemsError([shutdown_requested(self.id, by)])

    def _check_shutdown_requests(self, now: float) -> None:
        if now - self._requests_read_at < _REQUESTS_SECONDS or self.cluster_problem:
            return
        self._requests_read_at = now
        if client := self._parts.shutdown_requests.requested_by():
            self.stop_with([shutdown_requested(self.id, client)])

    def _topic_errors(self) -> tuple[Problem, ...]:
        """Return the errors of a new topic check: a query may notice them before the topic watch does."""
        try:
            return tuple(errors(self._parts.topics.check().problems))
        except ProblemsError as error:
            return tuple(error.problems)
