"""The batches of a query: their requests, what they wait for, and their results."""

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from threading import Event

import attrs
import structlog

from headwater_spark.driver.failures import Failure
from headwater_spark.driver.input.step_planner import OffsetRanges
from headwater_spark.driver.offsets import Offsets
from headwater_spark.driver.placement.task_placement import PlacedTasks
from headwater_spark.driver.queries.progress import Progress
from headwater_spark.driver.queries.query_input import QueryInput, QueryServices
from headwater_spark.driver.threads.stream_threads import TakenThreads
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
    def _services(self) -> QueryServices:
        return self.input.services

    def create_request(self, batch: int, *, in_step: bool = False) -> BatchRequest:
        """Return the request for the tasks; partitions may have been added since the last batch.

        With `in_step` it is for a step of the batch, and has no end offsets.
        """
        layout, services = self.input.current_layout(), self._services
        end_offsets = {} if in_step else self.input.batch_end_offsets(batch)
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
        self.progress.wait_for_thread(self.subtopology, waits=True)
        with self._services.threads.taken(self.subtopology, tasks, stopping) as taken:
            self.progress.wait_for_thread(self.subtopology, waits=False)
            yield taken

    def place_tasks(self, tasks: int) -> PlacedTasks | None:
        """Return where the tasks of the batch run; None: wherever Spark has a free core."""
        placement = self._services.placement
        return None if placement is None else placement.of(self.subtopology, tasks)

    def await_round(self, ends: Offsets) -> OffsetRanges:
        """Return the offset ranges that a batch up to `ends` reads in addition, to complete rounds."""
        self.progress.wait_for_round(self.subtopology, waits=True)
        topics = self.input.current_layout().topics(self.subtopology)
        ranges = self._services.rounds.extra_ranges(topics, ends)
        self.progress.wait_for_round(self.subtopology, waits=False)
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

    def record_wait(self, batch: int) -> None:
        """Record that all tasks with records wait for a record of another topic (`max.task.idle.ms`)."""
        self.progress.wait_for_topics(self.subtopology, batch)

    def finish_batch(self) -> None:
        """Record that all records of the batch are processed."""
        self.progress.finish_batch(self.subtopology)

    def handle_failure(self, failure: Failure | None, thread: str, failures_in_a_row: int) -> int | None:
        """Handle a failure of stream thread `thread` (`uncaught.exception.handler`); call it once for each.

        Return how many milliseconds to wait before the restart; None = never.
        """
        return self._services.exceptions.backoff_ms(self.subtopology, failure, thread, failures_in_a_row)
