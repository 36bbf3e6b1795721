"""One run of an application: the checks, the Spark session, the application, and their end."""

import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from functools import cached_property

import attrs
import structlog
from confluent_kafka import KafkaException
from py4j.protocol import Py4JJavaError  # type: ignore[import-untyped]
from pyspark.errors import AnalysisException, PySparkException
from pyspark.sql import SparkSession

from headwater.command_line import GatewayWatch, Termination, spark_ended
from headwater.kafka import KafkaClusterReader
from headwater.model.policies import Policy
from headwater.model.problems import ProblemsError
from headwater.model.topology import TopologyDocument
from headwater.spec.policies import read_policies
from headwater_spark.driver.active_client.membership import ActiveClient
from headwater_spark.driver.application import StreamsApplication
from headwater_spark.driver.application_parts import new_client
from headwater_spark.driver.captured_failures import capture_failure
from headwater_spark.driver.failures import (
    RestartPolicy,
    connector_missing,
    not_started,
    spark_not_started,
    spark_unsupported,
)
from headwater_spark.driver.input.record_sizes import BYTES_AT_ONCE
from headwater_spark.driver.input.sources import RECORDS_AT_ONCE
from headwater_spark.driver.metrics import Instruments, StartingApplication
from headwater_spark.driver.preflight import (
    RunnableDocument,
    check_runnable,
    check_session,
    check_state_folder,
    check_user_classes,
    checkpoint_lock,
    warn_missing_outputs,
    warn_standby_copies,
)
from headwater_spark.driver.queries.progress import Records
from headwater_spark.driver.run.options import RunOptions, folder_of
from headwater_spark.driver.run_settings import RunSettings
from headwater_spark.driver.spark_session.jvm import JvmStart, jvm_end
from headwater_spark.driver.spark_session.session import SessionSettings, ship_packages, start_session
from headwater_spark.driver.states import ClientState
from headwater_spark.driver.threads.uncaught_exceptions import load_handler
from headwater_spark.driver.topics.application_topics import ApplicationTopics
from headwater_spark.spark_internals.jvm import gateway_port, task_slots
from headwater_spark.spark_internals.standalone_master import standalone_application
from headwater_spark.spark_internals.supported import SUPPORTED_VERSIONS, UnsupportedSparkError
from headwater_spark.stream_threads import UncaughtExceptionHandler

_log = structlog.get_logger(__name__)
_POLL_SECONDS = 1.0
_REPORT_SECONDS = 30.0
_PROGRESS_SECONDS = 10.0
_NOTICE_SECONDS = 1.0
"""How much later than its effects the end of the JVM, or a signal, is noticed at most."""


@contextmanager
def wait_reported(
    begin: Callable[[str], None],
    step: str,
    master: str,
    slots: Callable[[], int],
    poll_seconds: float = _POLL_SECONDS,
) -> Iterator[None]:
    """Begin `step`; while the block runs and Spark has no executor, show that the start waits for one.

    `begin` logs a step, and shows it in the status. `slots` returns the number of tasks that the executors
    can run at the same time. Without executors, a warning is logged every half minute.
    """
    ended = threading.Event()

    def watch() -> None:
        is_waiting, since = False, time.monotonic()
        reported_at = since
        while not ended.wait(poll_seconds):
            try:
                has_none = slots() == 0
            except Exception:  # noqa: BLE001 - of the JVM, which may have ended: the start reports that itself
                return
            if ended.is_set():
                return
            if has_none is not is_waiting:
                is_waiting = has_none
                begin(f"waiting for executors of {master}" if has_none else step)
            now = time.monotonic()
            if has_none and now - reported_at >= _REPORT_SECONDS:
                reported_at = now
                _log.warning(
                    "Spark has no executors",
                    master=master,
                    seconds=round(now - since),
                    fix="check that workers run, and that other applications leave cores and memory free",
                )

    begin(step)
    watcher = threading.Thread(target=watch, name="executors", daemon=True)
    watcher.start()
    try:
        yield
    finally:
        ended.set()


@contextmanager
def progress_logged(
    application: str, records: Callable[[], Records], *, report_seconds: float = _PROGRESS_SECONDS
) -> Iterator[None]:
    """Log how many records were processed: every `report_seconds`, and at the end of the block."""
    began, ended = time.monotonic(), threading.Event()

    def log(event: str) -> None:
        found = records()
        _log.info(
            event,
            application=application,
            records_read=found.read,
            records_written=found.written,
            seconds=round(time.monotonic() - began),
        )

    def report() -> None:
        while not ended.wait(report_seconds):
            log("processing records")

    reporter = threading.Thread(target=report, name="progress", daemon=True)
    reporter.start()
    try:
        yield
    finally:
        ended.set()
        reporter.join()
    log("records processed")


@attrs.frozen
class ApplicationRun:
    """One run of an application. `jvm` starts while its document and its topics are checked."""

    options: RunOptions
    document: TopologyDocument
    session: SessionSettings
    jvm: JvmStart
    starting: StartingApplication
    instruments: Instruments
    termination: Termination

    def run(self) -> bool:
        """Check everything before the session, which starts slowly; then run the application."""
        options, document = self.options, self.document
        runnable = check_runnable(document, folder_of(options.file))
        handler = load_handler(document.application)
        if (options.master or "").startswith("local"):
            check_state_folder(options.state_folder(document.application), document.application.id)
        with checkpoint_lock(options.checkpoint_folder, document.application.id) as lock:
            self.starting.begin("checking topics")
            compiled = ApplicationTopics(document, options.connection, self._policies).prepare().compiled
            cluster = KafkaClusterReader(options.connection)
            warn_missing_outputs(runnable.nodes, document.application, cluster)
            warn_standby_copies(document.application)
            client = new_client(document.application, self._run_settings(), lock)
            try:
                client.start_observing(set(compiled.external_sources) - set(compiled.global_topics))
                return self._run_on_spark(runnable, handler, client)
            finally:
                client.close()

    def _run_on_spark(
        self, runnable: RunnableDocument, handler: UncaughtExceptionHandler | None, client: ActiveClient
    ) -> bool:
        self.starting.begin("starting Spark")
        spark = self._started_session()
        check_session(spark, self.document.application.id)
        client.spark = standalone_application(spark)
        with GatewayWatch(gateway_port()) as gateway:
            try:
                context = spark.sparkContext
                step, slots = "checking classes and connector", task_slots(context)
                with wait_reported(self.starting.begin, step, str(context.master), slots):
                    ship_packages(spark)
                    check_user_classes(spark, runnable)
                application = StreamsApplication(
                    spark, self.document, runnable.programs, self._run_settings(), handler, client=client
                )
                gateway.on_end(lambda: _end_with_spark(application, self.termination))
                return self._run_application(application)
            except Exception as error:
                if not gateway.has_ended(_NOTICE_SECONDS):
                    raise
                if self.termination.is_requested():
                    _log.warning("Spark ended while the application stopped")
                    return True
                raise ProblemsError([spark_ended(self.starting.id, jvm_end())]) from error
            finally:
                _stop_session(spark, gateway, self.termination)

    def _run_application(self, application: StreamsApplication) -> bool:
        self.instruments.use(application, application.stream_threads)
        with self.termination.handle_signals(application.stop):
            start_application(application)
            if self.options.until_idle:
                with progress_logged(application.id, application.records):
                    application.wait_until_idle()
            else:
                application.wait_until_stopping()
            with self.termination.limit_time():  # Spark may hang whatever the reason for the stop is
                application.close()
        if application.problems:
            raise ProblemsError(application.problems)
        return application.state is ClientState.NOT_RUNNING

    def _started_session(self) -> SparkSession:
        try:
            self.jvm.wait()
            return start_session(self.session)
        except UnsupportedSparkError as error:
            problem = spark_unsupported(self.starting.id, error.version, SUPPORTED_VERSIONS, error.uses)
            raise ProblemsError([problem]) from None
        except Exception as error:  # of Java, its gateway or the master: all that is known is a text
            raise ProblemsError([spark_not_started(self.starting.id, capture_failure(error))]) from error

    @cached_property
    def _policies(self) -> tuple[Policy, ...]:
        return read_policies(self.options.policy_files)

    def _run_settings(self) -> RunSettings:
        options = self.options
        return RunSettings(
            connection=options.connection,
            checkpoint=options.checkpoint_folder,
            state_folder=options.state_folder(self.document.application),
            records_at_once=options.records_at_once or RECORDS_AT_ONCE,
            bytes_at_once=options.bytes_at_once or BYTES_AT_ONCE,
            restarts=RestartPolicy(options.restarts),
            policies=self._policies,
        )


def _stop_session(spark: SparkSession, gateway: GatewayWatch, termination: Termination) -> None:
    with termination.limit_time():
        try:
            spark.stop()
        except Exception:
            if not gateway.has_ended(_NOTICE_SECONDS):
                raise


def _end_with_spark(application: StreamsApplication, termination: Termination) -> None:
    """Stop the application because of Spark's end, unless a signal has ended both."""
    if not termination.is_requested(_NOTICE_SECONDS):
        application.stop_with([spark_ended(application.id, jvm_end())])
        termination.begin()


def start_application(application: StreamsApplication) -> None:
    """Start an application. Raises `ProblemsError` if Spark or Kafka refuses, or a disk is full."""
    try:
        application.start()
    except AnalysisException as error:
        raise ProblemsError([connector_missing(application.id, capture_failure(error))]) from error
    except (Py4JJavaError, PySparkException, KafkaException) as error:  # such as a full disk
        _log.debug("start failed", application=application.id, exc_info=error)
        raise ProblemsError([not_started(application.id, capture_failure(error))]) from error
