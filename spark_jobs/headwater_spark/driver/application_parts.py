"""The parts of an application on Spark, and how they depend on each other."""

import threading
import time
from collections.abc import Mapping
from functools import partial
from pathlib import Path

import attrs
from pyspark.sql import SparkSession

from headwater.compiler import StreamsConfig
from headwater.model.problems import Problem
from headwater.model.topology import Application, TopologyDocument
from headwater_spark.driver.active_client.membership import ActiveClient, LockedFile
from headwater_spark.driver.client_lifecycle import ClientLifecycle, WatchThreads
from headwater_spark.driver.input.rounds import RepartitionRounds
from headwater_spark.driver.input.watch import InputWatch
from headwater_spark.driver.layout import Programs
from headwater_spark.driver.offsets import GroupOffsets, RecordPurger
from headwater_spark.driver.outages import Brokers
from headwater_spark.driver.placement.task_placement import TaskPlacement
from headwater_spark.driver.processor_expansion.expansion import ProcessorExpansion
from headwater_spark.driver.processor_expansion.warm_up import SparkWarmUpJobs
from headwater_spark.driver.queries.idle_queries import create_input_watch
from headwater_spark.driver.queries.known_commits import CommitCheck
from headwater_spark.driver.queries.offset_renewal import OffsetRenewal
from headwater_spark.driver.queries.progress import ProgressWatch
from headwater_spark.driver.queries.query import SubtopologyQuery
from headwater_spark.driver.queries.query_input import QueryServices
from headwater_spark.driver.queries.specs import QuerySpecs
from headwater_spark.driver.run_settings import RunSettings
from headwater_spark.driver.spark_session.jvm import JvmWatch
from headwater_spark.driver.spark_session.requirements import is_local_master
from headwater_spark.driver.threads.settings import (
    handler_name,
    may_shut_down_application,
    stream_threads,
)
from headwater_spark.driver.threads.shutdown_requests import ShutdownRequests
from headwater_spark.driver.threads.stream_threads import StreamThreads, configured_client_id
from headwater_spark.driver.threads.uncaught_exceptions import UncaughtExceptions
from headwater_spark.driver.topic_watch import ClusterWatch, TopicWatch
from headwater_spark.driver.topics.application_topics import ApplicationTopics
from headwater_spark.driver.topics.topic_check import UnevenExpansion
from headwater_spark.engine.program.settings import purge_interval_ms
from headwater_spark.spark_internals.jvm import executor_timeout_seconds, read_jvm_clock, task_slots
from headwater_spark.spark_internals.placement import RowPlacement
from headwater_spark.spark_internals.standalone_master import end_application
from headwater_spark.stream_threads import UncaughtExceptionHandler
from headwater_spark.worker.state_proof import PROOF_SECONDS
from headwater_spark.worker.task_activity import read_activities


@attrs.frozen(kw_only=True, eq=False)
class ApplicationParts:
    """The parts of one application. `queries` is name → query, filled when the application starts."""

    spark: SparkSession
    topics: ApplicationTopics
    offsets: GroupOffsets
    rounds: RepartitionRounds
    threads: StreamThreads
    exceptions: UncaughtExceptions
    shutdown_requests: ShutdownRequests
    client: ActiveClient
    specs: QuerySpecs
    queries: dict[str, SubtopologyQuery]
    layout_changes: threading.Lock
    """Held while the layout changes."""
    expansion: ProcessorExpansion
    jvm_watch: JvmWatch
    progress_watch: ProgressWatch
    cluster_watch: ClusterWatch
    input_watch: InputWatch
    renewals: WatchThreads
    """Renew the record of the active client, also while the application starts."""
    releases: WatchThreads
    """Let Spark's master end the Spark applications of clients that this one has replaced."""


def create_parts(
    spark: SparkSession,
    document: TopologyDocument,
    programs: Programs,
    settings: RunSettings,
    *,
    lifecycle: ClientLifecycle,
    handler: UncaughtExceptionHandler | None,
    client: ActiveClient,
) -> ApplicationParts:
    """Return the parts of an application; nothing runs yet, and no request was sent to Kafka."""
    application = document.application
    topics = ApplicationTopics(document, settings.connection, settings.policies)
    shutdown_requests = ShutdownRequests(
        settings.connection,
        application.id,
        configured_client_id(application),
        is_possible=may_shut_down_application(application),
    )
    services = _create_services(
        spark, application, settings, client=client, shutdown_requests=shutdown_requests, handler=handler
    )
    specs = QuerySpecs(services=services, programs=programs)
    queries: dict[str, SubtopologyQuery] = {}
    jvm_watch = JvmWatch(ask=partial(read_jvm_clock, spark))
    layout_changes = threading.Lock()
    return ApplicationParts(
        spark=spark,
        topics=topics,
        offsets=services.offsets,
        rounds=services.rounds,
        threads=services.threads,
        exceptions=services.exceptions,
        shutdown_requests=shutdown_requests,
        client=client,
        specs=specs,
        queries=queries,
        layout_changes=layout_changes,
        expansion=ProcessorExpansion(
            topics=topics,
            connection=settings.connection,
            programs=programs,
            specs=specs,
            queries=queries,
            layout_changes=layout_changes,
            on_errors=lifecycle.stop_with,
            warm_up_jobs=SparkWarmUpJobs(spark, settings.state_folder / application.id),
        ),
        jvm_watch=jvm_watch,
        progress_watch=_create_progress_watch(
            application, queries, services.threads, jvm_watch, settings.state_folder / application.id
        ),
        cluster_watch=ClusterWatch(
            topics=topics, failures=lambda: sum(query.restarts for query in queries.values())
        ),
        input_watch=create_input_watch(
            settings.connection, application.id, exactly_once=services.exactly_once
        ),
        renewals=_create_renewals(application, client, lifecycle),
        releases=_create_releases(spark, application, client, lifecycle),
    )


def create_watches(
    parts: ApplicationParts, application: Application, settings: RunSettings, lifecycle: ClientLifecycle
) -> WatchThreads:
    """Return the threads that watch the parts while the application runs; none is started."""
    runs = {
        "cluster": parts.cluster_watch.run,
        "jvm": parts.jvm_watch.run,
        "topics": _create_topic_watch(parts, application, settings, lifecycle).run,
        "processors": parts.expansion.run,
        "input": parts.input_watch.run,
        "offsets": OffsetRenewal(parts.queries, lambda: not parts.cluster_watch.problem).run,
    }
    if not StreamsConfig.from_application(application).guarantee.is_exactly_once:
        runs["commits"] = CommitCheck(parts.queries, parts.offsets, parts.client).run
    return WatchThreads({f"{application.id}-{name}": run for name, run in runs.items()}, lifecycle)


def new_client(
    application: Application, settings: RunSettings, lock: LockedFile | None = None
) -> ActiveClient:
    """Return the membership of this client; no request was sent to Kafka. `lock` as in `ActiveClient`."""
    return ActiveClient(
        settings.connection,
        application.id,
        configured_client_id(application),
        lock,
        is_fenced=StreamsConfig.from_application(application).guarantee.is_exactly_once,
    )


def _create_services(
    spark: SparkSession,
    application: Application,
    settings: RunSettings,
    *,
    client: ActiveClient,
    shutdown_requests: ShutdownRequests,
    handler: UncaughtExceptionHandler | None,
) -> QueryServices:
    """Return what the queries share: among others offsets, stream threads, and how exceptions are handled."""
    config = StreamsConfig.from_application(application)
    offsets = GroupOffsets(settings.connection, application.id)
    threads = StreamThreads(
        configured_client_id(application), stream_threads(application), task_slots(spark.sparkContext)
    )
    return QueryServices(
        application=application.id,
        spark=spark,
        settings=settings,
        offsets=offsets,
        rounds=RepartitionRounds(offsets.end_offsets, offsets.stable_end_offsets, settings.records_at_once),
        threads=threads,
        exceptions=UncaughtExceptions(
            application=application,
            threads=threads,
            restarts=settings.restarts,
            on_shutdown_application=shutdown_requests.send,
            handler=handler,
        ),
        brokers=Brokers.of(
            settings.connection,
            settings.restarts,
            partial_seconds=config.task_timeout_ms / 1_000,
            is_awaited=handler_name(application) is None,
        ),
        exactly_once=config.guarantee.is_exactly_once,
        client=client,
        placement=_task_placement(spark),
        proof_seconds=min(PROOF_SECONDS, executor_timeout_seconds(spark) / 2),
    )


def _create_progress_watch(
    application: Application,
    queries: Mapping[str, SubtopologyQuery],
    threads: StreamThreads,
    jvm_watch: JvmWatch,
    state_folder: Path,
) -> ProgressWatch:
    config, started = StreamsConfig.from_application(application), time.time()
    return ProgressWatch(
        queries=queries,
        # A task may wait for the other inputs before it processes a record.
        limit_seconds=(config.max_poll_interval_ms + max(0, config.max_task_idle_ms)) / 1_000,
        has_executors=lambda: threads.has_executors,
        jvm_silence=lambda: jvm_watch.silent_seconds,
        activities=lambda: read_activities(state_folder, time.time(), started),
    )


def _create_topic_watch(
    parts: ApplicationParts, application: Application, settings: RunSettings, lifecycle: ClientLifecycle
) -> TopicWatch:
    return TopicWatch(
        topics=parts.topics,
        cluster_watch=parts.cluster_watch,
        offsets=parts.offsets,
        rounds=parts.rounds,
        purger=RecordPurger(settings.connection),
        uneven=UnevenExpansion.from_config(
            StreamsConfig.from_application(application), application.processors
        ),
        specs=parts.specs,
        queries=parts.queries,
        progress_watch=parts.progress_watch,
        input_watch=parts.input_watch,
        on_errors=lifecycle.stop_with,
        check_interval_seconds=settings.check_interval_seconds,
        purge_interval_seconds=purge_interval_ms(application.config) / 1000,
        layout_changes=parts.layout_changes,
    )


def _create_renewals(
    application: Application, client: ActiveClient, lifecycle: ClientLifecycle
) -> WatchThreads:
    def report(problem: Problem) -> None:
        lifecycle.stop_with([problem])

    return WatchThreads({f"{application.id}-active": partial(client.run, report)}, lifecycle)


def _create_releases(
    spark: SparkSession, application: Application, client: ActiveClient, lifecycle: ClientLifecycle
) -> WatchThreads:
    def release(stopping: threading.Event) -> None:
        # While this client still waits until it is active: executors start meanwhile.
        for lost in iter(client.lost_spark.get, ""):
            end_application(spark, lost, stopping)

    return WatchThreads({f"{application.id}-lost-executors": release}, lifecycle)


def _task_placement(spark: SparkSession) -> TaskPlacement | None:
    if is_local_master(str(spark.sparkContext.master)):
        return None
    rows = RowPlacement(spark)
    return TaskPlacement(rows) if rows.is_possible else None
