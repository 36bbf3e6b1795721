"""The checkpoint of a query: Spark requires one, but the committed offsets say where a query starts.

Spark would repeat the last batch of a checkpoint, although records of repartition topics may be purged since
then, and it refuses a checkpoint of which a part is missing. So each start deletes the checkpoint. Its last
offsets are used for partitions without a committed offset only: brokers forget the offsets of a partition
that is idle for `offsets.retention.minutes`, because the application's group has no members.
"""

from contextlib import suppress
from typing import Any

from py4j.protocol import Py4JError  # type: ignore[import-untyped]
from pyspark.sql import SparkSession

from headwater_spark.driver.input.sources import parse_offsets
from headwater_spark.driver.offsets import Offsets


class Checkpoint:
    """The checkpoint of a query that does not run, in any file system of Hadoop."""

    def __init__(self, spark: SparkSession, path: str) -> None:
        context = spark.sparkContext
        jvm: Any = context._jvm  # noqa: SLF001 - PySpark has no API for files
        self._jvm = jvm
        self._path = jvm.org.apache.hadoop.fs.Path(path)
        self._files = self._path.getFileSystem(context._jsc.hadoopConfiguration())  # noqa: SLF001

    def last_offsets(self) -> Offsets:
        """Return the offsets after the last batch that was completed; none if a part of it is missing."""
        with suppress(Py4JError, ValueError):
            committed = self._files.listStatus(self._child("commits"))
            batches = [int(each.getPath().getName()) for each in committed if _is_batch(each)]
            if batches:
                return parse_offsets(self._read(self._child("offsets", str(max(batches)))))
        return {}

    def delete(self) -> None:
        """Delete the checkpoint, if it exists; raises `Py4JJavaError`."""
        self._files.delete(self._path, True)  # noqa: FBT003 - Java's own signature

    def _child(self, *names: str) -> Any:  # noqa: ANN401 - a Java object
        return self._jvm.org.apache.hadoop.fs.Path(self._path, "/".join(names))

    def _read(self, path: Any) -> str:  # noqa: ANN401 - as above
        stream = self._files.open(path)
        try:
            text: str = self._jvm.org.apache.commons.io.IOUtils.toString(stream, "UTF-8")
        finally:
            stream.close()
        return text


def _is_batch(status: Any) -> bool:  # noqa: ANN401 - as above
    name: str = status.getPath().getName()
    return name.isdecimal()
