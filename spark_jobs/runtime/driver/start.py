"""Start an application with its endpoint and log, from the options of its command line."""

import os
import socket
from collections.abc import Callable, Iterator, Mapping
from contextlib import AbstractContextManager, contextmanager, nullcontext
from importlib.metadata import version
from pathlib import Path

import attrs
import structlog
from pyspark.errors import AnalysisException
from pyspark.sql import SparkSession

from infra.model.problems import ProblemsError
from infra.observe import KafkaClusterReader
from spark_jobs.command_line import GatewayWatch, JobOptions, Termination, spark_ended
from spark_jobs.control import Access, ControlServer, Surface
from spark_jobs.runtime.driver.application import StreamsApplication
from spark_jobs.runtime.driver.failures import RestartPolicy, connector_missing, spark_not_started
from spark_jobs.runtime.driver.metrics import Instruments
from spark_jobs.runtime.driver.preflight import (
    RunnableDocument,
    check_state_folder,
    check_user_classes,
    checkpoint_lock,
    load_runnable,
    warn_missing_outputs,
)
from spark_jobs.runtime.driver.run_settings import RunSettings
from spark_jobs.runtime.driver.session import (
    SessionSettings,
    gateway_port,
    jvm_end,
    kill_children_on_interrupt,
    kill_jvm,
    ship_packages,
    start_session,
)
from spark_jobs.runtime.driver.sources import RECORDS_AT_ONCE, is_remote
from spark_jobs.runtime.driver.starting import StartingApplication
from spark_jobs.runtime.driver.states import ClientState
from spark_jobs.runtime.driver.stream_threads import configured_client_id
from spark_jobs.runtime.driver.topics import ApplicationTopics
from spark_jobs.runtime.driver.uncaught_exceptions import load_handler
from spark_jobs.stream_threads import UncaughtExceptionHandler

_log = structlog.get_logger(__name__)
_NOTICE_SECONDS = 1.0
"""How much later than its effects the end of the JVM, or a signal, is noticed at most."""
DEFAULT_FOLDER = Path(os.environ.get("XDG_STATE_HOME") or "~/.local/state") / "headwater"


@attrs.frozen(kw_only=True)
class RunOptions(JobOptions):
    """The options of an application.

    `master` None: as `spark-submit` says. `checkpoint` and `state_dir` None: in the state folder of the user.
    `java_options` are those of the driver's JVM. `watch` is a context in which the application starts and
    runs; it gets the metrics.
    """

    file: Path
    master: str | None = None
    jars: tuple[str, ...] = ()
    java_options: tuple[str, ...] = ()
    conf: Mapping[str, str] = attrs.field(factory=dict)
    checkpoint: str | None = None
    state_dir: Path | None = None
    records_at_once: int = RECORDS_AT_ONCE
    restarts: int = 10
    until_idle: bool = False
    watch: Callable[[Instruments], AbstractContextManager[object]] = attrs.field(
        default=lambda _: nullcontext()
    )


def start(options: RunOptions) -> bool:
    """Run an application until it is stopped; return whether it ended without an error.

    Raises `ProblemsError` if it cannot start, or stopped because of an error.
    """
    options.configure_log()
    runnable = load_runnable(options.file)
    starting = StartingApplication(runnable.document.application.id)
    instruments = Instruments(starting, configured_client_id(runnable.document.application))
    with (
        Termination(starting.id, options.stop_timeout_ms / 1_000, on_expiry=kill_jvm) as termination,
        _served(instruments, options.access()),  # at once: another process may use the port
        options.watch(instruments),
    ):
        return _Start(options, runnable, starting, instruments, termination).run()
    return True  # SIGTERM arrived before Spark ran


@attrs.frozen
class _Start:
    options: RunOptions
    runnable: RunnableDocument
    starting: StartingApplication
    instruments: Instruments
    termination: Termination

    def run(self) -> bool:
        """Check everything before Spark, which starts slowly; then run the application."""
        options, document = self.options, self.runnable.document
        handler = load_handler(document.application)
        if (options.master or "").startswith("local"):
            check_state_folder(_state_folder(options, self.runnable), document.application.id)
        with checkpoint_lock(_checkpoint(options), document.application.id):
            self.starting.begin("checking topics")
            ApplicationTopics(document, options.connection).prepare()
            cluster = KafkaClusterReader(options.connection)
            warn_missing_outputs(self.runnable.nodes, document.application, cluster)
            return self._run_on_spark(handler)

    def _run_on_spark(self, handler: UncaughtExceptionHandler | None) -> bool:
        application_id, options = self.starting.id, self.options
        self.starting.begin("starting Spark")
        spark = _started(_session(options, application_id), application_id)
        with GatewayWatch(gateway_port()) as gateway:
            try:
                self.starting.begin("checking classes and connector")
                ship_packages(spark)
                check_user_classes(spark, self.runnable)
                application = StreamsApplication(
                    spark,
                    self.runnable.document,
                    self.runnable.programs,
                    _settings(options, self.runnable),
                    handler,
                )
                gateway.on_end(lambda: _end_with_spark(application, self.termination))
                return self._run_application(application)
            except Exception as error:
                if not gateway.has_ended(_NOTICE_SECONDS):
                    raise
                if self.termination.is_requested():
                    _log.warning("Spark ended while the application stopped")
                    return True
                raise ProblemsError([spark_ended(application_id, jvm_end())]) from error
            finally:
                _stop(spark, gateway, self.termination)

    def _run_application(self, application: StreamsApplication) -> bool:
        self.instruments.use(application, application.stream_threads)
        with self.termination.handling(application.stop):
            _start(application)
            if self.options.until_idle:
                application.wait_until_idle()
            else:
                application.wait_until_stopping()
            with self.termination.limited():  # Spark may hang whatever the reason for the stop is
                application.close()
        if application.problems:
            raise ProblemsError(application.problems)
        return application.state is ClientState.NOT_RUNNING


def _stop(spark: SparkSession, gateway: GatewayWatch, termination: Termination) -> None:
    with termination.limited():
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


def _session(options: RunOptions, application: str) -> SessionSettings:
    return SessionSettings(
        application=f"headwater {application}",
        master=options.master,
        jars=options.jars,
        local_checkpoints=not is_remote(_checkpoint(options)),
        java_options=options.java_options,
        conf=options.conf,
    )


def _started(session: SessionSettings, application: str) -> SparkSession:
    try:
        with kill_children_on_interrupt():
            return start_session(session)
    except Exception as error:  # of Java, its gateway or the master: all that is known is a text
        raise ProblemsError([spark_not_started(application, error)]) from error


def _start(application: StreamsApplication) -> None:
    try:
        application.start()
    except AnalysisException as error:
        raise ProblemsError([connector_missing(application.id, error)]) from error


@contextmanager
def _served(instruments: Instruments, access: Access | None) -> Iterator[None]:
    if access is None:
        yield
        return
    surface = Surface.of(instruments.client_id, host=socket.gethostname(), headwater=version("headwater"))
    with ControlServer(instruments.added_to(surface), access) as server:
        _log.info("endpoint started", url=server.url)
        yield


def _settings(options: RunOptions, runnable: RunnableDocument) -> RunSettings:
    return RunSettings(
        connection=options.connection,
        checkpoint=_checkpoint(options),
        state_folder=_state_folder(options, runnable),
        records_at_once=options.records_at_once,
        restarts=RestartPolicy(options.restarts),
    )


def _state_folder(options: RunOptions, runnable: RunnableDocument) -> Path:
    said = options.state_dir or runnable.document.application.config.get("state.dir")
    return Path(said or DEFAULT_FOLDER.expanduser() / "state").absolute()


def _checkpoint(options: RunOptions) -> str:
    given = options.checkpoint or str(DEFAULT_FOLDER.expanduser() / "checkpoints")
    return given if is_remote(given) else str(Path(given).absolute())
