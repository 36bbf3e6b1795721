"""Functions that run in Spark's Python workers, on Arrow batches, and what such a function can find out."""

import inspect
from collections.abc import Callable, Iterable, Iterator, Sequence
from importlib import import_module
from io import BufferedReader
from traceback import walk_stack
from typing import Any

from pyspark.sql import Column, DataFrame
from pyspark.sql.udf import UserDefinedFunction
from pyspark.util import PythonEvalType

BATCH_PROPERTY = "streaming.sql.batchId"
"""The local property in which Spark passes the number of a query's batch to its tasks."""
_WORKER_MODULES = ("pyspark.worker", "__main__")
_WORKER_FUNCTION = "main"
_STREAM = "infile"


def prepare_arrow_function(
    function: Callable[[Iterable[Any]], Iterator[Any]], schema: str, columns: Sequence[str]
) -> Column:
    """Return a call of `function` for `map_in_arrow`, which pickles it and resolves its columns only once.

    `DataFrame.mapInArrow` does that for every batch, and looks up Java classes by name. It takes longer than
    a small batch. `pandas_udf`, which it calls, would import pandas, for half a second of CPU time.

    The function gets the Arrow batches of a Spark task with `columns`, and yields others with `schema` (DDL).
    """
    kind = PythonEvalType.SQL_MAP_ARROW_ITER_UDF
    return UserDefinedFunction(function, schema, evalType=kind)(*columns)


def map_in_arrow(rows: DataFrame, call: Column) -> DataFrame:
    """Return the rows that the prepared call returns for `rows`: what `DataFrame.mapInArrow` does with it."""
    mapped = rows._jdf.mapInArrow(call._jc, False, None)  # noqa: SLF001, FBT003 - as PySpark's own method
    return DataFrame(mapped, rows.sparkSession)


def worker_stream() -> BufferedReader:
    """Return the stream from which PySpark's worker reads; call it in the function of a Spark task.

    PySpark does not pass it on: it is a variable of `pyspark.worker.main`, which calls the task's function.

    Raises:
        LookupError: No worker of PySpark calls, or one of another version.
    """
    for frame, _ in walk_stack(None):
        is_worker = frame.f_globals.get("__name__") in _WORKER_MODULES
        if is_worker and frame.f_code.co_name == _WORKER_FUNCTION and _STREAM in frame.f_locals:
            stream: BufferedReader = frame.f_locals[_STREAM]
            return stream
    raise LookupError(f"no function {_WORKER_FUNCTION} of {_WORKER_MODULES[0]} has called")


def check_worker_stream() -> None:
    """Check that the worker of this PySpark has the variable that `worker_stream` reads.

    Raises:
        LookupError: It does not.
    """
    code = inspect.unwrap(getattr(import_module(_WORKER_MODULES[0]), _WORKER_FUNCTION)).__code__
    if _STREAM not in code.co_varnames:
        raise LookupError(f"{_WORKER_FUNCTION} of {_WORKER_MODULES[0]} has no variable {_STREAM}")
