"""On which executor Spark computes each partition of a DataFrame, and which executors there are.

Spark's scheduler respects the preferred locations of an RDD. DataFrames have no method to set them. So the
RDD of a DataFrame is wrapped in the driver's JVM (`PlacedRows.java`).
"""

from collections.abc import Sequence
from pathlib import Path
from typing import Any

from pyspark.sql import DataFrame, SparkSession

from headwater_spark.spark_internals.java_classes import (
    OptionalParts,
    call_method,
    data_frame,
    load_methods,
    planned_rows,
)
from headwater_spark.spark_internals.jvm import java_gateway

_METHODS = ("executors", "place")
_SOURCE = Path(__file__).with_name("PlacedRows.java")


def executor_location(executor: str, host: str) -> str:
    """Return the name of an executor as a preferred location (`ExecutorCacheTaskLocation`)."""
    return f"executor_{host}_{executor}"


class RowPlacement(OptionalParts):
    """Places rows on the executors of `spark`; not if this Spark has other private parts."""

    def __init__(self, spark: SparkSession) -> None:
        super().__init__("tasks not placed: Spark may move them between executors")
        self._spark = spark
        self.attempt(lambda: load_methods(java_gateway(spark), _SOURCE, _METHODS))  # at once: that takes long

    def executors(self) -> list[tuple[str, str, int]]:
        """Return id, host and number of cores of each executor that gets tasks."""
        context = self._spark.sparkContext._jsc.sc()  # noqa: SLF001 - PySpark does not list executors
        text = self.attempt(lambda: str(self._call("executors", context))) or ""
        lines = [line.rsplit(" ", 2) for line in text.splitlines()]
        return [(id_, host, int(cores)) for id_, host, cores in lines]

    def placed(self, rows: DataFrame, locations: Sequence[str], *, by_input_partition: bool) -> DataFrame:
        """Return `rows`, each partition of which is computed at its location if the executor has a free core.

        Args:
            rows: A DataFrame that is read once. Its plan is made here.
            locations: The location of each partition (`executor_location`); empty = any executor.
            by_input_partition: `locations` are the locations of the Kafka partitions that `rows` read, each
                in a Spark partition of its own.

        Raises:
            Py4JJavaError: Spark cannot plan the rows, for example because a broker does not answer.
        """

        def place() -> DataFrame:
            placed = self._call("place", planned_rows(rows), "\n".join(locations), by_input_partition)
            return data_frame(placed, rows)

        found = self.attempt(place)
        return rows if found is None else found

    def _call(self, method: str, *arguments: object) -> Any:  # noqa: ANN401 - py4j has no types
        gateway = java_gateway(self._spark)
        return call_method(gateway, load_methods(gateway, _SOURCE, _METHODS)[method], *arguments)
