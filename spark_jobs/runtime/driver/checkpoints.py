"""The checkpoint of a query, which Spark requires, and which holds nothing that is needed after a restart."""

from pyspark.sql import SparkSession


def discard_checkpoint(spark: SparkSession, checkpoint: str) -> None:
    """Delete the checkpoint of a query that does not run, in any file system of Hadoop.

    The committed offsets of the application's group say where a query starts. Spark would repeat the last
    batch of the checkpoint, although records of repartition topics may be purged since then, and it refuses a
    checkpoint of which a part is missing.

    Raises:
        Py4JJavaError: The checkpoint cannot be deleted.
    """
    context = spark.sparkContext
    path = context._jvm.org.apache.hadoop.fs.Path(checkpoint)  # type: ignore[union-attr]  # noqa: SLF001 - PySpark has no API for files
    path.getFileSystem(context._jsc.hadoopConfiguration()).delete(path, True)  # noqa: SLF001, FBT003
