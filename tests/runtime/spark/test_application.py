"""An application's life on a real broker: set-up, growth, purging, topics that go, records that are bad."""

from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path

import attrs
import pytest
from confluent_kafka import Consumer, TopicPartition
from pyspark.sql import SparkSession

from infra.model.problems import ProblemCode, ProblemsError
from infra.observe import Connection
from infra.spec import load_text
from spark_jobs.runtime.client.loading import runnable
from spark_jobs.runtime.client.restarts import Restarts
from spark_jobs.runtime.client.states import ClientState
from spark_jobs.runtime.spark.application import RunSettings, StreamsApplication
from spark_jobs.runtime.spark.instruments import Instruments
from tests.runtime.spark.kafka_topics import Topics
from toolchain.broker import local
from toolchain.broker.readiness import until

pytestmark = [pytest.mark.broker, pytest.mark.spark, pytest.mark.timeout(900)]

_PATIENCE_SECONDS = 120.0
_CONTINUE = "org.apache.kafka.streams.errors.LogAndContinueExceptionHandler"
_MAP = """
  - stream: {topic: IN, serdes: {key: string, value: VALUE}}
  - mapValues: {value: "concat('<', value, '>')"}
  - to: {topic: OUT, serdes: {value: string}}
"""
_COUNT = """
  - stream: {topic: IN, serdes: {key: string, value: string}}
  - selectKey: {key: value}
  - groupByKey:
  - count: {materialized: counts}
  - toStream:
  - to: {topic: OUT, serdes: {key: string, value: long}}
"""


@attrs.frozen
class Stage:
    spark: SparkSession
    topics: Topics
    servers: str
    folder: Path
    unique: Callable[[str], str]

    @contextmanager
    def application(
        self, topology: str, config: Mapping[str, str] | None = None, partitions: int = 1, **names: str
    ) -> Iterator["Running"]:
        """Start it on topics of its own."""
        id_ = self.unique("app")
        source, sink = f"in-{id_}", f"out-{id_}"
        for name, text in {"IN": source, "OUT": sink, **names}.items():
            topology = topology.replace(name, text)
        self.topics.create({source: partitions, sink: partitions})
        settings = {
            "repartition.purge.interval.ms": "500",
            "statestore.cache.max.bytes": "0",
            **(config or {}),
        }
        loaded = load_text(
            f"application: {{id: {id_}, config: {settings}}}\ntopology:{topology}", "test.yaml"
        )
        assert not loaded.problems, loaded.problems
        application = StreamsApplication(
            self.spark,
            loaded.documents[0],
            runnable(loaded.documents[0]).programs,
            RunSettings(
                connection=Connection(bootstrap_servers=(self.servers,)),
                checkpoint=str(self.folder / "checkpoint"),
                state_folder=self.folder / "state",
                restarts=Restarts(most=3),
            ),
        )
        running = Running(application, self, id_, source, sink)
        try:
            yield running
        finally:
            application.close()


@attrs.frozen
class Running:
    application: StreamsApplication
    stage: Stage
    id: str
    source: str
    sink: str

    def feed(self, *values: bytes, partition: int = 0) -> None:
        self.stage.topics.put(self.source, [(b"k", value, 1_700_000_000_000) for value in values], partition)

    def values(self) -> list[bytes | None]:
        return [record[5] for record in self.stage.topics.get(self.sink)]


@pytest.fixture
def stage(
    spark: SparkSession, kafka: local.LocalBroker, tmp_path: Path, unique: Callable[[str], str]
) -> Stage:
    return Stage(spark, Topics(kafka.bootstrap_servers), kafka.bootstrap_servers, tmp_path, unique)


@pytest.mark.parametrize("guarantee", ["at_least_once", "exactly_once_v2"])
def test_internal_topics_are_set_up_and_repartition_topics_emptied_behind_the_readers(
    stage: Stage, guarantee: str
) -> None:
    with stage.application(_COUNT, {"processing.guarantee": guarantee}) as running:
        running.application.start()
        running.feed(b"a", b"b", b"a")
        running.application.wait_until_idle()
        assert [int.from_bytes(value or b"", "big") for value in running.values()] == [1, 1, 2]
        repartition = f"{running.id}-counts-repartition"
        assert until(lambda: not stage.topics.get(repartition), _PATIENCE_SECONDS)
        (first, second) = running.application.told()
        assert first["recordsRead"] == second["recordsRead"] == 3
        assert second["stateBytes"] > 0
        assert until(lambda: all(part["lag"] == 0 for part in running.application.told()), _PATIENCE_SECONDS)
        assert Instruments(running.application).ready().ok
    assert running.application.state is ClientState.NOT_RUNNING


def test_manual_set_up_refuses_to_start_without_the_internal_topics(stage: Stage) -> None:
    with stage.application(_COUNT, {"internal.topics.setup": "manual"}) as running:
        with pytest.raises(ProblemsError) as refused:
            running.application.start()
        assert {problem.code for problem in refused.value.problems} == {ProblemCode.MISSING_INTERNAL_TOPICS}
        assert {problem.topic for problem in refused.value.problems} == {
            f"{running.id}-counts-changelog",
            f"{running.id}-counts-repartition",
        }


@pytest.mark.parametrize(
    ("lost", "code"),
    [
        ("ID-counts-changelog", ProblemCode.MISSING_INTERNAL_TOPICS),
        ("in-ID", ProblemCode.MISSING_SOURCE_TOPIC),
    ],
)
def test_a_topic_that_goes_stops_the_application(stage: Stage, lost: str, code: ProblemCode) -> None:
    config = {"internal.topics.setup": "manual"}
    with stage.application(_COUNT, config) as running:
        stage.topics.create({f"{running.id}-counts-changelog": 1, f"{running.id}-counts-repartition": 1})
        _configure(stage, running.id)
        running.application.start()
        assert until(lambda: running.application.state is ClientState.RUNNING, _PATIENCE_SECONDS)
        name = lost.replace("ID", running.id)
        stage.topics.delete(name)
        assert running.application.wait(_PATIENCE_SECONDS)
        assert running.application.state is ClientState.ERROR
        assert (code, name) in {(problem.code, problem.topic) for problem in running.application.problems}


def test_new_partitions_of_a_source_are_read_from_their_beginning(stage: Stage) -> None:
    with stage.application(_MAP, {"auto.offset.reset": "latest"}, VALUE="string") as running:
        running.application.start()
        running.feed(b"1")
        running.application.wait_until_idle()
        stage.topics.expand(running.source, 3)
        running.feed(b"2", partition=2)
        assert until(lambda: sorted(map(str, running.values())) == ["b'<1>'", "b'<2>'"], _PATIENCE_SECONDS)


def test_a_record_that_cannot_be_read_stops_or_is_passed_over(stage: Stage) -> None:
    with stage.application(_MAP, VALUE="long") as running:
        running.application.start()
        running.feed(b"\0\0\0\0\0\0\0\7", b"short")
        assert running.application.wait(_PATIENCE_SECONDS)
        assert running.application.state is ClientState.ERROR
        (query,) = running.application.queries.values()
        assert f"{running.source}" in str(query.failure)
    handler = {"deserialization.exception.handler": _CONTINUE}
    with stage.application(_MAP, handler, VALUE="long") as running:
        running.application.start()
        running.feed(b"\0\0\0\0\0\0\0\7", b"short", b"\0\0\0\0\0\0\0\10")
        running.application.wait_until_idle()
        assert running.values() == [b"<7>", b"<8>"]


def test_offsets_are_committed_as_kafka_streams_commits_them(stage: Stage) -> None:
    """Under the application's own group: other tools show the lag, Kafka Streams could go on from here."""
    with stage.application(_MAP, {"processing.guarantee": "exactly_once_v2"}, VALUE="string") as running:
        running.application.start()
        running.feed(b"1", b"2")
        running.application.wait_until_idle()
        reader = Consumer({"bootstrap.servers": stage.servers, "group.id": running.id})
        try:
            (found,) = reader.committed([TopicPartition(running.source, 0)], 30)
            assert found.offset == 2
            assert found.metadata
        finally:
            reader.close()


def _configure(stage: Stage, id_: str) -> None:
    stage.topics.configure(f"{id_}-counts-changelog", {"cleanup.policy": "compact"})
    stage.topics.configure(f"{id_}-counts-repartition", {"cleanup.policy": "delete", "retention.ms": "-1"})
