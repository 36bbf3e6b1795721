"""Where the records of a batch end in Kafka, from the batch itself.

Spark writes these offsets to the checkpoint, which may be in a remote file system, and passes them to no
function of a batch. So they are read from the input partitions in the driver's JVM (`InputRanges.java`).
"""

from collections.abc import Mapping
from pathlib import Path

from pyspark.sql import DataFrame

from headwater_spark.spark_internals.java_classes import (
    OptionalParts,
    call_method,
    load_methods,
    rdd_of_batch,
)
from headwater_spark.spark_internals.jvm import java_gateway

_METHOD = "ends"
_SOURCE = Path(__file__).with_name("InputRanges.java")


class InputRanges(OptionalParts):
    """Reads the offsets, as long as this Spark has the private parts that are used."""

    def __init__(self) -> None:
        super().__init__("end offsets of batches unknown: records are not packed, and some are shown as lag")

    def ends(self, rows: DataFrame) -> Mapping[tuple[str, int], int]:
        """Return (topic, partition) → offset after its last record in a batch; only partitions with records.

        Empty if this Spark has other private parts.

        Raises:
            Py4JJavaError: Spark cannot plan the rows, for example because a broker does not answer.
        """
        return self.attempt(lambda: _ends(rows)) or {}


def _ends(rows: DataFrame) -> Mapping[tuple[str, int], int]:
    gateway = java_gateway(rows.sparkSession)
    method = load_methods(gateway, _SOURCE, (_METHOD,))[_METHOD]
    text: str = call_method(gateway, method, rdd_of_batch(rows))
    fields = (line.split("\t") for line in text.splitlines())
    return {(topic, int(partition)): int(end) for topic, partition, end in fields}
