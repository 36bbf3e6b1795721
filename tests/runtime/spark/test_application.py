"""An application on a real broker: setup, expansion, purging, records that cannot be processed."""

import gc
import weakref
from threading import Event

import pytest
from confluent_kafka import Consumer, TopicPartition

from headwater.model.problems import ProblemCode, ProblemsError
from headwater.toolchain.broker.readiness import until
from headwater_spark.driver import application_parts
from headwater_spark.driver.metrics import Instruments
from headwater_spark.driver.states import ClientState
from tests.runtime.spark.applications import COUNT, MAP, TIMEOUT_SECONDS, Cluster, RunningApplication

pytestmark = [pytest.mark.broker, pytest.mark.spark, pytest.mark.timeout(900)]

_CONTINUE = "org.apache.kafka.streams.errors.LogAndContinueExceptionHandler"


def test_an_application_does_not_wait_for_a_master_that_does_not_answer(
    cluster: Cluster, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The record of the active client is renewed meanwhile, and the wait ends before the session does."""
    is_waiting, has_ended = Event(), Event()

    def end_application(_: object, lost: str, stopping: Event) -> None:
        assert lost == "spark://unreachable:7077 app"
        is_waiting.set()
        assert stopping.wait(TIMEOUT_SECONDS)
        has_ended.set()

    monkeypatch.setattr(application_parts, "end_application", end_application)
    with cluster.application(COUNT) as running:
        client = running.application._parts.client
        client.lost_spark.put("spark://unreachable:7077 app")
        running.application.start()
        assert is_waiting.wait(TIMEOUT_SECONDS)
        assert until(lambda: client.proved_at > 0, TIMEOUT_SECONDS)
        assert not has_ended.is_set()
        running.application.close()
        assert has_ended.is_set()


@pytest.mark.every_broker
@pytest.mark.parametrize(
    "guarantee", [pytest.param("at_least_once", marks=pytest.mark.soak), "exactly_once_v2"]
)
def test_internal_topics_are_set_up_and_read_repartition_records_are_purged(
    cluster: Cluster, guarantee: str
) -> None:
    with cluster.application(COUNT, {"processing.guarantee": guarantee}) as running:
        running.application.start()
        running.feed(b"a", b"b", b"a")
        running.application.wait_until_idle()
        assert [int.from_bytes(value or b"", "big") for value in running.values()] == [1, 1, 2]
        repartition = f"{running.id}-counts-repartition"
        assert until(lambda: not cluster.topics.get(repartition), TIMEOUT_SECONDS)
        (first, second) = running.application.subtopology_status()
        assert first["recordsRead"] == second["recordsRead"] == 3
        assert second["stateBytes"] > 0
        assert until(
            lambda: all(part["lag"] == 0 for part in running.application.subtopology_status()),
            TIMEOUT_SECONDS,
        )
        assert until(lambda: Instruments(running.application).ready().ok, TIMEOUT_SECONDS)
    assert running.application.state is ClientState.NOT_RUNNING


def test_manual_setup_refuses_to_start_without_the_internal_topics(cluster: Cluster) -> None:
    with cluster.application(COUNT, {"internal.topics.setup": "manual"}) as running:
        with pytest.raises(ProblemsError) as refused:
            running.application.start()
        assert {problem.code for problem in refused.value.problems} == {ProblemCode.MISSING_INTERNAL_TOPICS}
        assert {problem.topic for problem in refused.value.problems} == {
            f"{running.id}-counts-changelog",
            f"{running.id}-counts-repartition",
        }


def test_new_partitions_are_read_from_their_beginning_and_a_closed_application_is_freed(
    cluster: Cluster,
) -> None:
    """With its clients, though Spark's JVM keeps the functions of stopped queries for long."""
    with cluster.application(MAP, {"auto.offset.reset": "latest"}, VALUE="string") as running:
        running.application.start()
        running.feed(b"1")
        running.application.wait_until_idle()
        cluster.topics.expand(running.source, 3)
        running.feed(b"2", partition=2)
        _await_values(running, b"<1>", b"<2>")
        application = weakref.ref(running.application)
    del running

    def is_freed() -> bool:
        gc.collect()
        return application() is None

    # A thread of Spark's listener may return from its last call a moment later.
    assert until(is_freed, TIMEOUT_SECONDS)


def _await_values(running: RunningApplication, *expected: bytes) -> None:
    """Wait until the sink has these values, in any order."""
    assert until(lambda: sorted(running.values(), key=str) == list(expected), TIMEOUT_SECONDS)


def test_record_that_cannot_be_read_stops_the_application_or_is_dropped(cluster: Cluster) -> None:
    with cluster.application(MAP, VALUE="long") as running:
        running.application.start()
        running.feed(b"\0\0\0\0\0\0\0\7", b"short")
        assert running.application.wait(TIMEOUT_SECONDS)
        assert running.application.state is ClientState.ERROR
        (query,) = running.application.queries.values()
        assert f"{running.source}" in str(query.failure)
        (problem,) = running.application.problems
        assert problem.code is ProblemCode.QUERY_FAILED
        assert f"record of {running.source}, partition 0, offset 1" in (problem.found or "")
    handler = {"deserialization.exception.handler": _CONTINUE}
    with cluster.application(MAP, handler, VALUE="long") as running:
        running.application.start()
        running.feed(b"\0\0\0\0\0\0\0\7", b"short", b"\0\0\0\0\0\0\0\10")
        running.application.wait_until_idle()
        assert running.values() == [b"<7>", b"<8>"]
        (part,) = running.application.subtopology_status()
        assert (part["recordsRead"], part["recordsDropped"]) == (3, 1)


_REFUSED = """
  - stream: {topic: IN, serdes: {key: string, value: string}, timestamp: "bigint(value)"}
  - selectKey: {key: value}
  - repartition: {as: again, partitions: 1}
  - to: {topic: OUT, serdes: {value: string}}
"""
_REFUSED_VALUES = [b"1700000000000", b"7258118400000", b"1700000000001"]


def test_record_that_the_broker_refuses_stops_the_application(cluster: Cluster) -> None:
    """The retries end at once: a query that fails for the record is not restarted."""
    with cluster.application(_REFUSED, {"processing.guarantee": "exactly_once_v2"}) as running:
        running.application.start()
        running.feed(*_REFUSED_VALUES)
        assert running.application.wait(TIMEOUT_SECONDS)
        (problem,) = running.application.problems
        assert f"record of {running.source}, partition 0, offset 1: cannot be written" in (
            problem.found or ""
        )
        assert "2200-01-01" in (problem.found or "")
        assert "set production.exception.handler to AlwaysContinue" in problem.fix
        assert all(query.restarts == 0 for query in running.application.queries.values())


@pytest.mark.soak  # without Spark: `runtime/worker/test_refused_records`
def test_record_that_the_broker_refuses_is_dropped_with_a_handler(cluster: Cluster) -> None:
    handler = {"production.exception.handler": "AlwaysContinueProductionExceptionHandler"}
    with cluster.application(_REFUSED, {"processing.guarantee": "exactly_once_v2", **handler}) as running:
        running.application.start()
        running.feed(*_REFUSED_VALUES)
        running.application.wait_until_idle()
        assert running.values() == [_REFUSED_VALUES[0], _REFUSED_VALUES[2]]
        first, _ = running.application.subtopology_status()
        assert first["recordsDropped"] == 1


@pytest.mark.every_broker
def test_offsets_are_committed_as_kafka_streams_commits_them(cluster: Cluster) -> None:
    """Under the application's group: tools show the lag, and Kafka Streams could resume from the offsets."""
    with cluster.application(MAP, {"processing.guarantee": "exactly_once_v2"}, VALUE="string") as running:
        running.application.start()
        running.feed(b"1", b"2")
        running.application.wait_until_idle()
        reader = Consumer({"bootstrap.servers": cluster.servers, "group.id": running.id})
        try:
            (found,) = reader.committed([TopicPartition(running.source, 0)], 90)
            assert found.offset == 2
            assert found.metadata
        finally:
            reader.close()
