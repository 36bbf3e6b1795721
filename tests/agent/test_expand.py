"""One expansion attempt: its requests, their order and the topics that a failed topic blocks."""

from collections.abc import Callable, Sequence
from threading import Event
from typing import cast

import pytest

from headwater.agent.callbacks import call_callback, callbacks_of
from headwater.agent.expand import expand_waves
from headwater.agent.kafka_cluster import KafkaCluster
from headwater.agent.ports import Callback
from headwater.agent.state import Outcome, Shortfall, TopicResult
from headwater.kafka import Connection
from headwater.model.problems import ProblemsError
from tests.agent.live_documents import RECORDING_PARTITIONER, FailingPartitioner, recorded_calls
from tests.agent.running import InMemory
from tests.agent.simulation import ORDERS, documents

WAVES = (
    (Shortfall("a", "a-changelog", 2, 4), Shortfall("b", "b-changelog", 2, 4)),
    (Shortfall("a", "a-repartition", 2, 4), Shortfall("b", "b-repartition", 2, 4)),
)


class Broker:
    """A broker with an outcome per topic; records the requested topics."""

    def __init__(self, **outcomes: Outcome) -> None:
        self.outcomes = {name.replace("_", "-"): outcome for name, outcome in outcomes.items()}
        self.requests: list[list[str]] = []

    def __call__(self, shortfalls: Sequence[Shortfall]) -> tuple[TopicResult, ...]:
        self.requests.append([item.topic for item in shortfalls])
        return tuple(
            TopicResult(item.topic, item.required, self.outcomes.get(item.topic, Outcome.EXPANDED))
            for item in shortfalls
        )


def outcomes(results: Sequence[TopicResult]) -> dict[str, Outcome]:
    return {result.topic: result.outcome for result in results}


def test_topics_are_validated_in_one_request_and_expanded_in_waves() -> None:
    validate, create = Broker(), Broker()
    results = expand_waves(WAVES, validate=validate, create=create, is_leader=lambda: True)
    assert set(outcomes(results).values()) == {Outcome.EXPANDED}
    assert validate.requests == [["a-changelog", "b-changelog", "a-repartition", "b-repartition"]]
    assert create.requests == [["a-changelog", "b-changelog"], ["a-repartition", "b-repartition"]]


@pytest.mark.parametrize("where", ["validate", "create"])
def test_failed_topic_holds_back_upstream_topics_of_its_application(where: str) -> None:
    bad = Broker(a_changelog=Outcome.FAILED)
    validate, create = (bad, Broker()) if where == "validate" else (Broker(), bad)
    results = expand_waves(WAVES, validate=validate, create=create, is_leader=lambda: True)
    assert outcomes(results) == {
        "a-changelog": Outcome.FAILED,
        "b-changelog": Outcome.EXPANDED,
        "a-repartition": Outcome.HELD_BACK,
        "b-repartition": Outcome.EXPANDED,
    }


def test_refused_upstream_topic_does_not_hold_back_downstream_topics() -> None:
    create = Broker()
    results = expand_waves(
        WAVES,
        validate=Broker(a_repartition=Outcome.FAILED),
        create=create,
        is_leader=lambda: True,
    )
    assert outcomes(results)["a-changelog"] is Outcome.EXPANDED
    assert create.requests[1] == ["b-repartition"]


def test_existing_partitions_are_not_requested() -> None:
    create = Broker()
    results = expand_waves(
        WAVES, validate=Broker(a_changelog=Outcome.ALREADY), create=create, is_leader=lambda: True
    )
    assert outcomes(results)["a-changelog"] is Outcome.ALREADY
    assert outcomes(results)["a-repartition"] is Outcome.EXPANDED
    assert create.requests[0] == ["b-changelog"]


def test_leadership_is_confirmed_before_each_wave() -> None:
    answers = [True, False]
    create = Broker()
    results = expand_waves(WAVES, validate=Broker(), create=create, is_leader=lambda: answers.pop(0))
    assert len(create.requests) == 1
    assert {result.error for result in results[2:]} == {"LEADERSHIP_NOT_CONFIRMED"}


@pytest.mark.parametrize("seconds", [0.001, 0.5, 400])
def test_timeouts_outside_of_the_limits_of_librdkafka_are_accepted(seconds: float) -> None:
    connection = Connection(bootstrap_servers=("127.0.0.1:1",))
    KafkaCluster(connection, "agent-1", seconds)


def callback(given: Callback | None) -> Callable[[str], Callback | None]:
    return lambda _: given


def test_exception_of_callback_is_returned() -> None:
    assert (
        call_callback(callback(FailingPartitioner()), "a", 2, 4) == "RuntimeError: cannot take 4 instead of 2"
    )
    assert call_callback(callback(None), "a", 2, 4) == ""


class _Unprintable(Exception):  # noqa: N818 - of a user
    def __str__(self) -> str:
        raise OSError


@pytest.mark.parametrize(
    ("raised", "text"),
    [
        (SystemExit(3), "SystemExit: 3"),
        (ValueError("\ud800"), "ValueError: \\ud800"),
        (_Unprintable(), "_Unprintable"),
        (ValueError("x" * 5_000_000), "ValueError: xxx"),
    ],
)
def test_error_of_callback_can_be_written_to_journal(raised: BaseException, text: str) -> None:
    class Raising:
        def on_partition_expansion(self, _: int, __: int) -> None:
            raise raised

    found = call_callback(callback(cast("Callback", Raising())), "a", 2, 4)
    assert found.startswith(text)
    assert len(found.encode()) < 10_000


def test_hanging_callback_does_not_block() -> None:
    release = Event()

    class Hanging:
        def on_partition_expansion(self, old: int, new: int) -> None:
            release.wait(old + new)

    assert call_callback(callback(Hanging()), "a", 20, 40, seconds=0.05) == "did not return within 0.05 s"
    release.set()


def test_static_partitioner_of_application_is_called() -> None:
    recorded_calls()
    own = callbacks_of(None, InMemory(documents(ORDERS.replace("tenants:ByTenant", RECORDING_PARTITIONER))))
    assert call_callback(own, "totals-app", 2, 4) == ""
    assert call_callback(own, "another-app", 2, 4) == ""
    assert recorded_calls() == [(2, 4)]
    absent = callbacks_of(None, InMemory(documents(ORDERS)))
    assert "No module named 'tenants'" in call_callback(absent, "totals-app", 2, 4)


@pytest.mark.parametrize("name", ["nowhere:Class", "os:path", "os", "tests.agent.live_documents:Nothing"])
def test_unusable_callback_class_is_refused_at_start(name: str) -> None:
    with pytest.raises(ProblemsError) as refused:
        callbacks_of(name, InMemory(()))
    assert name in refused.value.problems[0].summary
