"""One Spark partition for all input partitions of a task, without a shuffle.

A shuffle writes each row to a file and reads it again. DataFrames have no method to read partitions together
that the caller chooses. So the RDD of a DataFrame is grouped in the driver's JVM (`GroupedRows.java`).
"""

from collections.abc import Sequence
from pathlib import Path
from typing import Any

import structlog
from py4j.java_gateway import JavaObject  # type: ignore[import-untyped]
from pyspark.sql import DataFrame

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
_METHOD = "group"
_SOURCE = Path(__file__).with_name("GroupedRows.java")


class RowGroups:
    """Groups rows, as long as this Spark has the private parts that are used."""

    def __init__(self) -> None:
        self.is_possible = True

    def grouped(self, rows: DataFrame, groups: Sequence[int], count: int) -> DataFrame | None:
        """Return `rows` with a Spark partition for each group; None = they have to be shuffled.

        That is so if `groups` has too few partitions, or if this Spark has other private parts.

        Args:
            rows: A DataFrame that is read once, with rows of Kafka and no others. Its plan is made here.
            groups: The group of each partition of a topic, in the order of their numbers.
            count: The number of groups.

        Raises:
            Py4JJavaError: Spark cannot plan the rows, for example because a broker does not answer.
        """
        if not self.is_possible:
            return None
        try:
            return _grouped(rows, groups, count)
        except JVM_ENDED:
            raise
        except RowsFailedError as failed:
            raise failed.error from None
        except OTHER_SPARK as error:
            self.is_possible = False
            _log.warning("input partitions not grouped: Spark shuffles rows", reason=reason_of(error))
            return None


def _grouped(rows: DataFrame, groups: Sequence[int], count: int) -> DataFrame | None:
    found = group_partitions(java_gateway(rows.sparkSession), planned_rows(rows), groups, count)
    return None if found is None else data_frame(found, rows)


def group_partitions(gateway: Any, rdd: JavaObject, groups: Sequence[int], count: int) -> JavaObject | None:  # noqa: ANN401 - py4j has no types
    """Return an RDD that reads Kafka with a partition for each group, as `RowGroups.grouped` describes it."""
    method = load_methods(gateway, _SOURCE, (_METHOD,))[_METHOD]
    found: JavaObject | None = call_method(gateway, method, rdd, "\n".join(map(str, groups)), count)
    return found
