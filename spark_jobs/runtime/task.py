"""One task: a sub-topology and a partition. Records in, records out; no clock, no Kafka, no Spark.

    task = Task(program, partition, state)
    outputs = task.process(records, wall_clock_ms)    # sinks', repartition topics' and changelogs' records

`process` leaves clocks and schedules in `state.metadata` and the stores' changes in `state.changes()`; the
caller persists them (see `task_state`).
"""

from collections.abc import Iterable, Mapping

from spark_jobs.runtime.program_interface import Program
from spark_jobs.runtime.records import InputRecord, OutputRecord, Value
from spark_jobs.runtime.task_state import TaskState


class Task:
    """Executes a program over the records of one partition.

    Args:
        program: The sub-topology.
        partition: Its number; changelog records carry it.
        state: The stores of this task.
        global_stores: Typed stores of global tables by name, filled by the global task of this process.
    """

    def __init__(
        self,
        program: Program,
        partition: int,
        state: TaskState,
        global_stores: Mapping[str, Value] | None = None,
    ) -> None:
        self.program = program
        self.partition = partition
        self.state = state
        self.global_stores = global_stores or {}

    def process(self, records: Iterable[InputRecord], wall_clock_ms: int) -> list[OutputRecord]:
        """Works one batch off: its records, due punctuations, flushes.

        Records come by offset within each partition, partitions in any order.

        Raises:
            PoisonRecordError: A record cannot be handled and the handlers say to fail.
        """
        raise NotImplementedError

    def restore(self, topic: str, records: Iterable[InputRecord]) -> None:
        """Puts records of a changelog topic into its store; they count as changes of the running batch."""
        raise NotImplementedError

    def close(self) -> None:
        """Closes users' processors."""
        raise NotImplementedError


class PoisonRecordError(Exception):
    """A record that cannot be handled; the text names topic, partition and offset."""
