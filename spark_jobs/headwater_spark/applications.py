"""Applications on a Spark session of your own, in a program or a notebook.

    from pyspark.sql import SparkSession
    from headwater_spark.applications import run, session_config

    spark = SparkSession.builder.master("local[4]").config(map=session_config()).getOrCreate()
    with run("orders.yaml", spark, bootstrap_servers="localhost:9092") as application:
        application.wait_until_idle()

The document is a path, a mapping, or a document of `headwater.topology`. The session is not stopped, and its
own settings are not changed. `headwater run` starts a session by itself; it also serves metrics and health,
and ends with Spark's JVM.
"""

from collections.abc import Mapping
from contextlib import ExitStack
from pathlib import Path
from types import TracebackType
from typing import Self

import attrs
from pyspark.sql import SparkSession

from headwater.kafka import KafkaClusterReader
from headwater.kafka.command_line import NamedCluster
from headwater.model.problems import ProblemsError, errors
from headwater.model.topology import TopologyDocument
from headwater.spec import parse_document
from headwater.topology import BuiltDocument
from headwater_spark.driver.application import StreamsApplication
from headwater_spark.driver.application_parts import new_client
from headwater_spark.driver.failures import RestartPolicy
from headwater_spark.driver.preflight import (
    check_runnable,
    check_session,
    check_state_folder,
    check_user_classes,
    checkpoint_lock,
    warn_missing_outputs,
)
from headwater_spark.driver.run.application_run import start_application
from headwater_spark.driver.run.options import RunOptions, folder_of, load_document
from headwater_spark.driver.run_settings import RunSettings
from headwater_spark.driver.spark_session.session import SessionSettings, ship_packages
from headwater_spark.driver.threads.uncaught_exceptions import load_handler
from headwater_spark.driver.topics.application_topics import ApplicationTopics

__all__ = ["RunningStreams", "run", "session_config"]

Document = str | Path | Mapping[str, object] | BuiltDocument


def session_config(**conf: str) -> Mapping[str, str]:
    """Return Spark's settings for a session that `run` uses; `conf` overrides them.

    The session of the application itself always has the runtime's settings of Spark SQL (`spark.sql.`). The
    settings include the jars of Spark's Kafka connector, which are downloaded once.

    Raises:
        ToolchainError: The connector is not installed, and cannot be downloaded.
    """
    from headwater.toolchain import (  # noqa: PLC0415 - needed for this function only
        ensure_spark_jars,
        fetched_spark_jars,
        spark_java_options,
    )

    jars = tuple(map(str, fetched_spark_jars() or ensure_spark_jars()))
    settings = SessionSettings(application="", jars=jars, java_options=spark_java_options(), conf=conf)
    return settings.spark()


@attrs.frozen(eq=False)
class RunningStreams:
    """An application that runs. As a context manager it stops the application at the end."""

    _application: StreamsApplication
    _resources: ExitStack

    @property
    def id(self) -> str:
        return self._application.id

    @property
    def state(self) -> str:
        """Return the state of the client, as of `KafkaStreams`: such as RUNNING, NOT_RUNNING or ERROR."""
        return self._application.state.value

    def wait_until_idle(self) -> None:
        """Wait until all records are processed.

        Raises:
            ProblemsError: The application has stopped because of an error.
        """
        self._application.wait_until_idle()
        self._raise_problems()

    def wait(self, seconds: float | None = None) -> bool:
        """Return whether the application has stopped within `seconds`; None = no limit.

        Raises:
            ProblemsError: It has stopped because of an error.
        """
        has_stopped = self._application.wait(seconds)
        self._raise_problems()
        return has_stopped

    def stop(self) -> None:
        """Stop; running batches are aborted, and repeated at the next start. The session continues.

        Does nothing the second time.
        """
        self._application.close()
        self._resources.close()

    def _raise_problems(self) -> None:
        if self._application.problems:
            raise ProblemsError(self._application.problems)

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.stop()


def run(
    document: Document,
    spark: SparkSession,
    *,
    bootstrap_servers: str | None = None,
    client_properties: str | Path | None = None,
    checkpoint: str | Path | None = None,
    state_dir: str | Path | None = None,
    restarts: int = 10,
) -> RunningStreams:
    """Start the application of a document on a session, and return while it runs.

    Args:
        document: a path, the content of a document, or a document of `headwater.topology`.
        spark: a classic session (not of Spark Connect) with the settings of `session_config`.
        bootstrap_servers: the cluster, `HOST:PORT,...`.
        client_properties: a file with the settings of Kafka clients, as Kafka's own tools read it, instead of
            `bootstrap_servers`. Default of both: the variables of the environment.
        checkpoint: a folder or URL that driver and executors share. Default: in the user's state folder.
        state_dir: the folder of local state on each worker.
        restarts: how many times in a row a failed query is restarted. Failures because no broker answers do
            not count.

    Raises:
        ProblemsError: The document, the topics, the session or the connection prevents a start.
    """
    typed, folder = load_given_document(document)
    options = RunOptions(
        file=folder,
        connection=NamedCluster(
            bootstrap_servers, None if client_properties is None else Path(client_properties)
        ).connection(),
        checkpoint=None if checkpoint is None else str(checkpoint),
        state_dir=None if state_dir is None else Path(state_dir),
        restarts=restarts,
    )
    check_session(spark, typed.application.id)
    runnable = check_runnable(typed, folder)
    handler = load_handler(typed.application)
    state_folder = options.state_folder(typed.application)
    if str(spark.sparkContext.master).startswith("local"):
        check_state_folder(state_folder, typed.application.id)
    with ExitStack() as resources:
        lock = resources.enter_context(checkpoint_lock(options.checkpoint_folder, typed.application.id))
        ApplicationTopics(typed, options.connection, ()).prepare()
        warn_missing_outputs(runnable.nodes, typed.application, KafkaClusterReader(options.connection))
        session = _own_session(spark, options)
        ship_packages(session)
        check_user_classes(session, runnable)
        settings = RunSettings(
            connection=options.connection,
            checkpoint=options.checkpoint_folder,
            state_folder=state_folder,
            restarts=RestartPolicy(options.restarts),
        )
        client = new_client(typed.application, settings, lock)
        application = StreamsApplication(session, typed, runnable.programs, settings, handler, client=client)
        resources.callback(application.close)
        start_application(application)
        return RunningStreams(application, resources.pop_all())


def load_given_document(document: Document) -> tuple[TopologyDocument, Path]:
    """Return the typed document, and the folder that the paths of its schema files are relative to."""
    if isinstance(document, str | Path):
        file = Path(document)
        return load_document(file), folder_of(file)
    if isinstance(document, BuiltDocument):
        return document.checked(), Path.cwd()
    loaded = parse_document(document)
    if wrong := errors(loaded.problems):
        raise ProblemsError(wrong)
    return loaded.documents[0], Path.cwd()


def _own_session(spark: SparkSession, options: RunOptions) -> SparkSession:
    """Return a session of the same Spark with the runtime's settings: the user's session does not change."""
    session = spark.newSession()
    for key, value in options.session("").spark().items():
        if session.conf.isModifiable(key):
            session.conf.set(key, value)
    return session
