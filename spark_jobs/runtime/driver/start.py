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
from spark_jobs.control import Access, ControlServer, Surface, check_free
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
from spark_jobs.runtime.driver.states import ClientState
from spark_jobs.runtime.driver.topics import ApplicationTopics

_log = structlog.get_logger(__name__)
_NOTICE_SECONDS = 1.0
"""How much later than its effects the end of the JVM, or a signal, is noticed at most."""
DEFAULT_FOLDER = Path(os.environ.get("XDG_STATE_HOME") or "~/.local/state") / "headwater"


@attrs.frozen(kw_only=True)
class RunOptions(JobOptions):
    """The options of an application.

    `master` None: as `spark-submit` says. `checkpoint` and `state_dir` None: in the state folder of the user.
    `watch` is a context that is entered with the metrics of the application while it runs.
    """

    file: Path
    master: str | None = None
    jars: tuple[str, ...] = ()
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
    application = runnable.document.application.id
    with Termination(application, options.stop_timeout_ms / 1_000, on_expiry=kill_jvm) as termination:
        return _checked(options, runnable, termination)
    return True  # SIGTERM arrived before Spark ran


def _checked(options: RunOptions, runnable: RunnableDocument, termination: Termination) -> bool:
    """Check everything before Spark, which starts slowly; then run the application."""
    connection, application = options.connection, runnable.document.application
    access = options.access()
    if access is not None:
        check_free(access)
    if (options.master or "").startswith("local"):
        check_state_folder(_state_folder(options, runnable), application.id)
    with checkpoint_lock(_checkpoint(options), application.id):
        ApplicationTopics(runnable.document, connection).prepare()
        warn_missing_outputs(runnable.nodes, application, KafkaClusterReader(connection))
        return _on_spark(options, runnable, access, termination)


def _on_spark(
    options: RunOptions, runnable: RunnableDocument, access: Access | None, termination: Termination
) -> bool:
    session = SessionSettings(
        application=f"headwater {runnable.document.application.id}",
        master=options.master,
        jars=options.jars,
        local_checkpoints=not is_remote(_checkpoint(options)),
        conf=options.conf,
    )
    _log.info("starting Spark", application=runnable.document.application.id, master=options.master)
    spark = _started(session, runnable)
    with GatewayWatch(gateway_port()) as gateway:
        try:
            ship_packages(spark)
            check_user_classes(spark, runnable)
            application = StreamsApplication(
                spark, runnable.document, runnable.programs, _settings(options, runnable)
            )
            gateway.on_end(lambda: _end_with_spark(application, termination))
            return _run(application, access, options, termination)
        except Exception as error:
            if not gateway.has_ended(_NOTICE_SECONDS):
                raise
            if termination.is_requested():
                _log.warning("Spark ended while the application stopped")
                return True
            raise ProblemsError([spark_ended(runnable.document.application.id, jvm_end())]) from error
        finally:
            _stop(spark, gateway, termination)


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


def _started(session: SessionSettings, runnable: RunnableDocument) -> SparkSession:
    try:
        with kill_children_on_interrupt():
            return start_session(session)
    except Exception as error:  # of Java, its gateway or the master: all that is known is a text
        raise ProblemsError([spark_not_started(runnable.document.application.id, error)]) from error


def _run(
    application: StreamsApplication, access: Access | None, options: RunOptions, termination: Termination
) -> bool:
    instruments = Instruments(application)
    with (
        _served(instruments, access),
        termination.handling(application.stop),
        options.watch(instruments),
    ):
        _start(application)
        if options.until_idle:
            application.wait_until_idle()
            application.close()
        while not application.wait(0.5):
            pass
        application.close()
    if application.problems:
        raise ProblemsError(application.problems)
    return application.state is ClientState.NOT_RUNNING


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
