"""The JVM of Spark's driver: how it starts, whether it answers, what it can run, and its files.

PySpark starts the JVM and keeps the gateway to it, but has no public name for either, nor for Java objects.
"""

from collections.abc import Callable
from subprocess import Popen
from typing import Any

from pyspark import SparkConf, SparkContext
from pyspark.java_gateway import launch_gateway
from pyspark.sql import SparkSession


def start_jvm(conf: SparkConf) -> None:
    """Start the JVM that sessions of this process will use, and wait until it answers.

    Nothing happens if there is one. With `spark-submit`, connect to its JVM. PySpark itself starts the JVM
    when it creates a session, too late to import and check meanwhile; it still does so without this method.

    The JVM has a session of its own: a signal to the process group of this process, as from a terminal, a
    shell or a supervisor, would end it before the application has stopped. It ends when its standard input
    is closed, which this process holds.
    """
    if (start := getattr(SparkContext, "_ensure_initialized", None)) is None:
        return
    if SparkContext._gateway is None:  # noqa: SLF001
        gateway = launch_gateway(conf, {"start_new_session": True})  # type: ignore[no-untyped-call]
        start(gateway=gateway, conf=conf)
    else:
        start(conf=conf)


def gateway_port() -> int:
    """Return the port of the gateway to the JVM of this process."""
    gateway = SparkContext._gateway  # noqa: SLF001
    if gateway is None:
        raise RuntimeError("Spark was not started")
    return int(gateway.gateway_parameters.port)


def jvm_process() -> Popen[bytes] | None:
    """Return the JVM that this process has started; None with `spark-submit`, whose JVM has started us."""
    return getattr(SparkContext._gateway, "proc", None)  # noqa: SLF001


def java_gateway(spark: SparkSession) -> Any:  # noqa: ANN401 - py4j has no types
    """Return the gateway to Java's classes; `gateway.jvm` names their packages."""
    gateway = spark.sparkContext._gateway  # noqa: SLF001
    if gateway is None:
        raise RuntimeError("Spark was not started")
    return gateway


def read_jvm_clock(spark: SparkSession) -> int:
    """Return the clock of the JVM in milliseconds: a request that needs nothing of Spark."""
    return int(java_gateway(spark).jvm.java.lang.System.currentTimeMillis())


def task_slots(context: SparkContext) -> Callable[[], int]:
    """Return a function that returns how many Spark tasks can run at the same time; it calls the JVM.

    This is the number of the cores of all executors, divided by `spark.task.cpus`; 0 without executors.
    `defaultParallelism` is not the same: it is at least 2, and may be configured.
    """
    scala = context._jsc.sc()  # noqa: SLF001
    profile = scala.resourceProfileManager().defaultResourceProfile()
    return lambda: int(scala.maxNumConcurrentTasks(profile))


def executor_timeout_seconds(spark: SparkSession) -> float:
    """Return how long an executor may be silent until Spark gives its tasks to others."""
    conf = spark.sparkContext._jsc.sc().conf()  # noqa: SLF001 - PySpark's own has no units
    network = conf.getTimeAsSeconds("spark.network.timeout", "120s")
    return int(conf.getTimeAsMs("spark.storage.blockManagerHeartbeatTimeoutMs", f"{network}s")) / 1000


def silence_accumulators(context: SparkContext) -> None:
    """Drop the traceback that PySpark's server for accumulators prints when its JVM dies.

    It is a `socketserver`, which has no setting for it. Without the server, there is nothing to silence.
    """
    if (server := getattr(context, "_accumulatorServer", None)) is not None:
        server.handle_error = lambda *_: None


def disable_checksum_files(spark: SparkSession) -> None:
    """Make Hadoop write no checksum file next to each local file, for which it has no setting.

    For every file, checksum files included, it starts a process that sets the permissions. That is the larger
    part of the time that a batch's logs take. A truncated log is not valid JSON, and a checkpoint can be
    deleted without loss.
    """
    files = java_gateway(spark).jvm.org.apache.hadoop.fs.FileSystem
    files.getLocal(_hadoop_configuration(spark)).setWriteChecksum(False)


class HadoopFolder:
    """A folder in any file system of Hadoop; PySpark has no API for files. Methods raise `Py4JJavaError`."""

    def __init__(self, spark: SparkSession, path: str) -> None:
        self._jvm = java_gateway(spark).jvm
        self._path = self._jvm.org.apache.hadoop.fs.Path(path)
        self._files = self._path.getFileSystem(_hadoop_configuration(spark))

    def list_names(self, child: str) -> list[str]:
        """Return the names of the files in a child folder."""
        return [str(status.getPath().getName()) for status in self._files.listStatus(self._child(child))]

    def read_text(self, child: str) -> str:
        stream = self._files.open(self._child(child))
        try:
            text: str = self._jvm.org.apache.commons.io.IOUtils.toString(stream, "UTF-8")
        finally:
            stream.close()
        return text

    def delete(self) -> None:
        """Delete the folder with what it contains, if it exists."""
        self._files.delete(self._path, True)  # noqa: FBT003 - Java's own signature

    def _child(self, name: str) -> Any:  # noqa: ANN401 - a Java object
        return self._jvm.org.apache.hadoop.fs.Path(self._path, name)


def _hadoop_configuration(spark: SparkSession) -> Any:  # noqa: ANN401 - a Java object
    """Return the configuration of the session, with the credentials of remote file systems."""
    return spark.sparkContext._jsc.hadoopConfiguration()  # noqa: SLF001
