"""What the queries of an application need at run time, from the current layout."""

import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import AbstractContextManager, contextmanager
from threading import Event
from typing import Protocol

import attrs
import structlog
from pyspark.sql import DataFrame, SparkSession

from infra.model.compiled import CompiledApplication
from spark_jobs.runtime.driver.failures import RestartPolicy
from spark_jobs.runtime.driver.layout import Layout
from spark_jobs.runtime.driver.offsets import GroupOffsets, Offsets
from spark_jobs.runtime.driver.progress import Progress
from spark_jobs.runtime.driver.rounds import OffsetRanges, RepartitionRounds
from spark_jobs.runtime.driver.run_settings import RunSettings
from spark_jobs.runtime.driver.sources import KafkaSource, batch_end_offsets, read_ranges
from spark_jobs.runtime.driver.topic_check import TopicCheck
from spark_jobs.runtime.engine.program import SubtopologyProgram
from spark_jobs.runtime.worker.messages import BatchRequest, BatchResult

Programs = Callable[[CompiledApplication], tuple[SubtopologyProgram, ...]]
_log = structlog.get_logger(__name__)


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
    def ticks(self) -> bool:
        """The input has ticks, because the sub-topology may schedule wall-clock punctuation."""
        ...

    @property
    def native_program(self) -> SubtopologyProgram | None:
        """The program, if Spark SQL evaluates it."""
        ...

    @property
    def restarts(self) -> RestartPolicy: ...

    def checkpoint(self) -> str:
        """Return the checkpoint folder; it changes when a source topic is re-created."""
        ...

    def source(self, forgotten: Offsets) -> KafkaSource:
        """Return the input with its start offsets; raises `ProblemsError` or `KafkaException`.

        `forgotten` are the last offsets of an earlier start; those without a committed offset are used.
        """
        ...

    def request(self, batch: int) -> BatchRequest:
        """Return the request for the tasks; partitions may have been added since the last batch."""
        ...

    def round(self) -> AbstractContextManager[None]:
        """Return a context in which the batch runs as a round of its repartition topics."""
        ...

    def extra_ranges(self, request: BatchRequest) -> OffsetRanges:
        """Return the offset ranges that this batch reads in addition, to complete the writers' rounds."""
        ...

    def read_ranges(self, ranges: OffsetRanges) -> DataFrame: ...

    def report(self, batch: int, results: Sequence[BatchResult]) -> None:
        """Record the tasks' results of a batch."""
        ...

    def finish_batch(self) -> None:
        """Record that all records of the batch are processed."""
        ...


@attrs.define(kw_only=True, eq=False)
class QuerySpecs:
    """Creates the specs of all queries. `update` changes the layout, from any thread.

    `check_requested` is set when a record waits for a partition: it may have been added.
    """

    _application: str
    _spark: SparkSession
    _programs: Programs
    _settings: RunSettings
    _offsets: GroupOffsets
    _rounds: RepartitionRounds
    _exactly_once: bool
    layout: Layout = attrs.field(factory=Layout, init=False)
    progress: Progress = attrs.field(factory=Progress, init=False)
    check_requested: Event = attrs.field(factory=Event, init=False)

    def update(self, check: TopicCheck) -> None:
        """Use the topics of `check` from the next batch on."""
        programs = self._programs(check.compiled)
        self.layout = self.layout.updated(check.compiled, programs, check.partition_counts, check.topic_ids)
        self._rounds.update(check.compiled, check.partition_counts)

    def spec(self, subtopology: str) -> QuerySpec:
        input_ = self.layout.inputs[subtopology]
        is_native = subtopology in self.layout.native
        return _LayoutQuerySpec(
            specs=self,
            subtopology=subtopology,
            name=f"{self._application} sub-topology {subtopology}",
            reads_single_topic=len(input_.topics) == 1 and not input_.patterns,
            ticks=input_.ticks,
            native_program=self.layout.programs[subtopology] if is_native else None,
            restarts=self._settings.restarts,
        )

    def checkpoint(self, subtopology: str) -> str:
        folder = self._settings.checkpoint.rstrip("/")
        return f"{folder}/{self._application}/{subtopology}/{self.layout.topic_digest(subtopology)}"

    def source(self, subtopology: str, forgotten: Offsets) -> KafkaSource:
        layout = self.layout
        now_ms = time.time_ns() // 1_000_000
        return KafkaSource(
            connection=self._settings.connection,
            topics=layout.inputs[subtopology].topics,
            patterns=layout.inputs[subtopology].patterns,
            start_offsets=self._offsets.start_offsets(layout.offset_resets(subtopology), now_ms, forgotten),
            exactly_once=self._exactly_once,
            records_at_once=self._settings.records_at_once,
        )

    def read_ranges(self, subtopology: str, ranges: OffsetRanges) -> DataFrame:
        return read_ranges(self._spark, self.source(subtopology, {}), ranges)

    def request(self, subtopology: str, batch: int) -> BatchRequest:
        layout = self.layout
        end_offsets = batch_end_offsets(self.checkpoint(subtopology), batch)
        self.progress.begin_batch(subtopology, batch, end_offsets)
        return BatchRequest(
            application=self._application,
            group=self._application,
            connection=self._settings.connection,
            program=layout.programs[subtopology],
            global_programs=layout.global_programs,
            layout_version=layout.version,
            state_folder=self._settings.state_folder / self._application,
            partition_counts=layout.task_partition_counts(subtopology),
            end_offsets=end_offsets,
            shared_topics=self._rounds.shared_topics,
            exactly_once=self._exactly_once,
            is_native=subtopology in layout.native,
        )

    @contextmanager
    def round(self, subtopology: str) -> Iterator[None]:
        try:
            with self._rounds.round(subtopology):
                yield
        finally:
            self.progress.pause_batch(subtopology)

    def extra_ranges(self, subtopology: str, request: BatchRequest) -> OffsetRanges:
        self.progress.wait_for_round(subtopology, waits=True)
        ranges = self._rounds.extra_ranges(self.layout.topics(subtopology), request.end_offsets)
        self.progress.wait_for_round(subtopology, waits=False)
        return ranges

    def report(self, subtopology: str, batch: int, results: Sequence[BatchResult]) -> None:
        self.progress.record_batch(subtopology, batch, results)
        for result in results:
            if result.handler_message is not None:
                _log.warning(
                    "records dropped by an exception handler",
                    subtopology=subtopology,
                    latest=result.handler_message,
                )
            if result.missing_partition is not None:
                topic, partition, _ = result.missing_partition
                _log.info("record waits for a new partition", topic=topic, partition=partition)
                self.check_requested.set()


@attrs.frozen(kw_only=True, eq=False)
class _LayoutQuerySpec:
    """The `QuerySpec` of one sub-topology."""

    specs: QuerySpecs
    subtopology: str
    name: str
    reads_single_topic: bool
    ticks: bool
    native_program: SubtopologyProgram | None
    restarts: RestartPolicy

    def checkpoint(self) -> str:
        return self.specs.checkpoint(self.subtopology)

    def source(self, forgotten: Offsets) -> KafkaSource:
        return self.specs.source(self.subtopology, forgotten)

    def request(self, batch: int) -> BatchRequest:
        return self.specs.request(self.subtopology, batch)

    def round(self) -> AbstractContextManager[None]:
        return self.specs.round(self.subtopology)

    def extra_ranges(self, request: BatchRequest) -> OffsetRanges:
        return self.specs.extra_ranges(self.subtopology, request)

    def read_ranges(self, ranges: OffsetRanges) -> DataFrame:
        return self.specs.read_ranges(self.subtopology, ranges)

    def report(self, batch: int, results: Sequence[BatchResult]) -> None:
        self.specs.report(self.subtopology, batch, results)

    def finish_batch(self) -> None:
        self.specs.progress.finish_batch(self.subtopology)
