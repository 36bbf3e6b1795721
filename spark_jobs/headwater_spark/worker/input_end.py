"""Whether a worker has received all rows of a Spark task.

Spark's JVM closes the connection to its worker if it cannot read a record, or if the task is killed. For
Arrow, that is an end of the rows like any other: without a check, the worker would commit the end offsets of
rows that it has never received. After the last row, Spark writes one more number
(`SpecialLengths.END_OF_STREAM`), which PySpark's worker reads when the task's function has ended.
"""

from collections.abc import Iterable, Iterator
from io import BufferedReader
from traceback import walk_stack
from typing import TypeVar

_WORKER_MODULES = ("pyspark.worker", "__main__")
_WORKER_FUNCTION = "main"
_STREAM = "infile"

BatchT = TypeVar("BatchT")


class IncompleteInputError(Exception):
    """The rows of a task have ended early: Spark has failed to read its records, or has killed the task.

    Nothing of the batch was committed. Spark reports the reason, and the batch is tried again.
    """

    def __init__(self) -> None:
        super().__init__(
            "the rows of the batch have ended early: Spark could not read all records, or has ended the task"
        )


def complete(batches: Iterable[BatchT], stream: BufferedReader) -> Iterator[BatchT]:
    """Yield the Arrow batches that are read from `stream`; raise `IncompleteInputError` if they end early."""
    yield from batches
    if not stream.peek(1):
        raise IncompleteInputError


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
