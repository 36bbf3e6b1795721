"""A query that has found no new records waits for a signal, instead of asking the brokers every 10 ms.

Spark has no setting for this. So the table of the Kafka source is wrapped in the JVM (`SignaledSource.java`).
"""

from contextlib import suppress
from functools import lru_cache
from pathlib import Path
from typing import Any

import structlog
from py4j.java_gateway import JavaObject  # type: ignore[import-untyped]
from py4j.protocol import Py4JError, Py4JNetworkError  # type: ignore[import-untyped]
from pyspark.sql import DataFrame, SparkSession

from headwater_spark.spark_internals.jvm import java_gateway

_log = structlog.get_logger(__name__)
_JVM_ENDED = Py4JNetworkError, ConnectionError
"""Then no query waits; the client notices it when it polls its queries."""
_SOURCE = Path(__file__).with_name("SignaledSource.java")


class InputSignal:
    """The signal of one query; any thread may send it. Without `wait_at_most` the query does not wait."""

    def __init__(self, source: JavaObject) -> None:
        self._source = source

    def wait_at_most(self, seconds: float) -> None:
        """Let the query wait up to `seconds` for a signal from now on; it checks once first."""
        with suppress(*_JVM_ENDED):
            self._source.setMaxWaitMs(int(seconds * 1000))

    def send(self) -> None:
        """Let the query check for new records; if it is busy, when it has processed what it found."""
        with suppress(*_JVM_ENDED):
            self._source.signal()

    def applied(self, stream: DataFrame) -> DataFrame:
        """Return `stream`, which reads a table and does nothing else, so that it waits for this signal.

        If this Spark has other plans, it polls: return it as it is, with a warning.
        """
        try:
            return self._applied(stream)
        except _JVM_ENDED:
            raise
        except (Py4JError, TypeError, AttributeError) as error:
            _warn_polling(error)
            return stream

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


class InputSignals:
    """Creates signals, in the JVM of `spark`."""

    def __init__(self, spark: SparkSession) -> None:
        self._gateway = java_gateway(spark)
        self._class = _load_class(self._gateway)

    def create(self) -> InputSignal | None:
        """Return the signal of a query; None if this Spark cannot wait for one, so its queries never wait."""
        if self._class is None:
            return None
        no_arguments = self._gateway.new_array(self._gateway.jvm.java.lang.Object, 0)
        return InputSignal(self._class.getConstructors()[0].newInstance(no_arguments))


@lru_cache(maxsize=1)
def _load_class(gateway: Any) -> JavaObject | None:  # noqa: ANN401 - py4j has no types
    """Return the Java class; once for each JVM, because py4j finds the methods of a class by its name."""
    try:
        compiler = gateway.jvm.org.codehaus.janino.SimpleCompiler()
        compiler.cook(_SOURCE.read_text(encoding="utf-8"))
        return compiler.getClassLoader().loadClass(_SOURCE.stem)
    except (Py4JError, TypeError) as error:  # py4j calls a package if a class is missing
        _warn_polling(error)
        return None


def _warn_polling(error: Exception) -> None:
    _log.warning("idle queries keep polling", reason=next(iter(str(error).splitlines()), ""))
