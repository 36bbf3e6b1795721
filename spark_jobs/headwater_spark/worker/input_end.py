"""Whether a worker has received all rows of a Spark task.

Spark's JVM closes the connection to its worker if it cannot read a record, or if the task is killed. For
Arrow, that is an end of the rows like any other: without a check, the worker would commit the end offsets of
rows that it has never received. After the last row, Spark writes one more number
(`SpecialLengths.END_OF_STREAM`), which PySpark's worker reads when the task's function has ended.
"""

from collections.abc import Iterable, Iterator
from io import BufferedReader
from typing import TypeVar

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
