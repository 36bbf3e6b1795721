"""The runtime beside a plain PySpark job on the same broker: records a second, and how long one record takes.

Both read the same topic from its beginning to its end, in the same session, after a round to warm up.
"""

import time
from collections.abc import Callable
from functools import partial
from pathlib import Path
from statistics import median

from confluent_kafka import Consumer, Producer, TopicPartition
from confluent_kafka.admin import AdminClient, NewTopic  # type: ignore[attr-defined]  # public all the same
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as sql

from infra.observe import Connection
from infra.spec import load_text
from spark_jobs.control.logs import configure
from spark_jobs.runtime.client.loading import runnable
from spark_jobs.runtime.spark.application import RunSettings, StreamsApplication
from spark_jobs.runtime.spark.session import SessionSettings, start_session
from toolchain import PulumiToolchain, ensure_spark_jars
from toolchain.broker import Broker

_RECORDS = 500_000
_WARM_UP = 20_000
_KEYS = 1_000
_PARTITIONS = 2
_ROUNDS = 21
_MAP = """
  - stream: {topic: SOURCE, serdes: {key: string, value: string}}
  - mapValues: {value: "upper(value)"}
  - to: {topic: SINK}
"""
_COUNT = """
  - stream: {topic: SOURCE, serdes: {key: string, value: string}}
  - groupByKey:
  - count: {materialized: counts}
  - toStream:
  - to: {topic: SINK, serdes: {key: string, value: long}}
"""
_EXACTLY_ONCE = {"processing.guarantee": "exactly_once_v2"}
_EVERY_UPDATE = {"statestore.cache.max.bytes": "0"}
_CASES: tuple[tuple[str, str, dict[str, str]], ...] = (
    ("map, at least once", _MAP, {}),
    ("map, exactly once", _MAP, _EXACTLY_ONCE),
    ("count, an update a batch", _COUNT, {}),
    ("count, every update, exactly once", _COUNT, _EXACTLY_ONCE | _EVERY_UPDATE),
)


def run(folder: Path, _: PulumiToolchain, broker: Broker) -> None:
    configure(level="error")
    jars = tuple(map(str, ensure_spark_jars()))
    conf = {"spark.driver.memory": "1g", "spark.ui.enabled": "false", "spark.log.level": "ERROR"}
    settings = SessionSettings(
        application="bench", master="local[4]", jars=jars, shuffle_partitions=2, conf=conf
    )
    spark = start_session(settings)
    try:
        bench = _Bench(spark, broker.bootstrap_servers, folder / "runtime")
        for source, records in (("bench-warm", _WARM_UP), ("bench-in", _RECORDS)):
            bench.fill(source, records)
            is_shown = source == "bench-in"
            for name, job in (("map", bench.plain_map), ("count", bench.plain_count)):
                _show(f"plain PySpark {name}", records, bench.timed(partial(job, source)), is_shown)
            for name, topology, config in _CASES:
                seconds = bench.application(source, topology, config)
                _show(f"headwater {name}", records, seconds, is_shown)
        for name, topology, config in _CASES[::3]:
            seconds = bench.latency(topology, config)
            print(f"headwater {name}: one record in {seconds * 1000:.0f} ms (p50)")  # noqa: T201
    finally:
        spark.stop()


def _show(name: str, records: int, seconds: float, is_shown: bool) -> None:  # noqa: FBT001
    if is_shown:
        print(f"{name}: {records / seconds:,.0f} records/s")  # noqa: T201


class _Bench:
    def __init__(self, spark: SparkSession, servers: str, folder: Path) -> None:
        self._spark = spark
        self._servers = servers
        self._folder = folder
        self._admin = AdminClient({"bootstrap.servers": servers})
        self._number = 0

    def fill(self, topic: str, records: int) -> None:
        self._make(topic)
        producer = Producer({"bootstrap.servers": self._servers, "linger.ms": 20})
        for number in range(records):
            producer.produce(topic, b"value-%d" % number, b"key-%d" % (number % _KEYS))
            if number % 10_000 == 0:
                producer.poll(0)
        producer.flush()

    def timed(self, job: Callable[[], None]) -> float:
        started = time.perf_counter()
        job()
        return time.perf_counter() - started

    def plain_map(self, source: str) -> None:
        rows = self._read(source).select("key", sql.upper(sql.col("value").cast("string")).alias("value"))
        self._write(rows, "append")

    def plain_count(self, source: str) -> None:
        counts = self._read(source).groupBy("key").count()
        self._write(counts.select("key", sql.col("count").cast("string").alias("value")), "update")

    def application(self, source: str, topology: str, config: dict[str, str]) -> float:
        """Return how long it takes from the start of the queries to the last record's commit."""
        application = self._application(source, self._sink(), topology, config)
        started = time.perf_counter()
        application.start()
        application.wait_until_idle()
        seconds = time.perf_counter() - started
        application.close()
        return seconds

    def latency(self, topology: str, config: dict[str, str]) -> float:
        """Return the median time from writing a record to reading what came of it."""
        source, sink = self._sink(), self._sink()
        application = self._application(source, sink, topology, config)
        application.start()
        producer = Producer({"bootstrap.servers": self._servers, "linger.ms": 0})
        reader = Consumer(
            {
                "bootstrap.servers": self._servers,
                "group.id": "bench",
                "isolation.level": "read_committed",
                "fetch.wait.max.ms": 5,
            }
        )
        reader.assign([TopicPartition(sink, each, 0) for each in range(_PARTITIONS)])
        taken = []
        for _ in range(_ROUNDS):
            started = time.perf_counter()
            producer.produce(source, b"value", b"key")
            producer.flush()
            while (message := reader.poll(1.0)) is None or message.error() is not None:
                pass
            taken.append(time.perf_counter() - started)
        reader.close()
        application.close()
        return median(taken[1:])

    def _application(
        self, source: str, sink: str, topology: str, config: dict[str, str]
    ) -> StreamsApplication:
        id_ = f"bench-app-{self._number}"
        text = topology.replace("SOURCE", source).replace("SINK", sink)
        document = load_text(f"application: {{id: {id_}, config: {config}}}\ntopology:{text}", id_).documents[
            0
        ]
        run_settings = RunSettings(
            connection=Connection(bootstrap_servers=(self._servers,)),
            checkpoint=str(self._folder / "checkpoint"),
            state_folder=self._folder / "state",
        )
        return StreamsApplication(self._spark, document, runnable(document).programs, run_settings)

    def _read(self, topic: str) -> DataFrame:
        return (
            self._spark.readStream.format("kafka")
            .option("kafka.bootstrap.servers", self._servers)
            .option("subscribe", topic)
            .option("startingOffsets", "earliest")
            .load()
        )

    def _write(self, rows: DataFrame, mode: str) -> None:
        sink = self._sink()
        query = (
            rows.writeStream.format("kafka")
            .option("kafka.bootstrap.servers", self._servers)
            .option("topic", sink)
            .option("checkpointLocation", str(self._folder / f"plain-{sink}"))
            .outputMode(mode)
            .trigger(availableNow=True)
            .start()
        )
        query.awaitTermination()

    def _sink(self) -> str:
        self._number += 1
        name = f"bench-topic-{self._number}"
        self._make(name)
        return name

    def _make(self, topic: str) -> None:
        self._admin.create_topics([NewTopic(topic, _PARTITIONS, 1)])[topic].result()
