"""A query that has found no new records waits for a signal, instead of asking the brokers every 10 ms.

Spark has no setting for this. So the table of the Kafka source is wrapped in the JVM (`SignaledSource.java`).
"""

from contextlib import suppress
from pathlib import Path

from py4j.java_gateway import JavaObject  # type: ignore[import-untyped]
from pyspark.sql import DataFrame, SparkSession

from headwater_spark.spark_internals.java_classes import (
    JVM_ENDED,
    OptionalParts,
    create_object,
    load_java_class,
)
from headwater_spark.spark_internals.jvm import java_gateway

_POLLING = "idle queries keep polling"
_SOURCE = Path(__file__).with_name("SignaledSource.java")


class InputSignal(OptionalParts):
    """The signal of one query; any thread may send it. Without `wait_at_most` the query does not wait.

    If the JVM has ended, no query waits: the client notices it when it polls its queries.
    """

    def __init__(self, source: JavaObject) -> None:
        super().__init__(_POLLING)
        self._source = source

    def wait_at_most(self, seconds: float) -> None:
        """Let the query wait up to `seconds` for a signal from now on; it checks once first."""
        with suppress(*JVM_ENDED):
            self._source.setMaxWaitMs(int(seconds * 1000))

    def send(self) -> None:
        """Let the query check for new records; if it is busy, when it has processed what it found."""
        with suppress(*JVM_ENDED):
            self._source.signal()

    def applied(self, stream: DataFrame) -> DataFrame:
        """Return `stream`, which reads a table and does nothing else, so that it waits for this signal.

        If this Spark has other plans, it polls: return it as it is, with a warning.
        """
        applied = self.attempt(lambda: self._applied(stream))
        return stream if applied is None else applied

    def _applied(self, stream: DataFrame) -> DataFrame:
        relation = stream._jdf.queryExecution().analyzed()  # noqa: SLF001 - PySpark shows no plans
        spark = stream.sparkSession
        gateway = java_gateway(spark)
        count = relation.productArity()
        arguments = gateway.new_array(gateway.jvm.java.lang.Object, count)
        table = relation.table()
        for at in range(count):
            element = relation.productElement(at)
            is_table = isinstance(element, JavaObject) and element.equals(table)
            arguments[at] = self._source.wrap(table) if is_table else element
        plan = relation.makeCopy(arguments)
        dataset = gateway.jvm.org.apache.spark.sql.classic.Dataset
        return DataFrame(dataset.ofRows(spark._jsparkSession, plan), spark)  # noqa: SLF001 - no public way


class InputSignals(OptionalParts):
    """Creates signals, in the JVM of `spark`."""

    def __init__(self, spark: SparkSession) -> None:
        super().__init__(_POLLING)
        self._gateway = java_gateway(spark)
        self.attempt(lambda: load_java_class(self._gateway, _SOURCE))  # at once: that takes long

    def create(self) -> InputSignal | None:
        """Return the signal of a query; None if this Spark cannot wait for one, so its queries never wait."""
        source = self.attempt(lambda: create_object(self._gateway, _SOURCE))
        return None if source is None else InputSignal(source)
