"""The task of a sub-topology that Spark SQL evaluated already: what comes goes to the sink."""

from collections.abc import Iterable

from spark_jobs.runtime.program import SubtopologyProgram
from spark_jobs.runtime.records import InputRecord, OutputRecord


class NativeTask:
    """`Task` as far as a session needs it."""

    def __init__(self, program: SubtopologyProgram) -> None:
        (self._topic,) = program.sinks.values()

    def process(self, records: Iterable[InputRecord], wall_clock_ms: int) -> list[OutputRecord]:
        """Hand records on with their timestamps and headers, which Spark's own sink could not write."""
        del wall_clock_ms
        topic = self._topic
        return [(topic, None, key, value, time, headers) for _, _, _, time, key, value, headers in records]

    def close(self) -> None:
        """Nothing is open."""
