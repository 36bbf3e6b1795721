"""The task of a sub-topology that Spark SQL has already evaluated: it forwards the rows to the sink."""

from collections.abc import Iterable
from itertools import repeat
from typing import cast

from spark_jobs.runtime.engine.program import SubtopologyProgram
from spark_jobs.runtime.engine.records import OutputRecord
from spark_jobs.runtime.worker.interleaving import interleaved
from spark_jobs.runtime.worker.task_input import ColumnInput, TaskInput


class NativeTask:
    """The part of the engine's `Task` that `OpenTask` needs."""

    def __init__(self, program: SubtopologyProgram) -> None:
        (self._topic,) = program.sinks.values()

    def process(self, input_: TaskInput, shared_topics: frozenset[str]) -> Iterable[OutputRecord]:
        """Return the output records with timestamps and headers, which Spark's own sink cannot write."""
        topic = self._topic
        if (
            isinstance(input_, ColumnInput)
            and input_.has_columns
            and input_.topic_partition[0] not in shared_topics
        ):
            return cast(
                "Iterable[OutputRecord]",
                input_.tuples(repeat(topic), repeat(None), "key", "value", "time", "headers"),
            )
        records = interleaved(input_.records(), shared_topics)
        return ((topic, None, key, value, time, headers) for _, _, _, time, key, value, headers in records)

    @staticmethod
    def take_dropped() -> tuple[int, str | None]:
        """Return that no record was dropped: Spark SQL's filters are filters, and nothing can fail."""
        return 0, None

    def close(self) -> None:
        """Do nothing: a native task holds no resources."""
