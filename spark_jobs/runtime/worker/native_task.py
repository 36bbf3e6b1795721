"""The task of a sub-topology that Spark SQL evaluated already: what comes goes to the sink."""

from collections.abc import Iterable
from itertools import repeat
from typing import cast

from spark_jobs.runtime.engine.program import SubtopologyProgram
from spark_jobs.runtime.engine.records import OutputRecord
from spark_jobs.runtime.worker.interleaving import interleaved
from spark_jobs.runtime.worker.task_input import Columns, TaskInput


class NativeTask:
    """`Task` as far as a session needs it."""

    def __init__(self, program: SubtopologyProgram) -> None:
        (self._topic,) = program.sinks.values()

    def process(self, input_: TaskInput, shared: frozenset[str]) -> Iterable[OutputRecord]:
        """Hand records on with their timestamps and headers, which Spark's own sink could not write."""
        topic = self._topic
        if isinstance(input_, Columns) and input_.are_there and input_.place[0] not in shared:
            return cast(
                "Iterable[OutputRecord]",
                input_.tuples(repeat(topic), repeat(None), "key", "value", "time", "headers"),
            )
        records = interleaved(input_.records(), shared)
        return ((topic, None, key, value, time, headers) for _, _, _, time, key, value, headers in records)

    @staticmethod
    def take_dropped() -> tuple[int, str | None]:
        """Nothing is left out: Spark SQL's filters are filters, and there is nothing to fail."""
        return 0, None

    def close(self) -> None:
        """Nothing is open."""
