"""KIP-698 while an application runs: topics are deleted, re-created or misconfigured."""

from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager, suppress
from functools import partial
from threading import Event
from typing import Any

import pytest
import structlog
from confluent_kafka import KafkaError, KafkaException
from pyspark.sql import DataFrame

from headwater.kafka import Connection, KafkaClusterReader
from headwater.model.problems import ProblemCode
from headwater.toolchain.broker.readiness import until
from headwater_spark.driver.queries import row_distribution
from headwater_spark.driver.states import ClientState
from headwater_spark.driver.topic_watch import TopicWatch
from headwater_spark.spark_internals.packing import RecordPacking
from tests.runtime.spark.applications import COUNT, TIMEOUT_SECONDS, Cluster, RunningApplication

pytestmark = [pytest.mark.broker, pytest.mark.spark, pytest.mark.timeout(900)]

Damage = Callable[[RunningApplication], None]
_MERGE = """
  - stream: {topic: IN, as: left, serdes: {key: string, value: string}}
  - stream: {topic: OTHER, as: right, serdes: {key: string, value: string}}
  - merge: {from: left, with: right}
  - to: {topic: OUT}
"""
_MANUAL = {"internal.topics.setup": "manual"}
_CREATED = {"message.timestamp.type": "CreateTime"}
_SETTINGS = {
    "counts-changelog": {"cleanup.policy": "compact", **_CREATED},
    "counts-repartition": {"cleanup.policy": "delete", "retention.ms": "-1", **_CREATED},
}


def _deleted(name: str) -> Damage:
    return lambda running: running.cluster.topics.delete(running.topic(name))


def _recreated(name: str) -> Damage:
    def damage(running: RunningApplication) -> None:
        """Delete the topic and re-create it as it was, unless the application re-creates it first."""
        topics, topic = running.cluster.topics, running.topic(name)
        reader = KafkaClusterReader(Connection(bootstrap_servers=(running.cluster.servers,)))
        before = reader.topic_ids([topic])
        topics.delete(topic)
        assert until(lambda: reader.topic_ids([topic]) != before, TIMEOUT_SECONDS)
        try:
            topics.create({topic: 1}, _SETTINGS.get(name))
        except KafkaException as problem:
            assert problem.args[0].code() == KafkaError.TOPIC_ALREADY_EXISTS  # noqa: PT017 - it is not always raised

    return damage


def _source_recreated(running: RunningApplication) -> None:
    """Re-create the source topic between two topic checks: a missing one stops the application."""
    with _no_topic_check():
        _recreated("in")(running)


@contextmanager
def _no_topic_check() -> Iterator[None]:
    skipped = Event()

    def skip(_watch: TopicWatch, *, fully: bool) -> bool:
        del fully
        skipped.set()
        return False

    with pytest.MonkeyPatch.context() as patched:
        patched.setattr(TopicWatch, "_check", skip)
        assert skipped.wait(TIMEOUT_SECONDS)  # a check that began before has ended
        yield


def _set(name: str, key: str, value: str) -> Damage:
    return lambda running: running.cluster.topics.configure(running.topic(name), {key: value})


@pytest.mark.parametrize(
    ("damage", "name", "code"),
    [
        pytest.param(  # in `make test`, `test_as_programs` deletes it
            _deleted("counts-changelog"),
            "counts-changelog",
            ProblemCode.MISSING_INTERNAL_TOPICS,
            marks=pytest.mark.soak,
        ),
        pytest.param(
            _deleted("counts-repartition"),
            "counts-repartition",
            ProblemCode.MISSING_INTERNAL_TOPICS,
            marks=pytest.mark.soak,
        ),
        (_recreated("counts-repartition"), "counts-repartition", ProblemCode.MISSING_INTERNAL_TOPICS),
        pytest.param(
            _set("counts-changelog", "cleanup.policy", "delete"),
            "counts-changelog",
            ProblemCode.MISCONFIGURED_INTERNAL_TOPIC,
            marks=pytest.mark.soak,
        ),
        (
            _set("counts-repartition", "retention.ms", "60000"),
            "counts-repartition",
            ProblemCode.MISCONFIGURED_INTERNAL_TOPIC,
        ),
        (_deleted("in"), "in", ProblemCode.MISSING_SOURCE_TOPIC),
    ],
)
def test_deleted_or_misconfigured_topic_stops_the_application(
    cluster: Cluster, damage: Damage, name: str, code: ProblemCode
) -> None:
    with cluster.application(COUNT, _MANUAL, set_up=_SETTINGS) as running:
        running.application.start()
        assert until(lambda: running.application.state is ClientState.RUNNING, TIMEOUT_SECONDS)
        damage(running)
        assert running.application.wait(TIMEOUT_SECONDS)
        assert running.application.state is ClientState.ERROR
        (problem,) = running.application.problems
        assert (problem.code, problem.topic) == (code, running.topic(name))


@pytest.mark.usefixtures("packed_batches")
def test_topic_that_is_deleted_before_a_step_reads_it_stops_the_application(
    cluster: Cluster, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Spark would wait for records of the deleted topic for minutes."""
    other = cluster.unique("other")
    cluster.topics.create({other: 1})

    class Deleting(RecordPacking):
        def packed_ranges(self, *arguments: Any, **options: Any) -> DataFrame | None:  # noqa: ANN401 - as the original
            with suppress(KafkaException):  # it is deleted
                cluster.topics.delete(other)
            return super().packed_ranges(*arguments, **options)

    monkeypatch.setattr(row_distribution, "RecordPacking", Deleting)
    with cluster.application(_MERGE, OTHER=other, records_at_once=100) as running:
        for topic in (running.source, other):
            cluster.topics.put(topic, [(b"k", b"v", 1_700_000_000_000)] * 200)
        running.application.start()
        assert running.application.wait(TIMEOUT_SECONDS)
        assert running.application.state is ClientState.ERROR
        (problem,) = running.application.problems
        assert (problem.code, problem.topic) == (ProblemCode.MISSING_SOURCE_TOPIC, other)


def test_re_created_topic_stops_the_application_that_has_written_to_it_since(
    cluster: Cluster,
) -> None:
    with cluster.application(COUNT, _MANUAL, set_up=_SETTINGS) as running:
        running.application.start()
        running.feed(b"a")
        running.application.wait_until_idle()
        _recreated("counts-changelog")(running)
        cluster.topics.put(running.topic("counts-changelog"), [(b"a", b"\0\0\0\0\0\0\0\1", 1)])
        assert running.application.wait(TIMEOUT_SECONDS)
        assert {(problem.code, problem.topic) for problem in running.application.problems} == {
            (ProblemCode.MISSING_INTERNAL_TOPICS, running.topic("counts-changelog"))
        }


@pytest.mark.parametrize(
    "guarantee", ["exactly_once_v2", pytest.param("at_least_once", marks=pytest.mark.soak)]
)
@pytest.mark.parametrize(
    ("damage", "name"),
    [
        (_deleted("counts-changelog"), "counts-changelog"),
        pytest.param(_deleted("counts-repartition"), "counts-repartition", marks=pytest.mark.soak),
        (_recreated("counts-repartition"), "counts-repartition"),
        (_source_recreated, "in"),
    ],
)
def test_lost_topic_is_re_created_and_the_counts_continue(
    cluster: Cluster, damage: Damage, name: str, guarantee: str
) -> None:
    """Records written afterwards must not be mistaken for those of the lost topic at the same offsets."""
    with (
        structlog.testing.capture_logs() as logs,
        cluster.application(COUNT, {"processing.guarantee": guarantee}) as running,
    ):
        running.application.start()
        running.feed(*[b"a"] * 20)
        running.application.wait_until_idle()
        assert _counts(running) == list(range(1, 21))
        damage(running)
        assert until(lambda: _warned(logs, running.topic(name), "topic was re-created"), TIMEOUT_SECONDS), (
            logs
        )
        running.feed(*[b"a"] * 5)
        assert until(lambda: len(_counts(running)) >= 25, TIMEOUT_SECONDS), running.application.problems
        running.application.wait_until_idle()
        assert _counts(running) == list(range(1, 26))
    assert running.application.state is ClientState.NOT_RUNNING


def test_settings_that_endanger_data_are_reconfigured(cluster: Cluster) -> None:
    with structlog.testing.capture_logs() as logs, cluster.application(COUNT) as running:
        running.application.start()
        running.feed(b"a")
        running.application.wait_until_idle()
        _set("counts-changelog", "cleanup.policy", "delete")(running)
        _set("counts-repartition", "retention.ms", "60000")(running)
        for name in _SETTINGS:
            # The broker may report the old settings for a moment, which were right.
            reconfigured = partial(_warned, logs, running.topic(name), "internal topic reconfigured")
            assert until(reconfigured, TIMEOUT_SECONDS)
            assert until(partial(_is_configured, running, name), TIMEOUT_SECONDS)
        running.feed(b"a")
        running.application.wait_until_idle()
        assert _counts(running) == [1, 2]
    assert running.application.state is ClientState.NOT_RUNNING


@pytest.mark.soak  # without Spark: `runtime/driver/test_topic_check`
def test_settings_are_reconfigured_before_the_start(cluster: Cluster) -> None:
    with cluster.application(COUNT, set_up=_SETTINGS) as running:
        cluster.topics.configure_and_wait(running.topic("counts-changelog"), {"cleanup.policy": "delete"})
        running.application.start()
        assert until(partial(_is_configured, running, "counts-changelog"), TIMEOUT_SECONDS)


def _is_configured(running: RunningApplication, name: str) -> bool:
    return running.cluster.topics.settings(running.topic(name)).items() >= _SETTINGS[name].items()


def _counts(running: RunningApplication) -> list[int]:
    return [int.from_bytes(value or b"", "big") for value in running.values()]


def _warned(logs: Sequence["structlog.typing.EventDict"], topic: str, event: str) -> bool:
    return any(line["event"] == event and line.get("topic") == topic for line in list(logs))
