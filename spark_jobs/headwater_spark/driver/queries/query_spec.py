"""What a query needs at run time: the interface between a query and its application."""

from collections.abc import Sequence
from contextlib import AbstractContextManager
from threading import Event
from typing import Protocol

from pyspark.sql import DataFrame

from headwater_spark.driver.failures import Failure
from headwater_spark.driver.input.expansion import InputExpansion
from headwater_spark.driver.input.sources import KafkaSource
from headwater_spark.driver.input.step_planner import OffsetRanges, StepPlanner
from headwater_spark.driver.offsets import Offsets
from headwater_spark.driver.threads.stream_threads import TakenThreads
from headwater_spark.engine.program import SubtopologyProgram
from headwater_spark.worker.messages import BatchRequest, BatchResult


class QuerySpec(Protocol):
    """One query. Properties are fixed; methods use the current layout, so their results may change."""

    @property
    def name(self) -> str:
        """The query's name in Spark."""
        ...

    @property
    def reads_single_topic(self) -> bool:
        """All input is of one topic: Spark's partitions are the partitions of the tasks."""
        ...

    @property
    def row_topic(self) -> str | None:
        """The topic of all rows, if they need no column for it: a single topic is read, without ticks."""
        ...

    @property
    def reads_values(self) -> bool:
        """The tasks read the values of records, not only whether there are any."""
        ...

    @property
    def ticks(self) -> bool:
        """The input has ticks, because the sub-topology may schedule wall-clock punctuation."""
        ...

    @property
    def native_program(self) -> SubtopologyProgram | None:
        """The program, if Spark SQL evaluates it."""
        ...

    def backoff_ms(self, failure: Failure | None, thread: str, failures_in_a_row: int) -> int | None:
        """Return how long to wait before the restart after a failure of stream thread `thread`; None = never.

        Handles the failure (`uncaught.exception.handler`): call it once for each.
        """
        ...

    def checkpoint(self) -> str:
        """Return the checkpoint folder; it changes when a source topic is re-created."""
        ...

    def source(self, forgotten: Offsets) -> KafkaSource:
        """Return the input with its start offsets; raises `ProblemsError` or `KafkaException`.

        `forgotten` are the last offsets of an earlier start; those without a committed offset are used.
        """
        ...

    def request(self, batch: int, *, in_step: bool = False) -> BatchRequest:
        """Return the request for the tasks; partitions may have been added since the last batch.

        With `in_step` it is for a step of the batch, and has no end offsets.
        """
        ...

    def round(self) -> AbstractContextManager[None]:
        """Return a context in which the batch runs as a round of its repartition topics."""
        ...

    def threads(self, tasks: int, stopping: Event) -> AbstractContextManager[TakenThreads | None]:
        """Return a context with the stream threads of the batch; None: `stopping` was set first.

        Enter it after the batch has waited for its round: a reader and its writer never wait for each other.
        """
        ...

    def extra_ranges(self, ends: Offsets) -> OffsetRanges:
        """Return the offset ranges that a batch up to `ends` reads in addition, to complete rounds."""
        ...

    def read_ranges(self, ranges: OffsetRanges, consumer_group: str) -> DataFrame:
        """Return the records of `ranges`; raises `KafkaException`."""
        ...

    def tick(self) -> DataFrame:
        """Return the row that advances the wall-clock time."""
        ...

    def step_planner(self) -> StepPlanner:
        """Return the planner of a query that reads several topics."""
        ...

    def expansion(self) -> InputExpansion | None:
        """Return the input partitions of a query with processors; None = each task has one partition."""
        ...

    def batch_offsets(self, batch: int) -> tuple[Offsets, Offsets] | None:
        """Return the start and end offsets of Spark's batch; None if the checkpoint does not show them."""
        ...

    def first_offsets(self) -> Offsets:
        """Return the first offsets of the input partitions; raises `KafkaException`."""
        ...

    def end_offsets(self) -> Offsets:
        """Return the present end offsets of the input partitions; raises `KafkaException`."""
        ...

    def report(self, batch: int, results: Sequence[BatchResult]) -> None:
        """Record the tasks' results of a batch or step."""
        ...

    def report_positions(self, positions: Offsets) -> None:
        """Record up to where the input is processed after a step."""
        ...

    def report_wait(self, batch: int) -> None:
        """Record that all tasks with records wait for a record of another topic (`max.task.idle.ms`)."""
        ...

    def finish_batch(self) -> None:
        """Record that all records of the batch are processed."""
        ...
