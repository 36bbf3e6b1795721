"""What the queries of an application need at run time, from the current layout."""

import time
from collections.abc import Iterator, Sequence
from contextlib import AbstractContextManager, contextmanager
from threading import Event

import attrs
import structlog
from pyspark.sql import DataFrame, SparkSession

from spark_jobs.runtime.driver.input.expansion import InputExpansion, check_no_move, check_processors
from spark_jobs.runtime.driver.input.rounds import RepartitionRounds
from spark_jobs.runtime.driver.input.sources import KafkaSource, batch_end_offsets, read_ranges, tick
from spark_jobs.runtime.driver.input.step_planner import OffsetRanges, StepPlanner
from spark_jobs.runtime.driver.layout import Layout, Programs
from spark_jobs.runtime.driver.offsets import GroupOffsets, Offsets
from spark_jobs.runtime.driver.processor_move.moves import announcements
from spark_jobs.runtime.driver.queries.progress import Progress
from spark_jobs.runtime.driver.queries.query_spec import QuerySpec
from spark_jobs.runtime.driver.run_settings import RunSettings
from spark_jobs.runtime.driver.threads.stream_threads import StreamThreads, TakenThreads
from spark_jobs.runtime.driver.threads.uncaught_exceptions import UncaughtExceptions
from spark_jobs.runtime.driver.topics.topic_check import TopicCheck
from spark_jobs.runtime.engine.program import SubtopologyProgram
from spark_jobs.runtime.engine.program.settings import max_task_idle_ms
from spark_jobs.runtime.engine.records import TopicPartition
from spark_jobs.runtime.engine.wiring import ignores_values
from spark_jobs.runtime.worker.messages import BatchRequest, BatchResult

_log = structlog.get_logger(__name__)


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
    _threads: StreamThreads
    _exceptions: UncaughtExceptions
    _exactly_once: bool
    layout: Layout = attrs.field(factory=Layout, init=False)
    progress: Progress = attrs.field(factory=Progress, init=False)
    check_requested: Event = attrs.field(factory=Event, init=False)

    @property
    def has_threads(self) -> bool:
        """Whether a stream thread is alive."""
        return self._threads.alive > 0

    def update(self, check: TopicCheck) -> None:
        """Use the topics of `check` from the next batch on."""
        programs = self._programs(check.compiled)
        self.layout = self.layout.updated(check.compiled, programs, check.partition_counts, check.topic_ids)
        self._rounds.update(check.compiled, check.partition_counts)

    def spec(self, subtopology: str) -> QuerySpec:
        program = self.layout.programs[subtopology]
        return _LayoutQuerySpec(
            specs=self,
            subtopology=subtopology,
            name=f"{self._application} sub-topology {subtopology}",
            reads_single_topic=self.reads_single_topic(subtopology),
            row_topic=self.row_topic(subtopology),
            reads_values=not ignores_values(program),
            ticks=self.layout.inputs[subtopology].ticks,
            native_program=program if subtopology in self.layout.native else None,
        )

    def checkpoint(self, subtopology: str) -> str:
        folder = self._settings.checkpoint.rstrip("/")
        return f"{folder}/{self._application}/{subtopology}/{self.layout.topic_digest(subtopology)}"

    def source(self, subtopology: str, forgotten: Offsets) -> KafkaSource:
        layout = self.layout
        partitions = layout.input_partitions(subtopology)
        check_no_move(self._application, self._offsets.move_mark(self._marked(subtopology)))
        processed_by = self._offsets.processors(partitions)
        check_processors(self._application, layout, subtopology, processed_by)
        now_ms = time.time_ns() // 1_000_000
        return KafkaSource(
            connection=self._settings.connection,
            topics=layout.inputs[subtopology].topics,
            patterns=layout.inputs[subtopology].patterns,
            start_offsets=self._offsets.start_offsets(layout.offset_resets(subtopology), now_ms, forgotten),
            exactly_once=self._exactly_once,
            # Batches of several topics are divided in the order of time (`step_planner`), not by Spark.
            records_at_once=self._settings.records_at_once if self.reads_single_topic(subtopology) else None,
        )

    def _marked(self, subtopology: str) -> list[TopicPartition]:
        """Return the partitions of which none may have a mark.

        With a task for each partition, also those that announce an expansion: their state is not complete.
        """
        partitions = self.layout.input_partitions(subtopology)
        if subtopology in self.layout.processors:
            return partitions
        return [*partitions, *announcements(self.layout.programs[subtopology].changelogs.values())]

    def read_ranges(self, subtopology: str, ranges: OffsetRanges, consumer_group: str) -> DataFrame:
        source = KafkaSource(
            connection=self._settings.connection,
            topics=self.layout.inputs[subtopology].topics,
            start_offsets={},
            exactly_once=self._exactly_once,
            consumer_group=f"{self._application}-{subtopology}-{consumer_group}",
        )
        return read_ranges(self._spark, source, ranges)

    def tick(self) -> DataFrame:
        return tick(self._spark)

    def reads_single_topic(self, subtopology: str) -> bool:
        input_ = self.layout.inputs[subtopology]
        return len(input_.topics) == 1 and not input_.patterns

    def row_topic(self, subtopology: str) -> str | None:
        input_ = self.layout.inputs[subtopology]
        return input_.topics[0] if self.reads_single_topic(subtopology) and not input_.ticks else None

    def step_planner(self, subtopology: str) -> StepPlanner:
        config = self.layout.programs[subtopology].application.config
        processors = self.layout.processors.get(subtopology)
        return StepPlanner(
            self._settings.records_at_once,
            max_task_idle_ms(config),
            None if processors is None else processors.owner,
        )

    def expansion(self, subtopology: str) -> InputExpansion | None:
        processors = self.layout.processors.get(subtopology)
        if processors is None:
            return None
        return InputExpansion(
            subtopology=subtopology,
            processors=processors,
            layout=lambda: self.layout,
            offsets=self._offsets,
            request_check=self.check_requested.set,
        )

    def batch_offsets(self, subtopology: str, batch: int) -> tuple[Offsets, Offsets] | None:
        checkpoint = self.checkpoint(subtopology)
        starts = batch_end_offsets(checkpoint, batch - 1) if batch else {}
        ends = batch_end_offsets(checkpoint, batch)
        return (starts, ends) if ends and (starts or not batch) else None

    def first_offsets(self, subtopology: str) -> Offsets:
        return self._offsets.first_offsets(self._input_partitions(subtopology))

    def end_offsets(self, subtopology: str) -> Offsets:
        read = self._offsets.end_offsets if self._exactly_once else self._offsets.written_end_offsets
        return read(self._input_partitions(subtopology))

    def _input_partitions(self, subtopology: str) -> list[TopicPartition]:
        return self.layout.input_partitions(subtopology)

    def request(self, subtopology: str, batch: int, *, in_step: bool) -> BatchRequest:
        layout = self.layout
        end_offsets = {} if in_step else batch_end_offsets(self.checkpoint(subtopology), batch)
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
            row_topic=self.row_topic(subtopology),
            is_native=subtopology in layout.native,
            processors=layout.processors[subtopology] if layout.is_expanded(subtopology) else None,
        )

    def backoff_ms(
        self, subtopology: str, failure: BaseException | None, thread: str, failures_in_a_row: int
    ) -> int | None:
        return self._exceptions.backoff_ms(subtopology, failure, thread, failures_in_a_row)

    @contextmanager
    def threads(self, subtopology: str, tasks: int, stopping: Event) -> Iterator[TakenThreads | None]:
        self.progress.wait_for_thread(subtopology, waits=True)
        with self._threads.taken(subtopology, tasks, stopping) as taken:
            self.progress.wait_for_thread(subtopology, waits=False)
            yield taken

    @contextmanager
    def round(self, subtopology: str) -> Iterator[None]:
        try:
            with self._rounds.round(subtopology):
                yield
        finally:
            self.progress.pause_batch(subtopology)

    def extra_ranges(self, subtopology: str, ends: Offsets) -> OffsetRanges:
        self.progress.wait_for_round(subtopology, waits=True)
        ranges = self._rounds.extra_ranges(self.layout.topics(subtopology), ends)
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
    row_topic: str | None
    reads_values: bool
    ticks: bool
    native_program: SubtopologyProgram | None

    def backoff_ms(self, failure: BaseException | None, thread: str, failures_in_a_row: int) -> int | None:
        return self.specs.backoff_ms(self.subtopology, failure, thread, failures_in_a_row)

    def checkpoint(self) -> str:
        return self.specs.checkpoint(self.subtopology)

    def source(self, forgotten: Offsets) -> KafkaSource:
        return self.specs.source(self.subtopology, forgotten)

    def request(self, batch: int, *, in_step: bool = False) -> BatchRequest:
        return self.specs.request(self.subtopology, batch, in_step=in_step)

    def round(self) -> AbstractContextManager[None]:
        return self.specs.round(self.subtopology)

    def threads(self, tasks: int, stopping: Event) -> AbstractContextManager[TakenThreads | None]:
        return self.specs.threads(self.subtopology, tasks, stopping)

    def extra_ranges(self, ends: Offsets) -> OffsetRanges:
        return self.specs.extra_ranges(self.subtopology, ends)

    def read_ranges(self, ranges: OffsetRanges, consumer_group: str) -> DataFrame:
        return self.specs.read_ranges(self.subtopology, ranges, consumer_group)

    def tick(self) -> DataFrame:
        return self.specs.tick()

    def step_planner(self) -> StepPlanner:
        return self.specs.step_planner(self.subtopology)

    def expansion(self) -> InputExpansion | None:
        return self.specs.expansion(self.subtopology)

    def batch_offsets(self, batch: int) -> tuple[Offsets, Offsets] | None:
        return self.specs.batch_offsets(self.subtopology, batch)

    def first_offsets(self) -> Offsets:
        return self.specs.first_offsets(self.subtopology)

    def end_offsets(self) -> Offsets:
        return self.specs.end_offsets(self.subtopology)

    def report(self, batch: int, results: Sequence[BatchResult]) -> None:
        self.specs.report(self.subtopology, batch, results)

    def finish_batch(self) -> None:
        self.specs.progress.finish_batch(self.subtopology)

    def report_positions(self, positions: Offsets) -> None:
        self.specs.progress.set_read_to(self.subtopology, positions)

    def report_wait(self, batch: int) -> None:
        self.specs.progress.wait_for_topics(self.subtopology, batch)
