"""The job as written with plain PySpark: a query for each sub-topology."""

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from itertools import pairwise
from pathlib import Path
from shutil import rmtree

import attrs
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as sql
from pyspark.sql.streaming.query import StreamingQuery

from tests.bench.runtime.topics import Topics
from tests.bench.runtime.workloads import Chain, Job


@attrs.frozen
class _Queries:
    queries: Sequence[StreamingQuery]

    def await_end(self) -> None:
        for query in self.queries:
            query.processAllAvailable()


class PlainPySpark:
    """Spark's Kafka connector with its defaults: one batch reads all available records, at least once."""

    name = "plain"
    title = "plain PySpark"

    def __init__(self, spark: SparkSession, servers: str, folder: Path, topics: Topics) -> None:
        self._spark = spark
        self._servers = servers
        self._folder = folder
        self._topics = topics

    @contextmanager
    def running(self, job: Job, *, in_bulk: bool) -> Iterator[_Queries]:
        del in_bulk
        started: list[StreamingQuery] = []
        try:
            for chain in job.chains:
                steps = pairwise(self._path(job, chain))
                started += [self._start(job, source, sink) for source, sink in steps]
            yield _Queries(started)
        finally:
            for query in started:
                query.stop()
            rmtree(self._folder / job.id, ignore_errors=True)

    def _path(self, job: Job, chain: Chain) -> list[str]:
        between = [f"{chain.sink}-{number}" for number in range(1, job.workload.subtopologies)]
        for topic in between:
            self._topics.create(topic)
        return [chain.source, *between, chain.sink]

    def _start(self, job: Job, source: str, sink: str) -> StreamingQuery:
        counts = job.workload.operator == "count"
        rows = self._read(source)
        return (
            (_counts(rows) if counts else _mapped(rows))
            .writeStream.format("kafka")
            .option("kafka.bootstrap.servers", self._servers)
            .option("topic", sink)
            .option("checkpointLocation", str(self._folder / job.id / sink))
            .outputMode("update" if counts else "append")
            .start()
        )

    def _read(self, topic: str) -> DataFrame:
        return (
            self._spark.readStream.format("kafka")
            .option("kafka.bootstrap.servers", self._servers)
            .option("subscribe", topic)
            .option("startingOffsets", "earliest")
            .load()
        )


def _mapped(rows: DataFrame) -> DataFrame:
    return rows.select("key", sql.upper(sql.col("value").cast("string")).alias("value"))


def _counts(rows: DataFrame) -> DataFrame:
    counts = rows.groupBy("key").count()
    return counts.select("key", sql.col("count").cast("string").alias("value"))
