"""The Spark session: its settings, its start, and our packages on its executors."""

import atexit
import logging
import os
import shutil
import sys
import tempfile
import zipfile
from collections.abc import Iterator, Mapping
from importlib.util import find_spec
from pathlib import Path

import attrs
from pyspark import SparkConf
from pyspark.sql import SparkSession

from headwater.spec.schema import topology_schemas
from headwater_spark.driver.spark_session.requirements import is_local_master
from headwater_spark.spark_internals.jvm import disable_checksum_files, silence_accumulators, start_jvm
from headwater_spark.spark_internals.supported import check_spark_internals

_HIDDEN = "(?i)secret|password|passwd|token|access[.]?key|jaas|truststore|keystore|ssl[.]key|pem|ca[.]cert"
_LOCAL_CHECKPOINTS = (
    "org.apache.spark.sql.execution.streaming.checkpointing.FileSystemBasedCheckpointFileManager"
)
_PACKAGES = ("headwater", "headwater_spark")
_ARCHIVE = "headwater.zip"
_WORKER_DAEMON = "headwater_spark.spark_internals.worker_daemon"
ROWS_AT_ONCE = 2_000
"""Rows of an Arrow batch. With 1 MiB each, Kafka's default limit for a record, they just fit into 2 GiB."""
_OF_ALL_SESSIONS: Mapping[str, str] = {
    # Avoids a warning: Spark never plans streams adaptively.
    "spark.sql.adaptive.enabled": "false",
    "spark.sql.session.timeZone": "UTC",
    # Of Spark SQL's own shuffles only: tasks are assigned by their partition.
    "spark.sql.shuffle.partitions": "4",
    # A text of a document must not read variables: `${env:NAME}` would be one of the environment.
    "spark.sql.variable.substitute": "false",
    # A batch without data has no effect here: records and ticks advance the time.
    "spark.sql.streaming.noDataMicroBatches.enabled": "false",
    "spark.sql.streaming.numRecentProgressUpdates": "20",
    "spark.sql.streaming.minBatchesToRetain": "10",
    "spark.sql.streaming.metricsEnabled": "true",
    "spark.sql.execution.arrow.maxRecordsPerBatch": str(ROWS_AT_ONCE),
    # With a limit in bytes Spark adds up the column sizes after each row: a third of a row's cost.
    "spark.sql.execution.arrow.maxBytesPerBatch": str(2**31 - 1),
    "spark.sql.execution.arrow.pyspark.fallback.enabled": "false",
    "spark.python.worker.reuse": "true",
    # One batch of a query must not wait for another query's long one.
    "spark.scheduler.mode": "FAIR",
    "spark.task.maxFailures": "2",
    # While a stage is repeated, tasks of its first attempt still run, and workers cannot distinguish
    # the attempts. So the batch fails, and the next one reads what was committed.
    "spark.stage.maxConsecutiveAttempts": "1",
    "spark.redaction.regex": _HIDDEN,
    "spark.sql.redaction.options.regex": _HIDDEN,
    "spark.ui.showConsoleProgress": "false",
    "spark.ui.killEnabled": "false",
    # Spark writes each batch's plan for its web page; the aligned format takes longer to write.
    "spark.sql.ui.explainMode": "simple",
}
_OF_CLUSTERS: Mapping[str, str] = {
    # How long a task waits for a core of its executor. On another one, its state would have to be restored.
    "spark.locality.wait": "30s",
    # Spark would wait as long again for another executor of the same host.
    "spark.locality.wait.node": "0s",
    # An executor is lost when it is silent for so long: `session.timeout.ms` and `heartbeat.interval.ms` of
    # Kafka Streams. Spark's own timeout, two minutes, is checked every minute.
    "spark.storage.blockManagerHeartbeatTimeoutMs": "45s",
    "spark.executor.heartbeatInterval": "3s",
    "spark.network.timeoutInterval": "3s",
    # An executor whose driver does not answer ends after 12 to 15 s, so that the next driver gets its cores.
    # By default, that takes the shorter of 10 minutes and `spark.network.timeout`.
    "spark.executor.heartbeat.maxFailures": "4",
    # A task that reads shuffled rows of a lost host fails soon, and its batch is repeated.
    "spark.shuffle.io.connectionTimeout": "15s",
    "spark.shuffle.io.connectionCreationTimeout": "5s",
    "spark.shuffle.io.maxRetries": "1",
    "spark.shuffle.io.retryWait": "1s",
}
_LOG_SETTINGS = Path(__file__).with_name("log4j2.properties")


@attrs.frozen(kw_only=True)
class SessionSettings:
    """How the session of an application is created.

    `master` None = set by `spark-submit`. `jars` contain Spark's Kafka connector, unless Spark has it.
    `conf` overrides every other setting.
    """

    application: str
    master: str | None = None
    jars: tuple[str, ...] = ()
    local_checkpoints: bool = True
    """Checkpoints are on a disk of this machine: renaming a file there needs no Hadoop shell."""
    java_options: tuple[str, ...] = ()
    """Options of the driver's JVM. Without effect if `spark-submit` has started it."""
    web_ui: bool = False
    """Serve Spark's web UI. It has no access control: everybody who reaches it sees jobs and settings."""
    conf: Mapping[str, str] = attrs.field(factory=dict)

    @property
    def is_local(self) -> bool:
        """Driver and executors are processes of this machine."""
        return self.master is not None and self.master.startswith("local")

    def spark(self) -> dict[str, str]:
        """Return Spark's settings by key."""
        settings = dict(_OF_ALL_SESSIONS)
        if self.local_checkpoints:
            settings["spark.sql.streaming.checkpointFileManagerClass"] = _LOCAL_CHECKPOINTS
        if self.jars:
            settings["spark.jars"] = ",".join(self.jars)
        if self.master is not None:  # otherwise, the user of spark-submit decides
            settings["spark.ui.enabled"] = str(self.web_ui).lower()
        if self.master is None or not is_local_master(self.master):
            settings |= _OF_CLUSTERS
        if self.is_local:
            settings["spark.driver.host"] = "127.0.0.1"
            settings["spark.driver.bindAddress"] = "127.0.0.1"
        if self.master is not None and self.master.startswith("local["):  # our packages are installed here
            settings["spark.python.daemon.module"] = _WORKER_DAEMON
        java_options = list(self.java_options)
        if self.master is not None and "SPARK_CONF_DIR" not in os.environ:
            java_options.append(f"-Dlog4j2.configurationFile={_LOG_SETTINGS.as_uri()}")
        if java_options:
            settings["spark.driver.extraJavaOptions"] = " ".join(f'"{option}"' for option in java_options)
        return settings | dict(self.conf)


def launch_jvm(settings: SessionSettings) -> None:
    """Start the JVM that `start_session` with the same settings uses, and wait until it answers.

    Nothing happens if this process has a JVM. With `spark-submit`, connect to its JVM.
    """
    _prepare_gateway(settings)
    conf = SparkConf().setAll(list(settings.spark().items()))
    if settings.master is not None:
        conf.setMaster(settings.master)
    start_jvm(conf)


def start_session(settings: SessionSettings) -> SparkSession:
    """Return the session of this process; start it with `settings` if there is none.

    Raises:
        UnsupportedSparkError: This version of Spark has other private parts than Headwater uses.
    """
    _prepare_gateway(settings)
    builder = SparkSession.builder.appName(settings.application)
    if settings.master is not None:
        builder = builder.master(settings.master)
    given = SparkConf()  # what spark-submit was given
    is_cluster = settings.master is not None or not is_local_master(given.get("spark.master", "") or "")
    for name, value in settings.spark().items():
        if name not in _OF_CLUSTERS or (is_cluster and not given.contains(name)):
            builder = builder.config(name, value)
    session: SparkSession = builder.getOrCreate()
    check_spark_internals(session)
    silence_accumulators(session.sparkContext)
    session.sparkContext.setLogLevel(settings.conf.get("spark.log.level", "WARN"))
    if settings.local_checkpoints:
        disable_checksum_files(session)
    return session


def ship_packages(spark: SparkSession) -> None:
    """Send our packages to the executors, unless they run in this process.

    The libraries (attrs, confluent-kafka, lmdb, sqlglot, ...) contain compiled code: they must be installed
    where the executors run, or be in `spark.archives`.
    """
    context = spark.sparkContext
    if is_local_master(str(context.master)):
        return
    folder = tempfile.mkdtemp(prefix="headwater-")
    atexit.register(shutil.rmtree, folder, ignore_errors=True)  # executors that start later fetch it, too
    archive = Path(folder, _ARCHIVE)
    write_packages(archive)
    context.addPyFile(str(archive))


def write_packages(archive: Path) -> None:
    """Write our packages to a ZIP file from which Python can import them."""
    with zipfile.ZipFile(archive, "w", zipfile.ZIP_DEFLATED) as packed:
        for file, name in _package_files():
            packed.write(file, name)


def is_remote(checkpoint: str) -> bool:
    """Return whether a checkpoint is at a URL, where only Spark can read it."""
    return "://" in checkpoint


def _prepare_gateway(settings: SessionSettings) -> None:
    """Name the Python of the workers and the address of the web UI, and drop Py4J's log lines.

    Py4J logs the traceback of each exception that it raises, partly as root.
    """
    if settings.is_local:  # Spark binds its web UI to all addresses otherwise, and has no setting for it
        os.environ.setdefault("SPARK_LOCAL_IP", "127.0.0.1")
    os.environ.setdefault("PYSPARK_PYTHON", sys.executable)
    logging.getLogger("py4j").setLevel(logging.CRITICAL)
    logging.getLogger().addFilter(_is_not_from_gateway)


def _is_not_from_gateway(record: logging.LogRecord) -> bool:
    return "py4j" not in record.pathname


def _package_files() -> Iterator[tuple[Path, str]]:
    """Yield each file of our packages with its name in the archive."""
    for package in _PACKAGES:
        spec = find_spec(package)
        for location in (spec.submodule_search_locations or ()) if spec else ():
            root = Path(location)
            for file in sorted(root.rglob("*")):
                if file.is_file() and "__pycache__" not in file.parts:
                    yield file, str(Path(package, file.relative_to(root)))
    schemas = topology_schemas()
    if isinstance(schemas, Path) and schemas.parent.name != "headwater":  # a clone: not in the package
        for file in sorted(schemas.glob("*.json")):
            yield file, str(Path("headwater", schemas.name, file.name))
