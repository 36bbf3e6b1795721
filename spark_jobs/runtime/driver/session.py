"""The Spark session: its settings, its start, and our packages on its executors."""

import atexit
import logging
import os
import shutil
import signal
import subprocess
import sys
import tempfile
import zipfile
from collections.abc import Iterator, Mapping
from contextlib import contextmanager, suppress
from importlib.util import find_spec
from pathlib import Path

import attrs
from pyspark import SparkContext
from pyspark.sql import SparkSession

_HIDDEN = "(?i)secret|password|passwd|token|access[.]?key|jaas|truststore|keystore|ssl[.]key|pem|ca[.]cert"
_LOCAL_CHECKPOINTS = (
    "org.apache.spark.sql.execution.streaming.checkpointing.FileSystemBasedCheckpointFileManager"
)
_PACKAGES = ("infra", "spark_jobs")
_ARCHIVE = "headwater.zip"
_LOG_SETTINGS = Path(__file__).with_name("log4j2.properties")
_END_SECONDS = 2.0
ROWS_AT_ONCE = 2_000
"""Rows of an Arrow batch. With 1 MiB each, Kafka's default limit for a record, they just fit into 2 GiB."""


@attrs.frozen(kw_only=True)
class SessionSettings:
    """`master` None = set by `spark-submit`. `jars` contain Spark's Kafka connector, unless Spark has it.

    `shuffle_partitions` applies to Spark SQL's own shuffles only; tasks are assigned by their partition.
    `conf` overrides every other setting.
    """

    application: str
    master: str | None = None
    jars: tuple[str, ...] = ()
    shuffle_partitions: int = 4
    local_checkpoints: bool = True
    """Checkpoints are on a disk of this machine: renaming a file there needs no Hadoop shell."""
    java_options: tuple[str, ...] = ()
    """Options of the driver's JVM. Without effect if `spark-submit` has started it."""
    conf: Mapping[str, str] = attrs.field(factory=dict)

    def spark(self) -> dict[str, str]:
        """Return Spark's settings by key."""
        settings = {
            # Avoids a warning: Spark never plans streams adaptively.
            "spark.sql.adaptive.enabled": "false",
            "spark.sql.shuffle.partitions": str(self.shuffle_partitions),
            "spark.sql.session.timeZone": "UTC",
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
            "spark.redaction.regex": _HIDDEN,
            "spark.sql.redaction.options.regex": _HIDDEN,
            "spark.ui.showConsoleProgress": "false",
            # Spark writes each batch's plan for its web page; the aligned format takes longer to write.
            "spark.sql.ui.explainMode": "simple",
        }
        if self.local_checkpoints:
            settings["spark.sql.streaming.checkpointFileManagerClass"] = _LOCAL_CHECKPOINTS
        if self.jars:
            settings["spark.jars"] = ",".join(self.jars)
        if self.master is not None and self.master.startswith("local"):
            settings["spark.driver.host"] = "127.0.0.1"
            settings["spark.driver.bindAddress"] = "127.0.0.1"
        java_options = list(self.java_options)
        if self.master is not None and "SPARK_CONF_DIR" not in os.environ:
            java_options.append(f"-Dlog4j2.configurationFile={_LOG_SETTINGS.as_uri()}")
        if java_options:
            settings["spark.driver.extraJavaOptions"] = " ".join(f'"{option}"' for option in java_options)
        return settings | dict(self.conf)


def start_session(settings: SessionSettings) -> SparkSession:
    """Return the session of this process; start it with `settings` if there is none."""
    os.environ.setdefault("PYSPARK_PYTHON", sys.executable)
    _silence_gateway()
    builder = SparkSession.builder.appName(settings.application)
    if settings.master is not None:
        builder = builder.master(settings.master)
    for name, value in settings.spark().items():
        builder = builder.config(name, value)
    session: SparkSession = builder.getOrCreate()
    _silence_accumulators(session.sparkContext)
    session.sparkContext.setLogLevel(settings.conf.get("spark.log.level", "WARN"))
    if settings.local_checkpoints:
        _disable_checksum_files(session)
    return session


@contextmanager
def kill_children_on_interrupt() -> Iterator[None]:
    """Kill the processes that are started inside the block if a signal interrupts it; works on Linux only.

    PySpark waits for a file from its JVM. When interrupted, it deletes the file's folder. The JVM cannot
    write the file any more, and then never starts to check whether Python is still running.
    """
    before = set(_descendants())
    try:
        yield
    except KeyboardInterrupt:
        for process in _descendants():
            if process not in before:
                with suppress(ProcessLookupError):
                    os.kill(process, signal.SIGKILL)  # a process that hangs ignores SIGTERM
        raise


def gateway_port() -> int:
    """Return the port of the gateway to the JVM of this process's session."""
    gateway = SparkContext._gateway  # noqa: SLF001 - PySpark has no public name for it
    if gateway is None:
        raise RuntimeError("Spark was not started")
    return int(gateway.gateway_parameters.port)


def kill_jvm() -> None:
    """Kill the JVM that this process has started; with `spark-submit`, the JVM has started this process."""
    if (jvm := _jvm()) is not None:
        jvm.kill()


def jvm_end() -> str:
    """Return how the JVM ended, as a phrase."""
    code = None
    if (jvm := _jvm()) is not None:
        with suppress(subprocess.TimeoutExpired):
            code = jvm.wait(_END_SECONDS)
    match code:
        case None:
            return "the connection to its gateway was closed"
        case int() if code < 0:
            return f"killed by {signal.Signals(-code).name}"
        case _:
            return f"exit code {code}"


def ship_packages(spark: SparkSession) -> None:
    """Send our packages to the executors, unless they run in this process.

    The libraries (attrs, confluent-kafka, lmdb, sqlglot, ...) contain compiled code: they must be installed
    where the executors run, or be in `spark.archives`.
    """
    context = spark.sparkContext
    if str(context.master).startswith("local["):
        return
    folder = tempfile.mkdtemp(prefix="headwater-")
    atexit.register(shutil.rmtree, folder, ignore_errors=True)  # executors that start later fetch it, too
    archive = Path(folder, _ARCHIVE)
    with zipfile.ZipFile(archive, "w", zipfile.ZIP_DEFLATED) as packed:
        for file, name in _package_files():
            packed.write(file, name)
    context.addPyFile(str(archive))


def _disable_checksum_files(session: SparkSession) -> None:
    """Make Hadoop write no checksum file next to each local file.

    For every file, checksum files included, it starts a process that sets the permissions. That is the larger
    part of the time that a batch's logs take. A truncated log is not valid JSON, and a checkpoint can be
    deleted without loss.
    """
    context = session.sparkContext
    files = context._jvm.org.apache.hadoop.fs.FileSystem  # type: ignore[union-attr]  # noqa: SLF001 - Hadoop has no setting
    files.getLocal(context._jsc.hadoopConfiguration()).setWriteChecksum(False)  # noqa: SLF001


def _silence_gateway() -> None:
    """Drop Py4J's log lines: it logs the traceback of each exception that it raises, partly as root."""
    logging.getLogger("py4j").setLevel(logging.CRITICAL)
    logging.getLogger().addFilter(_is_not_from_gateway)


def _silence_accumulators(context: SparkContext) -> None:
    """Drop the traceback that PySpark's server for accumulators prints when its JVM dies."""
    server = context._accumulatorServer  # noqa: SLF001 - PySpark has no setting
    server.handle_error = lambda *_: None  # type: ignore[method-assign]


def _is_not_from_gateway(record: logging.LogRecord) -> bool:
    return "py4j" not in record.pathname


def _jvm() -> "subprocess.Popen[bytes] | None":
    return getattr(SparkContext._gateway, "proc", None)  # noqa: SLF001 - PySpark sets it for its callers


def _descendants(process: str = "self") -> list[int]:
    """Return the child processes of a process, and theirs: `spark-submit` is a script that starts Java."""
    children: set[int] = set()
    for file in Path("/proc", process, "task").glob("*/children"):
        with suppress(OSError):
            children.update(map(int, file.read_text(encoding="ascii").split()))
    return [each for child in sorted(children) for each in (child, *_descendants(str(child)))]


def _package_files() -> Iterator[tuple[Path, str]]:
    """Yield each file of our packages with its name in the archive."""
    for package in _PACKAGES:
        spec = find_spec(package)
        for location in (spec.submodule_search_locations or ()) if spec else ():
            root = Path(location)
            for file in sorted(root.rglob("*")):
                if file.is_file() and "__pycache__" not in file.parts:
                    yield file, str(Path(package, file.relative_to(root)))
