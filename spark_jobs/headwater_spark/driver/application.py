"""One application on Spark: a query for each sub-topology, and the client's state (`KafkaStreams`)."""

import threading
import time
from collections.abc import Iterator, Mapping, Sequence
from functools import partial
from typing import Any

import structlog
from py4j.protocol import Py4JNetworkError  # type: ignore[import-untyped]
from pyspark.sql import SparkSession

from headwater.command_line import spark_ended
from headwater.compiler import StreamsConfig
from headwater.model.compiled import Backend
from headwater.model.problems import Problem, ProblemsError, errors
from headwater.model.topology import TopologyDocument
from headwater_spark.driver.active_client.membership import ActiveClient
from headwater_spark.driver.captured_failures import failure_reason
from headwater_spark.driver.failures import client_failed
from headwater_spark.driver.input.rounds import RepartitionRounds
from headwater_spark.driver.layout import Programs
from headwater_spark.driver.offsets import GroupOffsets, RecordPurger
from headwater_spark.driver.processor_expansion.expansion import ProcessorExpansion
from headwater_spark.driver.processor_expansion.warm_up import SparkWarmUpJobs
from headwater_spark.driver.queries.idle import await_commits, wait_until_idle
from headwater_spark.driver.queries.progress import NO_PROGRESS, ProgressWatch
from headwater_spark.driver.queries.query import SubtopologyQuery, query_failures
from headwater_spark.driver.queries.specs import QueryServices, QuerySpecs
from headwater_spark.driver.queries.stall import UNOBSERVED_SECONDS
from headwater_spark.driver.queries.watched_inputs import create_input_watch, watch_inputs
from headwater_spark.driver.run_settings import RunSettings
from headwater_spark.driver.spark_session.jvm import JvmWatch
from headwater_spark.driver.spark_session.session import is_remote
from headwater_spark.driver.states import ClientState, QueryState
from headwater_spark.driver.threads.settings import may_shut_down_application, stream_threads
from headwater_spark.driver.threads.shutdown_requests import ShutdownRequests, shutdown_requested
from headwater_spark.driver.threads.stream_threads import StreamThreads, configured_client_id
from headwater_spark.driver.threads.uncaught_exceptions import UncaughtExceptions, load_handler
from headwater_spark.driver.topic_watch import ClusterWatch, TopicWatch
from headwater_spark.driver.topics.application_topics import ApplicationTopics
from headwater_spark.driver.topics.topic_check import UnevenExpansion
from headwater_spark.driver.watch_threads import WatchThreads
from headwater_spark.engine.program.settings import purge_interval_ms
from headwater_spark.processor_expansion import ProcessorsStatus
from headwater_spark.spark_internals.jvm import read_jvm_clock, task_slots
from headwater_spark.stream_threads import ThreadMetadata, UncaughtExceptionHandler

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
    ) -> None:
        config = StreamsConfig.of(document.application)
        client = configured_client_id(document.application)
        self.id = document.application.id
        self.problems: tuple[Problem, ...] = ()
        self._stopping = threading.Event()
        self._spark = spark
        self._topics = ApplicationTopics(document, settings.connection, settings.policies)
        self._exactly_once = config.guarantee.is_exactly_once
        self._offsets = GroupOffsets(settings.connection, self.id)
        self._offsets_open = threading.Lock()
        """Held where a thread of the caller reads offsets: their clients must not be closed meanwhile."""
        self._rounds = RepartitionRounds(
            self._offsets.end_offsets, self._offsets.stable_end_offsets, settings.records_at_once
        )
        self.stream_threads = StreamThreads(
            client, stream_threads(document.application), task_slots(spark.sparkContext)
        )
        self._shutdown_requests = (
            ShutdownRequests(settings.connection, self.id, client)
            if may_shut_down_application(document.application)
            else None
        )
        self.handler = handler or load_handler(document.application)
        self._exceptions = UncaughtExceptions(
            application=document.application,
            threads=self.stream_threads,
            restarts=settings.restarts,
            on_shutdown_application=self._shut_down_application,
            handler=self.handler,
        )
        self._exceptions.init(self)
        self._client: ActiveClient | None = None
        if not self._exactly_once:
            checkpoint = None if is_remote(settings.checkpoint) else settings.checkpoint
            self._client = ActiveClient(
                settings.connection, self.id, client, checkpoint, lambda problem: self.stop_with([problem])
            )
        self._renewals = WatchThreads(
            {} if self._client is None else {f"{self.id}-active": self._client.run},
            self._stopping,
            on_failure=self._stop_because_of,
        )
        services = QueryServices(
            application=self.id,
            spark=spark,
            settings=settings,
            offsets=self._offsets,
            rounds=self._rounds,
            threads=self.stream_threads,
            exceptions=self._exceptions,
            exactly_once=self._exactly_once,
            client=self._client,
        )
        self._specs = QuerySpecs(services=services, programs=programs)
        self._queries: dict[str, SubtopologyQuery] = {}
        self._jvm_watch = JvmWatch(ask=partial(read_jvm_clock, spark))
        self._progress_watch = ProgressWatch(
            queries=self._queries,
            # A task may wait for the other inputs before it processes a record.
            limit_seconds=(config.max_poll_interval_ms + max(0, config.max_task_idle_ms)) / 1_000,
            has_executors=lambda: self.stream_threads.has_executors,
            jvm_silence=lambda: self._jvm_watch.silent_seconds,
        )
        layout_changes = threading.Lock()
        self._expansion = ProcessorExpansion(
            topics=self._topics,
            connection=settings.connection,
            programs=programs,
            specs=self._specs,
            queries=self._queries,
            layout_changes=layout_changes,
            on_errors=self.stop_with,
            warm_up_jobs=SparkWarmUpJobs(spark, settings.state_folder / self.id),
        )
        self._input_watch = create_input_watch(settings.connection, self.id, exactly_once=self._exactly_once)
        self._cluster_watch = ClusterWatch(topics=self._topics)
        self._topic_watch = TopicWatch(
            topics=self._topics,
            cluster_watch=self._cluster_watch,
            offsets=self._offsets,
            rounds=self._rounds,
            purger=RecordPurger(settings.connection),
            uneven=UnevenExpansion.of(config, document.application.processors),
            specs=self._specs,
            queries=self._queries,
            progress_watch=self._progress_watch,
            input_watch=self._input_watch,
            on_errors=self.stop_with,
            check_interval_seconds=settings.check_interval_seconds,
            purge_interval_seconds=purge_interval_ms(document.application.config) / 1000,
            layout_changes=layout_changes,
        )
        self._has_remote_checkpoint = is_remote(settings.checkpoint)
        self._polled_at = self._read_to_at = self._requests_read_at = time.monotonic()
        self._state = ClientState.CREATED
        self._state_changed = threading.Condition()
        self._thread = threading.Thread(target=self._run, name=f"{self.id}-client", daemon=True)

    @property
    def state(self) -> ClientState:
        return self._state

    @property
    def queries(self) -> Mapping[str, SubtopologyQuery]:
        return self._queries

    @property
    def starting(self) -> str:
        """What the application does until its queries run; empty then."""
        if self._client is not None and self._client.waits_for:
            return f"waiting until this client ends: {self._client.waits_for}"
        return "starting the queries" if self._state is ClientState.CREATED else ""

    def start(self) -> None:
        """Check the topics, set up the internal ones, wait until this client is active, start the queries.

        Return without queries if a stop is requested before.

        Raises:
            ProblemsError: The topics have errors, or all clients had to stop while this one waited;
                no query was started.
        """
        try:
            self._start()
        except BaseException:
            self._stopping.set()
            if self._client is not None:
                self._renewals.join(_RENEWAL_SECONDS)
                self._client.close()
            if self._shutdown_requests is not None:
                self._shutdown_requests.close()
            raise

    def _start(self) -> None:
        check = self._topics.prepare()
        if self._client is not None:
            self._specs.update(check)
            self._await_shutdown_requests()  # also those that come while this client waits
            if not self._client.acquire(self._specs.source_topics, self._stopping):
                self._end(close_offsets=True)
                return
            self._renewals.start()
            if self._client.has_waited:  # perhaps for days
                self._obey_shutdown_request()
                check = self._topics.prepare()
        if self._expansion.complete_interrupted():
            check = self._topics.prepare()
        self._specs.update(check)
        signals = watch_inputs(self._input_watch, self._spark, self._specs)
        for name in self._specs.layout.queries:
            self._queries[name] = SubtopologyQuery(self._spark, self._specs.spec(name), signals.get(name))
        if self._client is None:
            self._await_shutdown_requests()
        self._expansion.started()
        self._become(ClientState.REBALANCING)
        self._rounds.start()
        for query in self._queries.values():
            query.start()
        self._thread.start()

    def processors(self) -> ProcessorsStatus:
        """Return the number of processors, and what an expansion does (KIP-287)."""
        return self._expansion.status

    def expand_processors(self, processors: int) -> None:
        """Request that processors are added while the application runs, up to this number (KIP-287).

        Return once the request is accepted: `processors` shows the progress. Nothing happens if the
        application has the number, or is being expanded to it.

        Raises:
            ProblemsError: The client is not RUNNING or REBALANCING, or cannot have this number.
        """
        self._expansion.request(processors, self._state)

    def subtopology_status(self) -> Iterator[Mapping[str, Any]]:
        """Yield the status of each sub-topology with a query, as in the JSON of `/status`."""
        layout = self._specs.layout
        progress = self._specs.progress.status()
        for name, query in self._queries.items():
            topics = layout.topics(name)
            yield {
                "id": name,
                "state": query.state.value,
                "backend": (Backend.NATIVE if name in layout.native else Backend.TASKS).value,
                "sources": list(topics),
                "parallelism": layout.parallelism(name),
                "restarts": query.restarts,
                "failure": "" if (failure := query.failure) is None else failure.reason,
                **self._progress_watch.status(name, self._specs.progress),
                **progress.get(name, NO_PROGRESS),
            }

    def add_stream_thread(self) -> str | None:
        """Add a stream thread with the configuration of the others (`KafkaStreams#addStreamThread`).

        Return its name when the next batch can take it; None if the client is not RUNNING or REBALANCING.
        """
        name = self.stream_threads.add(lambda: self._state)
        if name is not None:
            self._become(ClientState.REBALANCING)
        return name

    def remove_stream_thread(self, timeout_seconds: float | None = None) -> str | None:
        """Remove the oldest stream thread between two batches (`KafkaStreams#removeStreamThread`).

        Return its name when its batches have ended; None if no thread is alive, or the client is not RUNNING
        or REBALANCING. Without its last thread, the client stays RUNNING.

        Raises:
            RemovalTimeoutError: A batch has not ended within the timeout. The removal continues.
        """
        return self.stream_threads.remove(lambda: self._state, timeout_seconds)

    @property
    def slots(self) -> int:
        """The number of Spark tasks that run at the same time: more stream threads gain nothing."""
        return self.stream_threads.slots

    def threads(self) -> tuple[ThreadMetadata, ...]:
        """Return the stream threads that are not dead (`KafkaStreams#metadataForLocalThreads`)."""
        return self.stream_threads.metadata()

    @property
    def cluster_problem(self) -> str:
        """Why the cluster cannot be read; empty if it can be, or if the application does not run."""
        return "" if self._stopping.is_set() else self._cluster_watch.problem

    def stall_reason(self) -> str:
        """Return why the application does not progress although there are records to read, else ""."""
        if self._stopping.is_set() or not self._thread.is_alive():
            return ""
        silent = time.monotonic() - self._polled_at
        if silent >= max(self._progress_watch.limit_seconds, UNOBSERVED_SECONDS):
            return f"Spark has not answered for {silent:.0f} s."
        return self._progress_watch.reason(self._specs.progress)

    def stop(self) -> None:
        """Request the stop and return; `wait` waits for it."""
        self._stopping.set()

    def stop_with(self, problems: Sequence[Problem]) -> None:
        """Request the stop because of `problems`, and return."""
        self.problems = tuple(problems)
        for problem in problems:
            _log.error(
                "application stops", problem=problem.code, topic=problem.topic, summary=problem.summary
            )
        self._become(ClientState.PENDING_ERROR)
        self._stopping.set()

    def close(self) -> None:
        """Stop, and wait for the stop. Running batches are completed if Spark's time-out permits."""
        self._stopping.set()
        if self._thread.is_alive():
            self._thread.join()

    def wait_until_stopping(self) -> None:
        """Wait until a stop is requested, or an error stops the application."""
        self._stopping.wait()

    def wait(self, seconds: float | None = None) -> bool:
        """Return whether the application has reached a final state within `seconds`; None = no limit."""
        with self._state_changed:
            return self._state_changed.wait_for(lambda: self._state.is_final, seconds)

    def wait_until_idle(self) -> None:
        """Wait until all records are processed, or the application has reached a final state."""
        with self._input_watch.suspended():
            wait_until_idle(
                self._queries,
                state=lambda: self._state,
                await_commits=self._await_commits,
                is_expanding=lambda: self._expansion.status.is_advancing,
                pause=lambda: self.wait(_POLL_SECONDS),
            )

    def _await_commits(self) -> None:
        if self._exactly_once:
            await_commits(
                self._offsets, self._offsets_open, self._stopping, self._specs.layout.own_partitions()
            )

    def _run(self) -> None:
        watches = WatchThreads(
            {
                f"{self.id}-cluster": self._cluster_watch.run,
                f"{self.id}-jvm": self._jvm_watch.run,
                f"{self.id}-topics": self._topic_watch.run,
                f"{self.id}-processors": self._expansion.run,
                f"{self.id}-input": self._input_watch.run,
            },
            self._stopping,
            on_failure=self._stop_because_of,
        )
        watches.start()
        try:
            self._polled_at = time.monotonic()
            while not self._stopping.wait(_POLL_SECONDS):
                self._poll_queries()
                self._polled_at = time.monotonic()
        except Exception as error:  # noqa: BLE001 - of Spark or its JVM; without this thread nothing continues
            self._stop_because_of(error)
        unended = [*watches.join(_JOIN_SECONDS), *self._renewals.join(_RENEWAL_SECONDS)]
        if unended:
            _log.warning("stop continues without the answers that these threads wait for", threads=unended)
        self._end(close_offsets=not unended)

    def _stop_because_of(self, error: Exception) -> None:
        _log.debug("client failed", application=self.id, exc_info=error)
        if not self._stopping.is_set():
            is_end_of_spark = isinstance(error, Py4JNetworkError | ConnectionError)
            problem = spark_ended if is_end_of_spark else client_failed
            self.stop_with([problem(self.id, failure_reason(error))])

    def _poll_queries(self) -> None:
        now = time.monotonic()
        self.stream_threads.poll()
        if self._has_remote_checkpoint and now - self._read_to_at >= _READ_TO_SECONDS:
            self._read_to_at = now
            for name, query in self._queries.items():
                self._specs.progress.set_read_to(name, query.read_to)
        self._check_shutdown_requests(now)
        states = {query.poll() for query in self._queries.values()}
        if QueryState.FAILED in states:
            self._become(ClientState.PENDING_ERROR)
            self._stopping.set()
        elif states == {QueryState.RUNNING}:
            self._become(ClientState.RUNNING)
        else:
            self._become(ClientState.REBALANCING)

    def _end(self, *, close_offsets: bool) -> None:
        failed = self._state is ClientState.PENDING_ERROR
        if not failed:
            self._become(ClientState.PENDING_SHUTDOWN)
        elif not self.problems:
            failed_queries = query_failures(self.id, self._queries, self._exceptions.last_response)
            self.problems = self._topic_errors() or failed_queries
        self.stream_threads.shut_down()
        try:
            for query in self._queries.values():
                query.stop()
            if close_offsets:
                with self._offsets_open:
                    self._offsets.close()
                if self._client is not None:
                    self._client.close(records_end=not self._cluster_watch.problem)
            if self._shutdown_requests is not None:
                self._shutdown_requests.close()
        except Exception as error:  # noqa: BLE001 - of Spark, which may have ended
            _log.warning("stop failed", application=self.id, reason=failure_reason(error))
        self.stream_threads.close()
        self._become(ClientState.ERROR if failed else ClientState.NOT_RUNNING)

    def _shut_down_application(self) -> None:
        if self._shutdown_requests is not None:
            self._shutdown_requests.send()

    def _await_shutdown_requests(self) -> None:
        if self._shutdown_requests is not None:
            self._shutdown_requests.start(self._specs.source_topics)

    def _obey_shutdown_request(self) -> None:
        """Raise `ProblemsError` if all clients were requested to stop while this one waited."""
        if self._shutdown_requests is not None and (by := self._shutdown_requests.requested_by()):
            raise ProblemsError([shutdown_requested(self.id, by)])

    def _check_shutdown_requests(self, now: float) -> None:
        requests = self._shutdown_requests
        if requests is None or now - self._requests_read_at < _REQUESTS_SECONDS or self.cluster_problem:
            return
        self._requests_read_at = now
        if client := requests.requested_by():
            self.stop_with([shutdown_requested(self.id, client)])

    def _topic_errors(self) -> tuple[Problem, ...]:
        """Return the errors of a new topic check: a query may notice them before the topic watch does."""
        try:
            return tuple(errors(self._topics.check().problems))
        except ProblemsError as error:
            return tuple(error.problems)

    def _become(self, state: ClientState) -> None:
        with self._state_changed:
            if self._state.may_become(state):
                _log.info("state changed", application=self.id, old=self._state.value, new=state.value)
                self._state = state
                self._state_changed.notify_all()
