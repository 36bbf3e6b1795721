"""Which versions of Spark have the private parts that Headwater uses, and a check of a running one."""

from collections.abc import Callable, Iterable, Iterator
from typing import Any

import pyspark
from py4j.protocol import Py4JError, Py4JNetworkError  # type: ignore[import-untyped]
from pyspark.sql import SparkSession

from headwater_spark.spark_internals import jvm, python_tasks

SUPPORTED_VERSIONS = ("4.2.0", "4.3.0")
"""The oldest and the newest version of PySpark that the tests run with; `pyproject.toml` allows these."""


class UnsupportedSparkError(Exception):
    """A private part of Spark is missing or has changed. `uses` says which ones, and how they failed."""

    def __init__(self, uses: Iterable[str]) -> None:
        self.version: str = pyspark.__version__
        self.uses = tuple(uses)
        super().__init__(f"PySpark {self.version}: {'; '.join(self.uses)}")


def check_spark_internals(spark: SparkSession) -> None:
    """Try each private part of Spark that has no fallback, on a session that runs; start no job.

    Raises:
        UnsupportedSparkError: At least one is missing or has changed.
        Py4JNetworkError: Spark's JVM has ended.
    """
    checks: dict[str, Callable[[SparkSession], object]] = {
        "the gateway to Java": jvm.java_gateway,
        "the clock of the JVM": jvm.read_jvm_clock,
        "the number of concurrent tasks": lambda session: jvm.task_slots(session.sparkContext)(),
        "the timeout of executors": jvm.executor_timeout_seconds,
        "files of Hadoop": lambda session: jvm.HadoopFolder(session, "file:/"),
        "prepared Arrow functions": _prepare_empty_map,
        "the input of Python workers": lambda _: python_tasks.check_worker_stream(),
    }
    failed = [
        f"{name}: {reason}" for name, check in checks.items() if (reason := _describe_failure(check, spark))
    ]
    if failed:
        raise UnsupportedSparkError(failed)


def _describe_failure(check: Callable[[SparkSession], object], spark: SparkSession) -> str:
    """Return the first line of why a check failed; empty if it did not."""
    try:
        check(spark)
    except (Py4JNetworkError, ConnectionError):
        raise
    except (Py4JError, AttributeError, TypeError, LookupError, ImportError) as error:
        return next(iter(str(error).splitlines()), "") or type(error).__name__
    return ""


def _prepare_empty_map(spark: SparkSession) -> None:
    def pass_on(batches: Iterable[Any]) -> Iterator[Any]:
        yield from batches

    call = python_tasks.prepare_arrow_function(pass_on, "id long", ["id"])
    python_tasks.map_in_arrow(spark.range(0), call)
