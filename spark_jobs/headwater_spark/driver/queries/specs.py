"""What the queries of an application need at run time, from the current layout."""

import time
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from threading import Event

import attrs
import structlog
from pyspark.sql import DataFrame, SparkSession

from headwater.model.move_marks import announcements
from headwater_spark.driver.active_client.membership import ActiveClient
from headwater_spark.driver.failures import Failure
from headwater_spark.driver.input.expansion import InputExpansion, check_no_move, check_processors
from headwater_spark.driver.input.rounds import RepartitionRounds
from headwater_spark.driver.input.sources import KafkaSource, batch_end_offsets, read_ranges, tick
from headwater_spark.driver.input.step_planner import OffsetRanges, StepPlanner
from headwater_spark.driver.layout import Layout, Programs
from headwater_spark.driver.offsets import GroupOffsets, Offsets
from headwater_spark.driver.queries.progress import Progress
from headwater_spark.driver.queries.query_spec import QuerySpec
from headwater_spark.driver.run_settings import RunSettings
from headwater_spark.driver.threads.stream_threads import StreamThreads, TakenThreads
from headwater_spark.driver.threads.uncaught_exceptions import UncaughtExceptions
from headwater_spark.driver.topics.topic_check import TopicCheck
from headwater_spark.engine.program import SubtopologyProgram
from headwater_spark.engine.program.settings import max_task_idle_ms
from headwater_spark.engine.records import TopicPartition
from headwater_spark.engine.wiring import ignores_values
from headwater_spark.worker.messages import BatchRequest, BatchResult

_log = structlog.get_logger(__name__)


@attrs.frozen(kw_only=True)
class QueryServices:
    """What all queries of an application share."""

    application: str
    spark: SparkSession
    settings: RunSettings
    offsets: GroupOffsets
    rounds: RepartitionRounds
    threads: StreamThreads
    exceptions: UncaughtExceptions
    exactly_once: bool
    client: ActiveClient | None = None
    """None: brokers fence clients, so several may be active."""


@attrs.define(kw_only=True, eq=False)
class QuerySpecs:
    """The layout and the progress of all queries. `update` changes the layout, from any thread.

    `check_requested` is set when a record waits for a partition: it may have been added.
    """

    _services: QueryServices
    _programs: Programs
    layout: Layout = attrs.field(factory=Layout, init=False)
    progress: Progress = attrs.field(factory=Progress, init=False)
    check_requested: Event = attrs.field(factory=Event, init=False)

    @property
    def has_threads(self) -> bool:
        """Whether a stream thread is alive."""
        return self._services.threads.alive > 0

    @property
    def source_topics(self) -> frozenset[str]:
        """The topics that the sub-topologies with a query read."""
        return frozenset().union(*map(self.layout.topics, self.layout.queries))

    def update(self, check: TopicCheck) -> None:
        """Use the topics of `check` from the next batch on."""
        programs = self._programs(check.compiled)
        self.layout = self.layout.updated(check.compiled, programs, check.partition_counts, check.topic_ids)
        self._services.rounds.update(check.compiled, check.partition_counts)

    def spec(self, subtopology: str) -> QuerySpec:
        program, input_ = self.layout.programs[subtopology], self.layout.inputs[subtopology]
        reads_single_topic = len(input_.topics) == 1 and not input_.patterns
        return SubtopologyQuerySpec(
            services=self._services,
            specs=self,
            subtopology=subtopology,
            name=f"{self._services.application} sub-topology {subtopology}",
            reads_single_topic=reads_single_topic,
            row_topic=input_.topics[0] if reads_single_topic and not input_.ticks else None,
            reads_values=not ignores_values(program),
            ticks=input_.ticks,
            native_program=program if subtopology in self.layout.native else None,
        )

    def end_offsets(self, subtopology: str) -> Offsets:
        """Return the present end offsets of the input partitions; raises `KafkaException`."""
        offsets = self._services.offsets
        read = offsets.end_offsets if self._services.exactly_once else offsets.written_end_offsets
        return read(self.layout.input_partitions(subtopology))


@attrs.frozen(kw_only=True, eq=False)
class SubtopologyQuerySpec:
    """The `QuerySpec` of one sub-topology."""

    services: QueryServices
    specs: QuerySpecs
    subtopology: str
    name: str
    reads_single_topic: bool
    row_topic: str | None
    reads_values: bool
    ticks: bool
    native_program: SubtopologyProgram | None

    @property
    def _layout(self) -> Layout:
        return self.specs.layout

    @property
    def _progress(self) -> Progress:
        return self.specs.progress

    def backoff_ms(self, failure: Failure | None, thread: str, failures_in_a_row: int) -> int | None:
        return self.services.exceptions.backoff_ms(self.subtopology, failure, thread, failures_in_a_row)

    def checkpoint(self) -> str:
        folder = self.services.settings.checkpoint.rstrip("/")
        digest = self._layout.topic_digest(self.subtopology)
        return f"{folder}/{self.services.application}/{self.subtopology}/{digest}"

    def source(self, forgotten: Offsets) -> KafkaSource:
        application, offsets = self.services.application, self.services.offsets
        if self.services.client is not None:
            self.services.client.check()
        layout = self._layout
        check_no_move(application, offsets.move_mark(self._marked(layout)))
        processed_by = offsets.processors(layout.input_partitions(self.subtopology))
        check_processors(application, layout, self.subtopology, processed_by)
        now_ms = time.time_ns() // 1_000_000
        settings, input_ = self.services.settings, layout.inputs[self.subtopology]
        return KafkaSource(
            connection=settings.connection,
            topics=input_.topics,
            patterns=input_.patterns,
            start_offsets=offsets.start_offsets(layout.offset_resets(self.subtopology), now_ms, forgotten),
            exactly_once=self.services.exactly_once,
            # Batches of several topics are divided in the order of time (`step_planner`), not by Spark.
            records_at_once=settings.records_at_once if self.reads_single_topic else None,
        )

    def _marked(self, layout: Layout) -> list[TopicPartition]:
        """Return the partitions of which none may have a mark.

        With a task for each partition, also those that announce an expansion: their state is not complete.
        """
        partitions = layout.input_partitions(self.subtopology)
        if self.subtopology in layout.processors:
            return partitions
        return [*partitions, *announcements(layout.programs[self.subtopology].changelogs.values())]

    def request(self, batch: int, *, in_step: bool = False) -> BatchRequest:
        layout, services = self._layout, self.services
        end_offsets = {} if in_step else batch_end_offsets(self.checkpoint(), batch)
        self._progress.begin_batch(self.subtopology, batch, end_offsets)
        is_expanded = layout.is_expanded(self.subtopology)
        client = services.client if services.client is not None and services.client.topic else None
        return BatchRequest(
            application=services.application,
            group=services.application,
            connection=services.settings.connection,
            program=layout.programs[self.subtopology],
            global_programs=layout.global_programs,
            layout_version=layout.version,
            state_folder=services.settings.state_folder / services.application,
            partition_counts=layout.task_partition_counts(self.subtopology),
            end_offsets=end_offsets,
            shared_topics=services.rounds.shared_topics,
            exactly_once=services.exactly_once,
            row_topic=self.row_topic,
            is_native=self.subtopology in layout.native,
            processors=layout.processors[self.subtopology] if is_expanded else None,
            client="" if client is None else client.process,
            client_topic="" if client is None else client.topic,
            client_at=0.0 if client is None else client.proved_at,
        )

    @contextmanager
    def round(self) -> Iterator[None]:
        try:
            with self.services.rounds.round(self.subtopology):
                yield
        finally:
            self._progress.pause_batch(self.subtopology)

    @contextmanager
    def threads(self, tasks: int, stopping: Event) -> Iterator[TakenThreads | None]:
        self._progress.wait_for_thread(self.subtopology, waits=True)
        with self.services.threads.taken(self.subtopology, tasks, stopping) as taken:
            self._progress.wait_for_thread(self.subtopology, waits=False)
            yield taken

    def extra_ranges(self, ends: Offsets) -> OffsetRanges:
        self._progress.wait_for_round(self.subtopology, waits=True)
        ranges = self.services.rounds.extra_ranges(self._layout.topics(self.subtopology), ends)
        self._progress.wait_for_round(self.subtopology, waits=False)
        return ranges

    def read_ranges(self, ranges: OffsetRanges, consumer_group: str) -> DataFrame:
        source = KafkaSource(
            connection=self.services.settings.connection,
            topics=self._layout.inputs[self.subtopology].topics,
            start_offsets={},
            exactly_once=self.services.exactly_once,
            consumer_group=f"{self.services.application}-{self.subtopology}-{consumer_group}",
        )
        return read_ranges(self.services.spark, source, ranges)

    def tick(self) -> DataFrame:
        return tick(self.services.spark)

    def step_planner(self) -> StepPlanner:
        config = self._layout.programs[self.subtopology].application.config
        processors = self._layout.processors.get(self.subtopology)
        return StepPlanner(
            self.services.settings.records_at_once,
            max_task_idle_ms(config),
            None if processors is None else processors.owner,
        )

    def expansion(self) -> InputExpansion | None:
        processors = self._layout.processors.get(self.subtopology)
        if processors is None:
            return None
        return InputExpansion(
            subtopology=self.subtopology,
            processors=processors,
            layout=lambda: self._layout,
            offsets=self.services.offsets,
            request_check=self.specs.check_requested.set,
        )

    def batch_offsets(self, batch: int) -> tuple[Offsets, Offsets] | None:
        checkpoint = self.checkpoint()
        starts = batch_end_offsets(checkpoint, batch - 1) if batch else {}
        ends = batch_end_offsets(checkpoint, batch)
        return (starts, ends) if ends and (starts or not batch) else None

    def first_offsets(self) -> Offsets:
        return self.services.offsets.first_offsets(self._layout.input_partitions(self.subtopology))

    def end_offsets(self) -> Offsets:
        return self.specs.end_offsets(self.subtopology)

    def report(self, batch: int, results: Sequence[BatchResult]) -> None:
        self._progress.record_batch(self.subtopology, batch, results)
        for result in results:
            if result.handler_message is not None:
                _log.warning(
                    "records dropped by an exception handler",
                    subtopology=self.subtopology,
                    latest=result.handler_message,
                )
            if result.missing_partition is not None:
                topic, partition, _ = result.missing_partition
                _log.info("record waits for a new partition", topic=topic, partition=partition)
                self.specs.check_requested.set()

    def report_positions(self, positions: Offsets) -> None:
        self._progress.set_read_to(self.subtopology, positions)

    def report_wait(self, batch: int) -> None:
        self._progress.wait_for_topics(self.subtopology, batch)

    def finish_batch(self) -> None:
        self._progress.finish_batch(self.subtopology)
