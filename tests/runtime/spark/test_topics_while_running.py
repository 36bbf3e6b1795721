"""KIP-698 while an application runs: topics that are deleted, made anew or misconfigured under it."""

from collections.abc import Callable, Sequence
from functools import partial

import pytest
import structlog
from confluent_kafka import KafkaError, KafkaException

from infra.model.problems import ProblemCode
from infra.observe import Connection, KafkaClusterReader
from spark_jobs.runtime.driver.states import ClientState
from tests.runtime.spark.stage import COUNT, PATIENCE_SECONDS, Running, Stage
from toolchain.broker.readiness import until

pytestmark = [pytest.mark.broker, pytest.mark.spark, pytest.mark.timeout(900)]

Harm = Callable[[Running], None]
_MANUAL = {"internal.topics.setup": "manual"}
_SETTINGS = {
    "counts-changelog": {"cleanup.policy": "compact"},
    "counts-repartition": {"cleanup.policy": "delete", "retention.ms": "-1"},
}


def _deleted(name: str) -> Harm:
    return lambda running: running.stage.topics.delete(running.topic(name))


def _emptied(name: str) -> Harm:
    def harm(running: Running) -> None:
        """Deleted, and made anew by somebody, just as it was, unless the application is quicker."""
        topics, topic = running.stage.topics, running.topic(name)
        reader = KafkaClusterReader(Connection(bootstrap_servers=(running.stage.servers,)))
        before = reader.topic_ids([topic])
        topics.delete(topic)
        assert until(lambda: reader.topic_ids([topic]) != before, PATIENCE_SECONDS)
        try:
            topics.create({topic: 1}, _SETTINGS.get(name))
        except KafkaException as problem:
            assert problem.args[0].code() == KafkaError.TOPIC_ALREADY_EXISTS  # noqa: PT017 - it need not come

    return harm


def _set(name: str, key: str, value: str) -> Harm:
    return lambda running: running.stage.topics.configure(running.topic(name), {key: value})


@pytest.mark.parametrize(
    ("harm", "name", "code"),
    [
        (_deleted("counts-changelog"), "counts-changelog", ProblemCode.MISSING_INTERNAL_TOPICS),
        (_deleted("counts-repartition"), "counts-repartition", ProblemCode.MISSING_INTERNAL_TOPICS),
        (_emptied("counts-repartition"), "counts-repartition", ProblemCode.MISSING_INTERNAL_TOPICS),
        (
            _set("counts-changelog", "cleanup.policy", "delete"),
            "counts-changelog",
            ProblemCode.MISCONFIGURED_INTERNAL_TOPIC,
        ),
        (
            _set("counts-repartition", "retention.ms", "60000"),
            "counts-repartition",
            ProblemCode.MISCONFIGURED_INTERNAL_TOPIC,
        ),
        (_deleted("in"), "in", ProblemCode.MISSING_SOURCE_TOPIC),
    ],
)
def test_a_topic_that_is_lost_or_harmed_stops_the_application(
    stage: Stage, harm: Harm, name: str, code: ProblemCode
) -> None:
    with stage.application(COUNT, _MANUAL, set_up=_SETTINGS) as running:
        running.application.start()
        assert until(lambda: running.application.state is ClientState.RUNNING, PATIENCE_SECONDS)
        harm(running)
        assert running.application.wait(PATIENCE_SECONDS)
        assert running.application.state is ClientState.ERROR
        (problem,) = running.application.problems
        assert (problem.code, problem.topic) == (code, running.topic(name))


def test_a_topic_that_was_made_anew_stops_the_application_though_it_has_written_to_it_since(
    stage: Stage,
) -> None:
    with stage.application(COUNT, _MANUAL, set_up=_SETTINGS) as running:
        running.application.start()
        running.feed(b"a")
        running.application.wait_until_idle()
        _emptied("counts-changelog")(running)
        stage.topics.put(running.topic("counts-changelog"), [(b"a", b"\0\0\0\0\0\0\0\1", 1)])
        assert running.application.wait(PATIENCE_SECONDS)
        assert {(problem.code, problem.topic) for problem in running.application.problems} == {
            (ProblemCode.MISSING_INTERNAL_TOPICS, running.topic("counts-changelog"))
        }


@pytest.mark.parametrize("guarantee", ["at_least_once", "exactly_once_v2"])
@pytest.mark.parametrize(
    ("harm", "name"),
    [
        (_deleted("counts-changelog"), "counts-changelog"),
        (_deleted("counts-repartition"), "counts-repartition"),
        (_emptied("counts-repartition"), "counts-repartition"),
        (_emptied("in"), "in"),
    ],
)
def test_a_topic_that_is_lost_is_made_anew_and_the_counts_go_on(
    stage: Stage, harm: Harm, name: str, guarantee: str
) -> None:
    """Nothing that is written afterwards may be taken for what the lost topic held at the same offsets."""
    with (
        structlog.testing.capture_logs() as logs,
        stage.application(COUNT, {"processing.guarantee": guarantee}) as running,
    ):
        running.application.start()
        running.feed(*[b"a"] * 20)
        running.application.wait_until_idle()
        assert _counts(running) == list(range(1, 21))
        harm(running)
        assert until(lambda: _warned(logs, running.topic(name), "topic was re-created"), PATIENCE_SECONDS), (
            logs
        )
        running.feed(*[b"a"] * 5)
        assert until(lambda: len(_counts(running)) >= 25, PATIENCE_SECONDS), running.application.problems
        running.application.wait_until_idle()
        assert _counts(running) == list(range(1, 26))
    assert running.application.state is ClientState.NOT_RUNNING


def test_settings_that_endanger_data_are_put_right(stage: Stage) -> None:
    with structlog.testing.capture_logs() as logs, stage.application(COUNT) as running:
        running.application.start()
        running.feed(b"a")
        running.application.wait_until_idle()
        _set("counts-changelog", "cleanup.policy", "delete")(running)
        _set("counts-repartition", "retention.ms", "60000")(running)
        for name in _SETTINGS:
            assert until(partial(_is_right, running, name), PATIENCE_SECONDS)
            assert _warned(logs, running.topic(name), "internal topic reconfigured")
        running.feed(b"a")
        running.application.wait_until_idle()
        assert _counts(running) == [1, 2]
    assert running.application.state is ClientState.NOT_RUNNING


def test_settings_are_put_right_before_the_start(stage: Stage) -> None:
    with stage.application(COUNT, set_up=_SETTINGS) as running:
        _set("counts-changelog", "cleanup.policy", "delete")(running)
        running.application.start()
        assert stage.topics.settings(running.topic("counts-changelog"))["cleanup.policy"] == "compact"


def _is_right(running: Running, name: str) -> bool:
    return running.stage.topics.settings(running.topic(name)).items() >= _SETTINGS[name].items()


def _counts(running: Running) -> list[int]:
    return [int.from_bytes(value or b"", "big") for value in running.values()]


def _warned(logs: Sequence["structlog.typing.EventDict"], topic: str, event: str) -> bool:
    return any(line["event"] == event and line.get("topic") == topic for line in list(logs))
