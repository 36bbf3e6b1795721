"""Faults while real Kafka Streams applications expand their internal topics."""

from collections.abc import Callable
from pathlib import Path

import pytest

from headwater.model.versions import SUPPORTED
from headwater.toolchain.broker import Broker, Settings
from headwater.toolchain.broker.local import LocalBroker
from headwater.toolchain.broker.readiness import until
from tests.streams_library.application import TestedApplication
from tests.streams_library.applications import NEWEST, jvm

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
    ),
]


def test_another_instance_completes_an_expansion_whose_leader_was_killed(
    kafka: LocalBroker, unique: Callable[[str], str], tmp_path: Path, version: str
) -> None:
    """The leader expands the repartition topic and dies before the changelog topic."""
    application = TestedApplication(unique("shop"), kafka.bootstrap_servers)
    application.create(application.source, 2)
    application.create(application.sink, 2)
    configs = application.configs(partition_autoscaling_enabled="true", internal_topics_setup="manual")
    dying = {**configs, "headwater.delegate.client.supplier": OBSERVED, "test.fault": "halt"}
    with jvm(version, tmp_path / "dying") as first, jvm(version, tmp_path / "living") as second:
        first.initialize("first", application.topology, configs)
        first.start("first", application.topology, dying)
        first.await_tasks("first", 4)
        second.start("second", application.topology, configs)
        second.await_tasks("second", 2)
        application.expand(application.source, 4)
        first.wait("first", lambda event: event.kind == "expanding")
        assert first.process.wait(60) == 9
        assert application.counts(*application.internal_topics) == {
            application.repartition: 4,
            application.changelog: 2,
        }
        second.await_tasks("second", 8)
        assert application.counts(application.changelog) == {application.changelog: 4}


def test_a_quota_of_the_controller_delays_the_expansion(
    own_broker: Callable[..., Broker], unique: Callable[[str], str], tmp_path: Path, version: str
) -> None:
    windows = {"controller.quota.window.num": "2", "controller.quota.window.size.seconds": "1"}
    with own_broker(Settings(overrides=windows)) as broker, jvm(version, tmp_path) as applications:
        application = TestedApplication(unique("shop"), broker.bootstrap_servers)
        application.create(application.source, 2)
        application.create(application.sink, 2)
        configs = application.configs(partition_autoscaling_enabled="true")
        applications.start("app", application.topology, configs)
        applications.await_tasks("app", 4)
        broker.limit_topic_changes(1)
        application.expand(application.source, 6)
        applications.await_tasks("app", 12)
        assert application.counts(*application.internal_topics) == dict.fromkeys(
            application.internal_topics, 6
        )
        metrics = applications.ask("app", "metrics")
        assert {value for name, value in metrics.items() if name.endswith("num-autoscaling-failures")} == {
            "0"
        }


@pytest.mark.parametrize("fault", ["killed", pytest.param("paused", marks=pytest.mark.soak)])
def test_a_broker_that_fails_during_the_expansion_delays_it(
    own_broker: Callable[..., Broker], tmp_path: Path, version: str, fault: str
) -> None:
    """Requests that were sent before may have expanded topics or not; nothing is expanded twice."""
    with own_broker() as broker, jvm(version, tmp_path) as applications:
        application = TestedApplication("shop", broker.bootstrap_servers)
        application.create(application.source, 2)
        application.create(application.sink, 2)
        configs = application.configs(
            partition_autoscaling_enabled="true",
            internal_topics_setup="manual",
            headwater_delegate_client_supplier=OBSERVED,
        )
        applications.initialize("app", application.topology, configs)
        applications.start("app", application.topology, configs)
        applications.await_tasks("app", 4)
        application.expand(application.source, 4)
        applications.wait("app", lambda event: event.kind == "expanding")
        if fault == "killed":
            broker.kill()
            broker.start()
        else:
            broker.pause()
            # The library's requests time out after 10 s.
            until(lambda: any("retrying" in line for line in applications.log), 60)
            broker.resume()
        applications.await_tasks("app", 8)
        assert application.counts(*application.internal_topics) == dict.fromkeys(
            application.internal_topics, 4
        )
        application.produce(20)
        application.await_true(lambda: application.end_offsets(application.sink) > 0, "records are counted")
