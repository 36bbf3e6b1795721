"""What the query of each sub-topology reads and runs (`QuerySpec`), from the current layout of the topics.

`QueryBatches` are its batches: their requests, what they wait for, and their results.
"""

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from threading import Event
from types import MappingProxyType

import attrs
import structlog

from headwater_spark.driver.failures import Failure
from headwater_spark.driver.layout import Layout, Programs
from headwater_spark.driver.outages import Brokers
from headwater_spark.driver.placement.task_placement import PlacedTasks
from headwater_spark.driver.queries.progress import Progress
from headwater_spark.driver.queries.query_input import QueryInput, QueryServices
from headwater_spark.driver.spark_session.session import is_remote
from headwater_spark.driver.threads.stream_threads import TakenThreads
from headwater_spark.driver.topics.topic_check import TopicCheck
from headwater_spark.engine.program import SubtopologyProgram
from headwater_spark.engine.records import OffsetRanges, Offsets
from headwater_spark.engine.wiring import ignores_values
from headwater_spark.worker.messages import BatchRequest, BatchResult

_log = structlog.get_logger(__name__)


@attrs.frozen(kw_only=True, eq=False)
class QueryBatches:
    """The batches of one query, and their progress.

    `row_topic` is the topic of all rows, if they need no column for it.
    """

    input: QueryInput
    progress: Progress
    row_topic: str | None

    @property
    def subtopology(self) -> str:
        return self.input.subtopology

    @property
    def brokers(self) -> Brokers:
        return self._services.brokers

    @property
    def _services(self) -> QueryServices:
        return self.input.services

    def create_request(self, batch: int, end_offsets: Offsets = MappingProxyType({})) -> BatchRequest:
        """Return the request for the tasks; partitions may have been added since the last batch.

        `end_offsets` are those after the batch. A request for a step of the batch has none.
        """
        layout, services = self.input.current_layout(), self._services
        self.progress.begin_batch(self.subtopology, batch, end_offsets)
        is_expanded = layout.is_expanded(self.subtopology)
        client = services.client if services.client.topic else None  # without the permission: none
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
            proof_seconds=services.proof_seconds,
            client="" if client is None else client.process,
            client_topic="" if client is None else client.topic,
            client_at=0.0 if client is None else client.proved_at,
        )

    @contextmanager
    def run_round(self) -> Iterator[None]:
        """Return a context in which the batch runs as a round of its repartition topics."""
        try:
            with self._services.rounds.round(self.subtopology):
                yield
        finally:
            self.progress.pause_batch(self.subtopology)

    @contextmanager
    def take_threads(self, tasks: int, stopping: Event) -> Iterator[TakenThreads | None]:
        """Return a context with the stream threads of the batch; None: `stopping` was set first.

        Enter it after the batch has waited for its round: a reader and its writer never wait for each other.
        """
        self.progress.record_wait(self.subtopology, for_thread=True)
        with self._services.threads.take_threads(self.subtopology, tasks, stopping) as taken:
            self.progress.record_wait(self.subtopology, for_thread=False)
            yield taken

    def place_tasks(self, tasks: int) -> PlacedTasks | None:
        """Return where the tasks of the batch run; None: wherever Spark has a free core."""
        placement = self._services.placement
        return None if placement is None else placement.locate_tasks(self.subtopology, tasks)

    def await_round(self, ends: Offsets) -> OffsetRanges:
        """Return the offset ranges that a batch up to `ends` reads in addition, to complete rounds."""
        self.progress.record_wait(self.subtopology, in_round=True)
        topics = self.input.current_layout().topics(self.subtopology)
        ranges = self._services.rounds.extra_ranges(topics, ends)
        self.progress.record_wait(self.subtopology, in_round=False)
        return ranges

    def record_results(self, batch: int, results: Sequence[BatchResult]) -> None:
        """Record the tasks' results of a batch or step."""
        self.progress.record_batch(self.subtopology, batch, results)
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
                self.input.request_check()

    def record_positions(self, positions: Offsets) -> None:
        """Record up to where the input is processed after a step."""
        self.progress.set_read_to(self.subtopology, positions)

    def record_wait(self, batch: int, *, for_partitions: bool) -> None:
        """Record what all tasks with records wait for.

        These are records of another topic (`max.task.idle.ms`), or partitions that are added to the layout.
        """
        self.progress.wait_for_input(self.subtopology, batch, for_partitions=for_partitions)

    def finish_batch(self) -> None:
        """Record that all records of the batch are processed."""
        self.progress.finish_batch(self.subtopology)

    def handle_failure(
        self, failure: Failure | None, thread: str, failures_in_a_row: int, outage_ms: int | None = None
    ) -> int | None:
        """Handle a failure of stream thread `thread` (`uncaught.exception.handler`); call it once for each.

        Return how many milliseconds to wait before the restart; None = never. `outage_ms` as in
        `UncaughtExceptions.backoff_ms`.
        """
        exceptions = self._services.exceptions
        return exceptions.backoff_ms(self.subtopology, failure, thread, failures_in_a_row, outage_ms)


@attrs.frozen(kw_only=True, eq=False)
class QuerySpec:
    """One query. These values are fixed; `input` and `batches` use the current layout.

    - `name`: the name of the query in Spark.
    - `reads_single_topic`: Spark's partitions are the partitions of the tasks.
    - `reads_in_steps`: batches of Spark may be larger than the limit, and are then read in steps.
    - `row_topic`: the topic of all rows, if they need no column for it: they are of one topic, without ticks.
    - `reads_values`: the tasks read the values of records, not only whether there are any.
    - `ticks`: the input has ticks, because the sub-topology may schedule wall-clock punctuation.
    - `native_program`: the program, if Spark SQL evaluates it.
    """

    name: str
    reads_single_topic: bool
    reads_in_steps: bool
    row_topic: str | None
    reads_values: bool
    ticks: bool
    native_program: SubtopologyProgram | None
    input: QueryInput
    batches: QueryBatches


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
        """Return the query of a sub-topology, as the current layout describes it."""
        program, described = self.layout.programs[subtopology], self.layout.inputs[subtopology]
        reads_single_topic = len(described.topics) == 1 and not described.patterns
        reads_in_steps = not reads_single_topic or (not described.ticks and self._reads_ranges)
        row_topic = described.topics[0] if reads_single_topic and not described.ticks else None
        input_ = self._query_input(
            subtopology, reads_single_topic=reads_single_topic, reads_in_steps=reads_in_steps
        )
        return QuerySpec(
            name=f"{self._services.application} sub-topology {subtopology}",
            reads_single_topic=reads_single_topic,
            reads_in_steps=reads_in_steps,
            row_topic=row_topic,
            reads_values=not ignores_values(program),
            ticks=described.ticks,
            native_program=program if subtopology in self.layout.native else None,
            input=input_,
            batches=QueryBatches(input=input_, progress=self.progress, row_topic=row_topic),
        )

    def end_offsets(self, subtopology: str) -> Offsets:
        """Return the present end offsets of the input partitions; raises `KafkaException`."""
        return self._query_input(subtopology).end_offsets()

    @property
    def _reads_ranges(self) -> bool:
        """Whether offset ranges are read without a plan of Spark SQL: steps save nothing otherwise."""
        services = self._services
        return services.placement is None and not is_remote(services.settings.checkpoint)

    def _query_input(
        self, subtopology: str, *, reads_single_topic: bool = False, reads_in_steps: bool = True
    ) -> QueryInput:
        return QueryInput(
            services=self._services,
            subtopology=subtopology,
            reads_single_topic=reads_single_topic,
            reads_in_steps=reads_in_steps,
            current_layout=lambda: self.layout,
            request_check=self.check_requested.set,
        )
