"""Faults while real Kafka Streams applications expand their internal topics."""

from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from headwater.model.versions import SUPPORTED
from headwater.toolchain.broker import Broker, Settings
from headwater.toolchain.broker.local import LocalBroker
from headwater.toolchain.broker.readiness import until
from tests.streams_library.application import TestedApplication
from tests.streams_library.applications import NEWEST, Applications, jvm

OBSERVED = "headwater.streamstest.ObservedClients"
pytestmark = [
    pytest.mark.broker,
    pytest.mark.oracle,
    pytest.mark.parametrize(
        "version",
        [
            str(version) if str(version) == NEWEST else pytest.param(str(version), marks=pytest.mark.soak)
            for version in SUPPORTED
        ],
        scope="module",
    ),
]


@pytest.fixture(scope="module")
def broker(own_broker: Callable[..., Broker], version: str) -> Iterator[Broker]:  # noqa: ARG001 - one for each
    """A broker that a test may limit and kill. Then it has a short session: the last test kills it."""
    windows = {"controller.quota.window.num": "2", "controller.quota.window.size.seconds": "1"}
    with own_broker(Settings(overrides=windows)) as started:
        yield started


def test_another_instance_completes_an_expansion_whose_leader_was_killed(
    kafka: LocalBroker,
    unique: Callable[[str], str],
    tmp_path: Path,
    version: str,
    applications_of: Callable[[str], Applications],
) -> None:
    """The leader expands the repartition topic and dies before the changelog topic."""
    second = applications_of(version)
    application = TestedApplication(unique("shop"), kafka.bootstrap_servers)
    application.create(application.source, 2)
    application.create(application.sink, 2)
    configs = application.configs(partition_autoscaling_enabled="true", internal_topics_setup="manual")
    dying = {**configs, "headwater.delegate.client.supplier": OBSERVED, "test.fault": "halt"}
    with jvm(version, tmp_path / "dying") as first:
        first.initialize("first", application.topology, configs)
        first.start("first", application.topology, dying)
        first.await_tasks("first", 4)
        second.start(application.id, application.topology, configs)
        second.await_tasks(application.id, 2)
        application.expand(application.source, 4)
        first.wait("first", lambda event: event.kind == "expanding")
        assert first.process.wait(60) == 9
        assert application.counts(*application.internal_topics) == {
            application.repartition: 4,
            application.changelog: 2,
        }
        second.await_tasks(application.id, 8)
        assert application.counts(application.changelog) == {application.changelog: 4}
        second.close(application.id)


def test_a_quota_of_the_controller_delays_the_expansion(
    broker: Broker,
    unique: Callable[[str], str],
    version: str,
    applications_of: Callable[[str], Applications],
) -> None:
    applications, application = applications_of(version), _application(broker, unique)
    name = application.id
    applications.start(name, application.topology, application.configs(partition_autoscaling_enabled="true"))
    applications.await_tasks(name, 4)
    broker.limit_topic_changes(1)
    application.expand(application.source, 6)
    applications.await_tasks(name, 12)
    assert application.counts(*application.internal_topics) == dict.fromkeys(application.internal_topics, 6)
    metrics = applications.ask(name, "metrics")
    assert {value for bean, value in metrics.items() if bean.endswith("num-autoscaling-failures")} == {"0"}
    applications.close(name)
    broker.limit_topic_changes(1_000_000)


@pytest.mark.parametrize("fault", [pytest.param("paused", marks=pytest.mark.soak), "killed"])
def test_a_broker_that_fails_during_the_expansion_delays_it(
    broker: Broker,
    unique: Callable[[str], str],
    version: str,
    fault: str,
    applications_of: Callable[[str], Applications],
) -> None:
    """Requests that were sent before may have expanded topics or not; nothing is expanded twice."""
    applications, application = applications_of(version), _application(broker, unique)
    name = application.id
    configs = application.configs(
        partition_autoscaling_enabled="true",
        internal_topics_setup="manual",
        headwater_delegate_client_supplier=OBSERVED,
    )
    applications.initialize(name, application.topology, configs)
    applications.start(name, application.topology, configs)
    applications.await_tasks(name, 4)
    application.expand(application.source, 4)
    applications.wait(name, lambda event: event.kind == "expanding")
    if fault == "killed":
        broker.kill()
        broker.start()
    else:
        logged = len(applications.log)
        broker.pause()
        # The library's requests time out after 10 s.
        until(lambda: any("retrying" in line for line in applications.log[logged:]), 60)
        broker.resume()
    applications.await_tasks(name, 8)
    assert application.counts(*application.internal_topics) == dict.fromkeys(application.internal_topics, 4)
    application.produce(20)
    application.await_true(lambda: application.end_offsets(application.sink) > 0, "records are counted")
    applications.close(name)


def _application(broker: Broker, unique: Callable[[str], str]) -> TestedApplication:
    application = TestedApplication(unique("shop"), broker.bootstrap_servers)
    application.create(application.source, 2)
    application.create(application.sink, 2)
    return application
