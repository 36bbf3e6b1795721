"""The checkpoint of a query: Spark requires one, but the committed offsets say where a query starts.

Spark would repeat the last batch of a checkpoint, although records of repartition topics may be purged since
then, and it refuses a checkpoint of which a part is missing. So each start deletes the checkpoint. Its last
offsets are used for partitions without a committed offset only: brokers forget the offsets of a partition
that is idle for `offsets.retention.minutes`, because the application's group has no members.
"""

from contextlib import suppress

from py4j.protocol import Py4JError  # type: ignore[import-untyped]
from pyspark.sql import SparkSession

from headwater_spark.driver.input.sources import parse_offsets
from headwater_spark.driver.offsets import Offsets
from headwater_spark.spark_internals.jvm import HadoopFolder


class Checkpoint:
    """The checkpoint of a query that does not run, in any file system of Hadoop."""

    def __init__(self, spark: SparkSession, path: str) -> None:
        self._folder = HadoopFolder(spark, path)

    def last_offsets(self) -> Offsets:
        """Return the offsets after the last batch that was completed; none if a part of it is missing."""
        with suppress(Py4JError, ValueError):
            batches = [int(name) for name in self._folder.list_names("commits") if name.isdecimal()]
            if batches:
                return parse_offsets(self._folder.read_text(f"offsets/{max(batches)}"))
        return {}

    def delete(self) -> None:
        """Delete the checkpoint, if it exists; raises `Py4JJavaError`."""
        self._folder.delete()
