"""The input partitions of a batch: one Spark partition for all of a task, and where their records end.

A shuffle writes each row to a file and reads it again. DataFrames have no method to read partitions together
that the caller chooses. So the RDD of a DataFrame is grouped in the driver's JVM (`GroupedRows.java`).

Spark writes the end offsets of a batch to the checkpoint, which may be in a remote file system, and passes
them to no function of a batch. So these offsets are read from the input partitions (`InputRanges.java`).
"""

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from py4j.java_gateway import JavaObject  # type: ignore[import-untyped]
from pyspark.sql import DataFrame

from headwater_spark.spark_internals.java_classes import (
    OptionalParts,
    call_method,
    data_frame,
    load_methods,
    planned_rows,
    rdd_of_batch,
)
from headwater_spark.spark_internals.jvm import java_gateway

_GROUP, _ENDS = "group", "ends"
_GROUPED_ROWS = Path(__file__).with_name("GroupedRows.java")
_INPUT_RANGES = Path(__file__).with_name("InputRanges.java")


class RowGroups(OptionalParts):
    """Groups rows, as long as this Spark has the private parts that are used."""

    def __init__(self) -> None:
        super().__init__("input partitions not grouped: Spark shuffles rows")

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
        return self.attempt(lambda: _group_rows(rows, groups, count))


def _group_rows(rows: DataFrame, groups: Sequence[int], count: int) -> DataFrame | None:
    found = group_partitions(java_gateway(rows.sparkSession), planned_rows(rows), groups, count)
    return None if found is None else data_frame(found, rows)


def group_partitions(gateway: Any, rdd: JavaObject, groups: Sequence[int], count: int) -> JavaObject | None:  # noqa: ANN401 - py4j has no types
    """Return an RDD that reads Kafka with a partition for each group, as `RowGroups.grouped` describes it."""
    method = load_methods(gateway, _GROUPED_ROWS, (_GROUP,))[_GROUP]
    found: JavaObject | None = call_method(gateway, method, rdd, "\n".join(map(str, groups)), count)
    return found


class InputRanges(OptionalParts):
    """Reads the end offsets of batches, as long as this Spark has the private parts that are used."""

    def __init__(self) -> None:
        super().__init__("end offsets of batches unknown: records are not packed, and some are shown as lag")

    def ends(self, rows: DataFrame) -> Mapping[tuple[str, int], int]:
        """Return (topic, partition) → offset after its last record in a batch; only partitions with records.

        Empty if this Spark has other private parts.

        Raises:
            Py4JJavaError: Spark cannot plan the rows, for example because a broker does not answer.
        """
        return self.attempt(lambda: _read_ends(rows)) or {}


def _read_ends(rows: DataFrame) -> Mapping[tuple[str, int], int]:
    gateway = java_gateway(rows.sparkSession)
    method = load_methods(gateway, _INPUT_RANGES, (_ENDS,))[_ENDS]
    text: str = call_method(gateway, method, rdd_of_batch(rows))
    fields = (line.split("\t") for line in text.splitlines())
    return {(topic, int(partition)): int(end) for topic, partition, end in fields}
