"""Java classes of this package, compiled in the driver's JVM by Janino, Spark's own compiler."""

from collections.abc import Callable, Mapping, Sequence
from functools import lru_cache
from pathlib import Path
from typing import Any, TypeVar

import structlog
from py4j.java_gateway import JavaObject  # type: ignore[import-untyped]
from py4j.protocol import Py4JError, Py4JJavaError, Py4JNetworkError  # type: ignore[import-untyped]
from pyspark.sql import DataFrame

JVM_ENDED = Py4JNetworkError, ConnectionError
"""Errors of a call whose JVM has ended; some of them are in `OTHER_SPARK`, too, so catch these first."""
OTHER_SPARK = Py4JError, TypeError, AttributeError
"""Errors of a call that this Spark does not know: py4j calls a package if a class is missing."""
_CAUSE = "Caused by: "
"""In the text of a Java exception, the last such line names what has failed."""
_THROWN = ": "
"""The line with an exception that has no cause, after the line with the call."""
_PLANNED = "LogicalRDD"
"""The plan of a DataFrame that has an RDD."""
_SHARED = Path(__file__).with_name("InputPartitions.java")
"""The class that the other classes use."""


_log = structlog.get_logger(__name__)
_Result = TypeVar("_Result")


class RowsFailedError(Exception):
    """Spark cannot plan or compute rows, for example because a broker does not answer.

    `error` is the exception. It says nothing about the private parts of this Spark.
    """

    def __init__(self, error: Py4JJavaError) -> None:
        super().__init__(str(error))
        self.error = error


class OptionalParts:
    """Private parts that another Spark may not have: after the first failure, they are not used again.

    Args:
        consequence: What happens without them, for the log.
    """

    def __init__(self, consequence: str) -> None:
        self._consequence = consequence
        self.is_possible = True

    def attempt(self, use: Callable[[], _Result | None]) -> _Result | None:
        """Return the result of `use`; None if this Spark has other private parts.

        Raises:
            Py4JJavaError: Spark cannot plan the rows, for example because a broker does not answer.
        """
        if not self.is_possible:
            return None
        try:
            return use()
        except JVM_ENDED:
            raise
        except RowsFailedError as failed:
            raise failed.error from None
        except OTHER_SPARK as error:
            self.is_possible = False
            _log.warning(self._consequence, reason=reason_of(error))
            return None


@lru_cache(maxsize=8)
def load_methods(gateway: Any, source: Path, names: tuple[str, ...]) -> Mapping[str, JavaObject]:  # noqa: ANN401 - py4j has no types
    """Return the static methods of a Java class by name, once for each JVM; raises as `load_java_class`."""
    methods = load_java_class(gateway, source).getMethods()
    return {name: each for each in methods if (name := each.getName()) in names}


def create_object(gateway: Any, source: Path, *arguments: object) -> JavaObject:  # noqa: ANN401 - py4j has no types
    """Return a new object of a Java class with one constructor.

    A call of its methods is one request to the JVM; `call_method` needs one for each argument, too. Raises as
    `load_java_class`.
    """
    constructor = load_java_class(gateway, source).getConstructors()[0]
    return constructor.newInstance(_java_array(gateway, arguments))


@lru_cache(maxsize=8)
def load_java_class(gateway: Any, source: Path) -> JavaObject:  # noqa: ANN401 - py4j has no types
    """Return the Java class of a file; once for each JVM, because that takes long.

    Raises:
        Py4JError, TypeError, AttributeError: This Spark has other private parts.
    """
    return _compile_class(gateway, source, _shared_classes(gateway)).loadClass(source.stem)


@lru_cache(maxsize=8)
def _shared_classes(gateway: Any) -> JavaObject:  # noqa: ANN401 - py4j has no types
    return _compile_class(
        gateway, _SHARED, gateway.jvm.java.lang.Thread.currentThread().getContextClassLoader()
    )


def _compile_class(gateway: Any, source: Path, parent: JavaObject) -> JavaObject:  # noqa: ANN401 - py4j has no types
    """Return a class loader with the class of a file, which may use the classes of `parent`."""
    compiler = gateway.jvm.org.codehaus.janino.SimpleCompiler()
    compiler.setParentClassLoader(parent)
    compiler.cook(source.read_text(encoding="utf-8"))
    return compiler.getClassLoader()


def call_method(gateway: Any, method: JavaObject, *arguments: object) -> Any:  # noqa: ANN401 - py4j has no types
    """Call a static method."""
    return method.invoke(None, _java_array(gateway, arguments))


def _java_array(gateway: Any, items: Sequence[object]) -> JavaObject:  # noqa: ANN401 - py4j has no types
    array = gateway.new_array(_object_class(gateway), len(items))
    for at, each in enumerate(items):
        array[at] = each
    return array


@lru_cache(maxsize=1)
def _object_class(gateway: Any) -> Any:  # noqa: ANN401 - py4j has no types
    """Return Java's `Object`; py4j needs a request for each part of the name."""
    return gateway.jvm.java.lang.Object


def planned_rows(rows: DataFrame) -> JavaObject:
    """Return the RDD of a DataFrame. Its plan is made here.

    Raises:
        RowsFailedError: Spark cannot do that.
        Py4JError, TypeError, AttributeError: This Spark has other private parts.
    """
    try:
        return rows._jdf.queryExecution().toRdd()  # noqa: SLF001 - PySpark shows no RDD of rows
    except Py4JJavaError as error:
        raise RowsFailedError(error) from error


def rdd_of_batch(rows: DataFrame) -> JavaObject:
    """Return the RDD of a DataFrame. The rows of a stream's batch have one, and need no plan.

    Raises: The same as `planned_rows`.
    """
    plan = rows._jdf.queryExecution().analyzed()  # noqa: SLF001 - PySpark shows no plans
    return plan.rdd() if plan.nodeName() == _PLANNED else planned_rows(rows)


def data_frame(rdd: JavaObject, rows: DataFrame) -> DataFrame:
    """Return a DataFrame that reads an RDD with the columns of `rows`."""
    spark = rows.sparkSession
    session = spark._jsparkSession  # noqa: SLF001 - PySpark creates no DataFrame of such an RDD
    return DataFrame(session.internalCreateDataFrame(rdd, rows._jdf.schema(), False), spark)  # noqa: FBT003, SLF001


def reason_of(error: Exception) -> str:
    """Return the cause of a Java exception, in one line."""
    lines = str(error).splitlines()
    causes = [line.removeprefix(_CAUSE) for line in lines if line.startswith(_CAUSE)]
    thrown = [line.removeprefix(_THROWN) for line in lines if line.startswith(_THROWN)]
    return (causes[-1:] or thrown[:1] or lines[:1] or [""])[0]
