"""Start an application with its endpoint and log, from the options of its command line."""

import os
import signal
import socket
import threading
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
from spark_jobs.command_line import JobOptions
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
    ship_packages,
    start_session,
    terminate_children_on_interrupt,
)
from spark_jobs.runtime.driver.sources import RECORDS_AT_ONCE
from spark_jobs.runtime.driver.states import ClientState
from spark_jobs.runtime.driver.topics import ApplicationTopics

_log = structlog.get_logger(__name__)
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
    connection = options.connection
    options.configure_log()
    runnable = load_runnable(options.file)
    access = options.access()
    if access is not None:
        check_free(access)
    if (options.master or "").startswith("local"):
        check_state_folder(_state_folder(options, runnable), runnable.document.application.id)
    with checkpoint_lock(_checkpoint(options), runnable.document.application.id):
        ApplicationTopics(runnable.document, connection).prepare()  # before Spark, which starts slowly
        warn_missing_outputs(runnable.nodes, runnable.document.application, KafkaClusterReader(connection))
        return _on_spark(options, runnable, access)


def _on_spark(options: RunOptions, runnable: RunnableDocument, access: Access | None) -> bool:
    session = SessionSettings(
        application=f"headwater {runnable.document.application.id}",
        master=options.master,
        jars=options.jars,
        local_checkpoints=_is_local(_checkpoint(options)),
        conf=options.conf,
    )
    _log.info("starting Spark", application=runnable.document.application.id, master=options.master)
    spark = _started(session, runnable)
    try:
        ship_packages(spark)
        check_user_classes(spark, runnable)
        application = StreamsApplication(
            spark, runnable.document, runnable.programs, _settings(options, runnable)
        )
        return _run(application, access, options)
    finally:
        spark.stop()


def _started(session: SessionSettings, runnable: RunnableDocument) -> SparkSession:
    try:
        with terminate_children_on_interrupt():
            return start_session(session)
    except Exception as error:  # of Java, its gateway or the master: all that is known is a text
        raise ProblemsError([spark_not_started(runnable.document.application.id, error)]) from error


def _run(application: StreamsApplication, access: Access | None, options: RunOptions) -> bool:
    instruments = Instruments(application)
    with _served(instruments, access), _signals(application), options.watch(instruments):
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


@contextmanager
def _signals(application: StreamsApplication) -> Iterator[None]:
    """Handle signals in this context: SIGTERM and SIGINT stop the application between two batches."""
    if threading.current_thread() is not threading.main_thread():
        yield
        return

    def stop(number: int, _: object) -> None:
        _log.info("stopping", signal=signal.Signals(number).name)
        application.stop()

    before = {number: signal.signal(number, stop) for number in (signal.SIGTERM, signal.SIGINT)}
    try:
        yield
    finally:
        for number, handler in before.items():
            signal.signal(number, handler)


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
    return given if "://" in given else str(Path(given).absolute())


def _is_local(checkpoint: str) -> bool:
    return "://" not in checkpoint
