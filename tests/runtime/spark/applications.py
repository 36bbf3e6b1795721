"""Applications with their own topics, in the Spark session and on the broker of a test run."""

from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path

import attrs
import pytest
from confluent_kafka import KafkaError, KafkaException
from pyspark.sql import SparkSession

from headwater.kafka import Connection
from headwater.model.topology import TopologyDocument
from headwater.spec import load_text
from headwater_spark.driver.active_client import membership
from headwater_spark.driver.application import StreamsApplication
from headwater_spark.driver.failures import RestartPolicy
from headwater_spark.driver.input.sources import RECORDS_AT_ONCE
from headwater_spark.driver.preflight import check_runnable
from headwater_spark.driver.run_settings import RunSettings
from tests.runtime.spark.kafka_topics import Topics

TIMEOUT_SECONDS = 240.0
MAP = """
  - stream: {topic: IN, serdes: {key: string, value: VALUE}}
  - mapValues: {value: "concat('<', value, '>')"}
  - to: {topic: OUT, serdes: {value: string}}
"""
COUNT = """
  - stream: {topic: IN, serdes: {key: string, value: string}}
  - selectKey: {key: value}
  - groupByKey:
  - count: {materialized: counts}
  - toStream:
  - to: {topic: OUT, serdes: {key: string, value: long}}
"""


@attrs.frozen
class Cluster:
    """The broker and the Spark session; applications keep their files in `folder`.

    `checkpoint` is the folder of their checkpoints; default: in `folder`.
    """

    spark: SparkSession
    topics: Topics
    servers: str
    folder: Path
    unique: Callable[[str], str]
    check_interval_seconds: float = 0.5
    checkpoint: str = ""
    restarts: int = 3

    @contextmanager
    def application(
        self,
        topology: str,
        config: Mapping[str, str] | None = None,
        partitions: int = 1,
        set_up: Mapping[str, Mapping[str, str]] | None = None,
        records_at_once: int = RECORDS_AT_ONCE,
        **names: str,
    ) -> Iterator["RunningApplication"]:
        """Yield an application that is not started; `set_up` is suffix → settings of internal topics."""
        id_ = self.unique("app")
        source, sink = f"in-{id_}", f"out-{id_}"
        for name, text in {"IN": source, "OUT": sink, **names}.items():
            topology = topology.replace(name, text)
        internal = {f"{id_}-{suffix}": config for suffix, config in (set_up or {}).items()}
        self.topics.create(dict.fromkeys([source, sink, *internal], partitions))
        for name, settings in internal.items():
            self.topics.configure_and_wait(name, settings)
        configs = {
            "repartition.purge.interval.ms": "500",
            "statestore.cache.max.bytes": "0",
            **(config or {}),
        }
        loaded = load_text(f"application: {{id: {id_}, config: {configs}}}\ntopology:{topology}", "test.yaml")
        assert not loaded.problems, loaded.problems
        document = loaded.documents[0]
        application = self.create(document, records_at_once)
        running = RunningApplication(application, self, document, source, sink, records_at_once)
        try:
            yield running
        finally:
            running.application.close()

    def attach(self, running: "RunningApplication", name: str) -> StreamsApplication:
        """Return a second client of an application, with its own checkpoint and state."""
        session = self.spark.newSession()  # names of queries are unique in a session
        return attrs.evolve(self, spark=session, folder=self.folder / name).create(running.document)

    def create(
        self, document: TopologyDocument, records_at_once: int = RECORDS_AT_ONCE
    ) -> StreamsApplication:
        return StreamsApplication(
            self.spark,
            document,
            check_runnable(document).programs,
            RunSettings(
                connection=Connection(bootstrap_servers=(self.servers,)),
                checkpoint=self.checkpoint or str(self.folder / "checkpoint"),
                state_folder=self.folder / "state",
                records_at_once=records_at_once,
                restarts=RestartPolicy(max_failures=self.restarts),
                check_interval_seconds=self.check_interval_seconds,
            ),
        )


def do_not_notice_each_other(monkeypatch: pytest.MonkeyPatch) -> None:
    """Let clients of an application run at the same time, as without the permission to read their record."""

    def refuse(*_: object) -> None:
        raise KafkaException(KafkaError(KafkaError.GROUP_AUTHORIZATION_FAILED))

    monkeypatch.setattr(membership, "read_records", refuse)


@attrs.define
class RunningApplication:
    """An application with its source and sink topic."""

    application: StreamsApplication
    cluster: Cluster
    document: TopologyDocument
    source: str
    sink: str
    records_at_once: int = RECORDS_AT_ONCE

    @property
    def id(self) -> str:
        return self.document.application.id

    def restart(self) -> None:
        """Stop the application, and start it again with the same checkpoint and state."""
        self.application.close()
        self.application = self.cluster.create(self.document, self.records_at_once)
        self.application.start()

    def topic(self, name: str) -> str:
        """Return the name on the cluster of an internal topic, or of the source, `in`."""
        return self.source if name == "in" else f"{self.id}-{name}"

    def feed(self, *values: bytes, partition: int = 0) -> None:
        self.cluster.topics.put(
            self.source, [(b"k", value, 1_700_000_000_000) for value in values], partition
        )

    def values(self) -> list[bytes | None]:
        return [record[5] for record in self.cluster.topics.get(self.sink)]
