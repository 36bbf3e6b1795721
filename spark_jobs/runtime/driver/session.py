"""The Spark session: the settings that decide latency, and those that keep secrets out of sight."""

import os
import sys
from collections.abc import Mapping
from pathlib import Path

import attrs
from pyspark.sql import SparkSession

_HIDDEN = "(?i)secret|password|passwd|token|access[.]?key|jaas|truststore|keystore|ssl[.]key|pem|ca[.]cert"
_LOCAL_CHECKPOINTS = (
    "org.apache.spark.sql.execution.streaming.checkpointing.FileSystemBasedCheckpointFileManager"
)
_LOG_SETTINGS = Path(__file__).with_name("log4j2.properties")
ROWS_AT_ONCE = 2_000
"""Rows of an Arrow batch: of 1 MiB each, Kafka's limit unless a topic has its own, they just fit."""


@attrs.frozen(kw_only=True)
class SessionSettings:
    """`master` None leaves it to `spark-submit`. `jars` hold Spark's Kafka connector, if Spark lacks it.

    `shuffle_partitions` is for native aggregations only; tasks are placed by their partition.
    `conf` has the last word.
    """

    application: str
    master: str | None = None
    jars: tuple[str, ...] = ()
    shuffle_partitions: int = 4
    local_checkpoints: bool = True
    """The checkpoints lie on a disk of this machine: renaming a file there needs no Hadoop shell."""
    conf: Mapping[str, str] = attrs.field(factory=dict)

    def spark(self) -> dict[str, str]:
        """Return Spark's settings."""
        settings = {
            # The answer to a warning: streams are never planned adaptively.
            "spark.sql.adaptive.enabled": "false",
            "spark.sql.shuffle.partitions": str(self.shuffle_partitions),
            "spark.sql.session.timeZone": "UTC",
            # A batch without data does nothing here: time is told by records and by ticks.
            "spark.sql.streaming.noDataMicroBatches.enabled": "false",
            "spark.sql.streaming.numRecentProgressUpdates": "20",
            "spark.sql.streaming.minBatchesToRetain": "10",
            "spark.sql.streaming.metricsEnabled": "true",
            "spark.sql.execution.arrow.maxRecordsPerBatch": str(ROWS_AT_ONCE),
            # With a limit of bytes Spark adds up the columns' sizes after each row: a third of a row's cost.
            "spark.sql.execution.arrow.maxBytesPerBatch": str(2**31 - 1),
            "spark.sql.execution.arrow.pyspark.fallback.enabled": "false",
            "spark.python.worker.reuse": "true",
            # One batch of a query must not wait for another query's long one.
            "spark.scheduler.mode": "FAIR",
            "spark.task.maxFailures": "2",
            "spark.redaction.regex": _HIDDEN,
            "spark.sql.redaction.options.regex": _HIDDEN,
            "spark.ui.showConsoleProgress": "false",
            # What Spark's page shows of a plan is written with each batch: aligned, it takes longer to write.
            "spark.sql.ui.explainMode": "simple",
        }
        if self.local_checkpoints:
            settings["spark.sql.streaming.checkpointFileManagerClass"] = _LOCAL_CHECKPOINTS
        if self.jars:
            settings["spark.jars"] = ",".join(self.jars)
        if self.master is not None and self.master.startswith("local"):
            settings["spark.driver.host"] = "127.0.0.1"
            settings["spark.driver.bindAddress"] = "127.0.0.1"
        if self.master is not None and "SPARK_CONF_DIR" not in os.environ:
            settings["spark.driver.extraJavaOptions"] = (
                f'"-Dlog4j2.configurationFile={_LOG_SETTINGS.as_uri()}"'
            )
        return settings | dict(self.conf)


def start_session(settings: SessionSettings) -> SparkSession:
    """Return the session of this process, started with `settings` unless there is one already."""
    os.environ.setdefault("PYSPARK_PYTHON", sys.executable)
    builder = SparkSession.builder.appName(settings.application)
    if settings.master is not None:
        builder = builder.master(settings.master)
    for name, value in settings.spark().items():
        builder = builder.config(name, value)
    session: SparkSession = builder.getOrCreate()
    session.sparkContext.setLogLevel(settings.conf.get("spark.log.level", "WARN"))
    if settings.local_checkpoints:
        _leave_out_checksums(session)
    return session


def _leave_out_checksums(session: SparkSession) -> None:
    """Have Hadoop write no file of checksums beside each local file.

    For every file, these too, it starts a process that sets the permissions: the larger part of what the logs
    of a batch take. A torn log is not JSON, and a checkpoint can be thrown away.
    """
    context = session.sparkContext
    files = context._jvm.org.apache.hadoop.fs.FileSystem  # type: ignore[union-attr]  # noqa: SLF001 - Hadoop has no setting
    files.getLocal(context._jsc.hadoopConfiguration()).setWriteChecksum(False)  # noqa: SLF001
