"""On which executor Spark computes each partition of a DataFrame, and which executors there are.

Spark's scheduler respects the preferred locations of an RDD. DataFrames have no method to set them. So the
RDD of a DataFrame is wrapped in the driver's JVM (`PlacedRows.java`).
"""

from collections.abc import Mapping, Sequence
from functools import lru_cache
from pathlib import Path
from typing import Any

import structlog
from py4j.java_gateway import JavaObject  # type: ignore[import-untyped]
from pyspark.sql import DataFrame, SparkSession

from headwater_spark.spark_internals.java_classes import (
    JVM_ENDED,
    OTHER_SPARK,
    RowsFailedError,
    call_method,
    data_frame,
    load_methods,
    planned_rows,
    reason_of,
)
from headwater_spark.spark_internals.jvm import java_gateway

_log = structlog.get_logger(__name__)
_METHODS = ("executors", "place")
_SOURCE = Path(__file__).with_name("PlacedRows.java")


def location(executor: str, host: str) -> str:
    """Return the name of an executor as a preferred location (`ExecutorCacheTaskLocation`)."""
    return f"executor_{host}_{executor}"


class RowPlacement:
    """Places rows on the executors of `spark`; not if this Spark has other private parts."""

    def __init__(self, spark: SparkSession) -> None:
        self._spark = spark
        self._methods = _load_methods(java_gateway(spark))

    @property
    def is_possible(self) -> bool:
        return self._methods is not None

    def executors(self) -> list[tuple[str, str, int]]:
        """Return id, host and number of cores of each executor that gets tasks."""
        context = self._spark.sparkContext._jsc.sc()  # noqa: SLF001 - PySpark does not list executors
        try:
            lines = [line.rsplit(" ", 2) for line in str(self._call("executors", context)).splitlines()]
        except JVM_ENDED:
            raise
        except OTHER_SPARK as error:
            self._give_up(error)
            return []
        return [(id_, host, int(cores)) for id_, host, cores in lines]

    def placed(self, rows: DataFrame, locations: Sequence[str], *, by_input_partition: bool) -> DataFrame:
        """Return `rows`, each partition of which is computed at its location if the executor has a free core.

        Args:
            rows: A DataFrame that is read once. Its plan is made here.
            locations: The location of each partition, as `location` returns it; empty = any executor.
            by_input_partition: `locations` are the locations of the Kafka partitions that `rows` read, each
                in a Spark partition of its own.

        Raises:
            Py4JJavaError: Spark cannot plan the rows, for example because a broker does not answer.
        """
        try:
            return self._placed(rows, locations, by_input_partition=by_input_partition)
        except JVM_ENDED:
            raise
        except RowsFailedError as failed:
            raise failed.error from None
        except OTHER_SPARK as error:
            self._give_up(error)
            return rows

    def _placed(self, rows: DataFrame, locations: Sequence[str], *, by_input_partition: bool) -> DataFrame:
        if self._methods is None:
            return rows
        placed = self._call("place", planned_rows(rows), "\n".join(locations), by_input_partition)
        return data_frame(placed, rows)

    def _call(self, method: str, *arguments: object) -> Any:  # noqa: ANN401 - py4j has no types
        if self._methods is None:
            return ""
        return call_method(java_gateway(self._spark), self._methods[method], *arguments)

    def _give_up(self, error: Exception) -> None:
        self._methods = None
        _warn_unplaced(error)


@lru_cache(maxsize=1)
def _load_methods(gateway: Any) -> Mapping[str, JavaObject] | None:  # noqa: ANN401 - py4j has no types
    """Return the static methods of the Java class by name; once for each JVM, because that takes long."""
    try:
        return load_methods(gateway, _SOURCE, _METHODS)
    except JVM_ENDED:
        raise
    except OTHER_SPARK as error:
        _warn_unplaced(error)
        return None


def _warn_unplaced(error: Exception) -> None:
    _log.warning("tasks not placed: Spark may move them between executors", reason=reason_of(error))
