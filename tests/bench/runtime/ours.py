"""Headwater's runtime, started as by `headwater run`, but in an existing Spark session."""

from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from shutil import rmtree

from pyspark.sql import SparkSession

from headwater.kafka import Connection
from headwater.model.topology import TopologyDocument
from headwater.spec import load_text
from headwater_spark.driver.application import StreamsApplication
from headwater_spark.driver.input.sources import RECORDS_AT_ONCE
from headwater_spark.driver.preflight import check_runnable
from headwater_spark.driver.run_settings import RunSettings
from tests.bench.runtime.programs import Committed
from tests.bench.runtime.stateful import steps_of
from tests.bench.runtime.workloads import Chain, Job, Workload

_MAP = '- mapValues: {value: "upper(value)"}\n'
_REPARTITION = "- repartition: {serdes: {key: string, value: string}}\n"
_COUNT = "- groupByKey:\n- count: {materialized: counts}\n- toStream:\n"


class Headwater:
    name = "headwater"
    title = "Headwater"

    def __init__(self, spark: SparkSession, servers: str, folder: Path) -> None:
        self._spark = spark
        self._servers = servers
        self._folder = folder

    @contextmanager
    def running(self, job: Job, *, in_bulk: bool) -> Iterator[Committed]:
        del in_bulk
        with self.started(job) as application:
            progress = Committed(self._servers, job, lambda: _failure(application))
            try:
                yield progress
                application.wait_until_idle()  # an interrupted batch logs long stack traces
            finally:
                progress.close()

    @contextmanager
    def started(self, job: Job, records_at_once: int = RECORDS_AT_ONCE) -> Iterator[StreamsApplication]:
        """Start the application of a job, with at most `records_at_once` records in a batch."""
        document = _document(job)
        settings = RunSettings(
            connection=Connection(bootstrap_servers=(self._servers,)),
            checkpoint=str(self._folder / "checkpoint"),
            state_folder=self._folder / "state",
            records_at_once=records_at_once,
        )
        application = StreamsApplication(self._spark, document, check_runnable(document).programs, settings)
        try:
            application.start()
            yield application
        finally:
            application.close()
            for kept in (self._folder / "checkpoint", self._folder / "state"):
                rmtree(kept / job.id, ignore_errors=True)


def _failure(application: StreamsApplication) -> str | None:
    if not application.state.is_final:
        return None
    return f"{application.id} ended as {application.state.value}: {application.problems}"


def _document(job: Job) -> TopologyDocument:
    number = "follow" if job.workload.processors is None else job.workload.processors
    application = f"{{id: {job.id}, processors: {number}, config: {job.workload.config}}}"
    head = f"application: {application}\ntopology:\n"
    text = head + "".join(_steps(job.workload, chain, number) for number, chain in enumerate(job.chains))
    return load_text(text, job.id).documents[0]


def _steps(workload: Workload, chain: Chain, number: int) -> str:
    if workload.operator not in {"map", "count"}:
        return steps_of(workload.operator, chain, number)
    step = _COUNT if workload.operator == "count" else _MAP
    value = "long" if workload.operator == "count" else "string"
    return (
        f"- stream: {{topic: {chain.source}, serdes: {{key: string, value: string}}}}\n"
        + _REPARTITION.join([step] * workload.subtopologies)
        + f"- to: {{topic: {chain.sink}, serdes: {{key: string, value: {value}}}}}\n"
    )
