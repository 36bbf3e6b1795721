"""What the queries of an application ask while they run, answered from its layout of the moment."""

import time
from collections.abc import Callable
from threading import Event

import attrs
import structlog
from pyspark.sql import SparkSession

from infra.model.compiled import CompiledApplication
from spark_jobs.runtime.driver.batch import Batches
from spark_jobs.runtime.driver.exchange import Exchange
from spark_jobs.runtime.driver.layout import Layout
from spark_jobs.runtime.driver.offset_log import batch_ends
from spark_jobs.runtime.driver.offsets import Positions
from spark_jobs.runtime.driver.progress import Progress
from spark_jobs.runtime.driver.query import QuerySpec
from spark_jobs.runtime.driver.run_settings import RunSettings
from spark_jobs.runtime.driver.sources import KafkaSource, read_range
from spark_jobs.runtime.driver.topic_check import Look
from spark_jobs.runtime.engine.program import SubtopologyProgram
from spark_jobs.runtime.worker.messages import BatchRequest, BatchResult

Programs = Callable[[CompiledApplication], tuple[SubtopologyProgram, ...]]
_log = structlog.get_logger(__name__)


@attrs.define(kw_only=True, eq=False)
class QuerySpecs:
    """`learn` gives it a layout, from any thread; queries ask from theirs, and get the latest.

    `recheck` is set when a record waits for a partition that somebody may have added meanwhile.
    """

    _application: str
    _spark: SparkSession
    _programs: Programs
    _settings: RunSettings
    _positions: Positions
    _exchange: Exchange
    _exactly_once: bool
    layout: Layout = attrs.field(factory=Layout, init=False)
    progress: Progress = attrs.field(factory=Progress, init=False)
    recheck: Event = attrs.field(factory=Event, init=False)

    def learn(self, look: Look) -> None:
        """Take in what the application is now."""
        programs = self._programs(look.compiled)
        self.layout = self.layout.next(look.compiled, programs, look.counts, look.ids)
        self._exchange.learn(look.compiled, look.counts)

    def spec(self, name: str) -> QuerySpec:
        input_ = self.layout.inputs[name]
        return QuerySpec(
            name=f"{self._application} sub-topology {name}",
            checkpoint=lambda: self._checkpoint(name),
            source=lambda: self._source(name),
            batches=Batches(
                order=lambda batch: self._order(name, batch),
                is_single=len(input_.topics) == 1 and not input_.patterns,
                report=lambda batch, outcomes: self._report(name, batch, outcomes),
                round=lambda: self._exchange.round(name),
                rest=lambda order: self._exchange.rest(self.layout.topics(name), order.end_offsets),
                more=lambda ranges: read_range(self._spark, self._source(name), ranges),
                native=self.layout.programs[name] if name in self.layout.native else None,
                ticks=input_.ticks,
            ),
            restarts=self._settings.restarts,
        )

    def _checkpoint(self, name: str) -> str:
        """Return a query's folder. Offsets of a topic say nothing of another that has its name now."""
        folder = self._settings.checkpoint.rstrip("/")
        return f"{folder}/{self._application}/{name}/{self.layout.digest(name)}"

    def _source(self, name: str) -> KafkaSource:
        layout = self.layout
        return KafkaSource(
            connection=self._settings.connection,
            topics=layout.inputs[name].topics,
            patterns=layout.inputs[name].patterns,
            starts=self._positions.begin(layout.resets(name), time.time_ns() // 1_000_000),
            exactly_once=self._exactly_once,
            records_at_once=self._settings.records_at_once,
        )

    def _order(self, name: str, batch: int) -> BatchRequest:
        layout = self.layout
        return BatchRequest(
            application=self._application,
            group=self._application,
            connection=self._settings.connection,
            program=layout.programs[name],
            global_programs=layout.global_programs,
            layout_version=layout.edition,
            state_folder=self._settings.state_folder / self._application,
            partition_counts=layout.task_counts(name),
            end_offsets=batch_ends(self._checkpoint(name), batch),
            shared_topics=self._exchange.shared,
            exactly_once=self._exactly_once,
            is_native=name in layout.native,
        )

    def _report(self, name: str, batch: int, outcomes: list[BatchResult]) -> None:
        self.progress.batch(name, batch, outcomes)
        for outcome in outcomes:
            if outcome.handler_message is not None:
                _log.warning("records passed over", subtopology=name, latest=outcome.handler_message)
            if outcome.missing_partition is not None:
                topic, wanted, _ = outcome.missing_partition
                _log.info("record waits for a partition", topic=topic, wanted=wanted)
                self.recheck.set()
