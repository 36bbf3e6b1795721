"""What a query reads: records, the offsets of its input partitions, and how they are divided into steps."""

import time
from collections.abc import Callable, Iterable
from contextlib import suppress

import attrs
import structlog
from confluent_kafka import KafkaException
from pyspark.sql import DataFrame, SparkSession

from headwater.model.offset_metadata import announcement_partitions
from headwater_spark.driver.active_client.membership import ActiveClient
from headwater_spark.driver.input.expansion import InputExpansion, check_no_move, check_processors
from headwater_spark.driver.input.record_sizes import RecordSampler, RecordSizes
from headwater_spark.driver.input.rounds import RepartitionRounds
from headwater_spark.driver.input.sources import KafkaSource, batch_end_offsets, create_tick, read_ranges
from headwater_spark.driver.input.step_planner import StepPlanner
from headwater_spark.driver.layout import Layout
from headwater_spark.driver.offsets import GroupOffsets
from headwater_spark.driver.outages import Brokers
from headwater_spark.driver.placement.task_placement import TaskPlacement
from headwater_spark.driver.queries.known_commits import KnownCommits
from headwater_spark.driver.run_settings import RunSettings
from headwater_spark.driver.threads.stream_threads import StreamThreads
from headwater_spark.driver.threads.uncaught_exceptions import UncaughtExceptions
from headwater_spark.engine.program.settings import max_task_idle_ms
from headwater_spark.engine.records import Commits, OffsetRanges, Offsets, TopicPartition
from headwater_spark.worker import clients
from headwater_spark.worker.state_proof import PROOF_SECONDS

_log = structlog.get_logger(__name__)
_STEPS_OF_BATCH = 10
"""Steps of a micro-batch of one topic. Its checkpoint, and what Spark reports, are updated after them."""


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
    brokers: Brokers
    exactly_once: bool
    client: ActiveClient
    placement: TaskPlacement | None = None
    """None: there is only one executor, in the driver."""
    proof_seconds: float = PROOF_SECONDS
    """How long workers trust what the driver passes (`worker.state_proof`)."""


@attrs.frozen(kw_only=True, eq=False)
class QueryInput:
    """The input of one query; methods use the current layout, so their results may change.

    `current_layout` returns the layout. `request_check` requests a topic check: a record waits for a
    partition.
    """

    services: QueryServices
    subtopology: str
    reads_single_topic: bool
    reads_in_steps: bool
    current_layout: Callable[[], Layout]
    request_check: Callable[[], None]

    def checkpoint_folder(self) -> str:
        """Return the checkpoint folder; it changes when a source topic is re-created."""
        folder = self.services.settings.checkpoint.rstrip("/")
        digest = self.current_layout().topic_digest(self.subtopology)
        return f"{folder}/{self.services.application}/{self.subtopology}/{digest}"

    def create_source(
        self, forgotten: Offsets, known: KnownCommits | None = None
    ) -> tuple[KafkaSource, Commits]:
        """Return the input with its start offsets, and the commits that are compared later.

        Both are from one read: a commit in between would be taken for the right one. With exactly once, none
        are compared, because outdated workers cannot commit.

        Args:
            forgotten: The last offsets of an earlier start; those without a committed offset are used.
            known: What the tasks have committed; a commit of an outdated worker is repaired first.

        Raises:
            ProblemsError: Another client is active, or the committed offsets do not allow a start.
            KafkaException: The offsets cannot be read.
        """
        application, offsets = self.services.application, self.services.offsets
        self.services.client.check()
        layout = self.current_layout()
        resets = layout.offset_resets(self.subtopology)
        known = known or KnownCommits()
        found = offsets.commits([*{*resets, *known.partitions}], clients.REQUEST_SECONDS)
        replaced = known.replaced(found)
        offsets.commit_again(replaced)
        found = {each: commit for each, commit in {**found, **replaced}.items() if each in resets}
        check_no_move(application, offsets.move_mark(self._marked_partitions(layout)))
        processed_by = offsets.committed_processors(layout.input_partitions(self.subtopology))
        check_processors(application, layout, self.subtopology, processed_by)
        now_ms = time.time_ns() // 1_000_000
        settings, input_ = self.services.settings, layout.inputs[self.subtopology]
        last = {each: offset for each, (offset, _) in found.items()}
        starts = offsets.start_offsets(resets, now_ms, forgotten, last)
        last = {**{each: forgotten[each] for each in forgotten.keys() & starts.keys()}, **last}
        self._warn_of_lost_offsets(layout, resets.keys() - last.keys(), last)
        limit = settings.records_at_once * _STEPS_OF_BATCH
        if not self.reads_in_steps:
            limit = self.create_record_sizes().most_records(starts, settings.records_at_once)
        # What commits an added partition releases it, which may be too early (`InputExpansion`).
        released = processed_by.keys() if self.subtopology in layout.processors else starts.keys()
        source = KafkaSource(
            connection=settings.connection,
            topics=input_.topics,
            patterns=input_.patterns,
            start_offsets=starts,
            overtaken={each: last[each] for each in last.keys() & released if last[each] < starts[each]},
            exactly_once=self.services.exactly_once,
            # Batches of several topics are divided in the order of time (`step_planner`), not by Spark.
            records_at_once=limit if self.reads_single_topic else None,
        )
        return source, {} if self.services.exactly_once else found

    def _warn_of_lost_offsets(
        self, layout: Layout, missing: Iterable[TopicPartition], found: Iterable[TopicPartition]
    ) -> None:
        """Warn if a task has state, although no offset of its partitions is known: some are `missing`.

        They were deleted, or brokers have forgotten them: records may be counted again.
        """
        changelogs = layout.programs[self.subtopology].changelogs.values()
        tasks = {number for _, number in missing} - {number for _, number in found}
        if self.subtopology in layout.processors or not tasks or not changelogs:
            return
        with suppress(KafkaException):  # an added partition that changelog topics do not have yet
            ends = self.services.offsets.written_end_offsets(
                [(topic, task) for topic in changelogs for task in tasks]
            )
            if lost := sorted({task for (_, task), end in ends.items() if end}):
                _log.warning(
                    "committed offsets are missing, although there is state: records may be processed again",
                    subtopology=self.subtopology,
                    tasks=lost,
                    start="auto.offset.reset",
                )

    def _marked_partitions(self, layout: Layout) -> list[TopicPartition]:
        """Return the partitions of which none may have a mark.

        With a task for each partition, this includes partitions that announce an expansion: their state is
        not complete.
        """
        partitions = layout.input_partitions(self.subtopology)
        if self.subtopology in layout.processors:
            return partitions
        return [*partitions, *announcement_partitions(layout.programs[self.subtopology].changelogs.values())]

    def read_ranges(self, ranges: OffsetRanges, consumer_group: str) -> DataFrame:
        """Return the records of `ranges`; raises `KafkaException`."""
        source = KafkaSource(
            connection=self.services.settings.connection,
            topics=self.current_layout().inputs[self.subtopology].topics,
            start_offsets={},
            exactly_once=self.services.exactly_once,
            consumer_group=f"{self.services.application}-{self.subtopology}-{consumer_group}",
        )
        return read_ranges(self.services.spark, source, ranges)

    def read_tick(self) -> DataFrame:
        """Return the row that advances the wall-clock time."""
        return create_tick(self.services.spark)

    def create_step_planner(self) -> StepPlanner:
        """Return the planner of the steps of large batches."""
        layout = self.current_layout()
        processors = layout.processors.get(self.subtopology)
        return StepPlanner(
            self.services.settings.records_at_once,
            max_task_idle_ms(layout.programs[self.subtopology].application.config),
            None if processors is None else processors.owner,
        )

    def select_renewable(self, partitions: frozenset[TopicPartition]) -> frozenset[TopicPartition]:
        """Return the partitions whose offsets tasks may commit although they have read no record.

        A commit releases an added partition (`InputExpansion`). Raises `KafkaException`.
        """
        if self.subtopology not in self.current_layout().processors:
            return partitions
        return partitions & self.services.offsets.committed_processors(partitions).keys()

    def create_record_sizes(self) -> RecordSizes:
        """Return the sizes of the records that the query reads, as far as they are known: none are yet."""
        services = self.services
        return RecordSizes(
            services.settings.bytes_at_once,
            RecordSampler(services.settings.connection, services.application, services.exactly_once),
        )

    def create_expansion(self) -> InputExpansion | None:
        """Return the input partitions of a query with processors; None = each task has one partition."""
        processors = self.current_layout().processors.get(self.subtopology)
        if processors is None:
            return None
        return InputExpansion(
            subtopology=self.subtopology,
            processors=processors,
            layout=self.current_layout,
            offsets=self.services.offsets,
            request_check=self.request_check,
        )

    def batch_offsets(self, batch: int) -> tuple[Offsets, Offsets] | None:
        """Return the start and end offsets of Spark's batch; None if the checkpoint does not show them."""
        checkpoint = self.checkpoint_folder()
        starts = batch_end_offsets(checkpoint, batch - 1) if batch else {}
        ends = batch_end_offsets(checkpoint, batch)
        return (starts, ends) if ends and (starts or not batch) else None

    def batch_end_offsets(self, batch: int) -> Offsets:
        """Return the end offsets of Spark's batch; empty if the checkpoint does not show them."""
        return batch_end_offsets(self.checkpoint_folder(), batch)

    def has_partitions(self, partitions: Iterable[TopicPartition]) -> bool:
        """Return whether the layout has the partitions: Spark reads a partition as soon as it exists."""
        return set(partitions) <= set(self.current_layout().input_partitions(self.subtopology))

    def first_offsets(self) -> Offsets:
        """Return the first offsets of the input partitions; raises `KafkaException`."""
        return self.services.offsets.first_offsets(self.current_layout().input_partitions(self.subtopology))

    def end_offsets(self) -> Offsets:
        """Return the present end offsets of the input partitions; raises `KafkaException`."""
        offsets = self.services.offsets
        read = offsets.end_offsets if self.services.exactly_once else offsets.written_end_offsets
        return read(self.current_layout().input_partitions(self.subtopology))
