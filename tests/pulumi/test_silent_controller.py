"""`up` while the controller of the cluster is paused, and its brokers answer."""

import time
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from headwater.toolchain import PulumiToolchain
from headwater.toolchain.broker import Broker
from headwater.toolchain.broker.readiness import until
from headwater.toolchain.kafka import KafkaDistribution
from tests.kafka.several_brokers import separate_controller
from tests.pulumi.cluster import Cluster
from tests.pulumi.conftest import Deployment, make_deployment
from tests.pulumi.driver import end, wait_for_lines
from tests.pulumi.test_interruption import CREATED, SLOWLY, many

pytestmark = [pytest.mark.pulumi, pytest.mark.slow]
_SUMMARY = "The controller of the cluster does not answer"
_SECONDS = 300
_LONGEST_REFUSAL_SECONDS = 90
"""The brokers are asked for 30 s; the provider would have waited for two minutes more."""


@pytest.fixture
def nodes(kafka_distribution: KafkaDistribution, tmp_path: Path) -> Iterator[tuple[Broker, Broker]]:
    with separate_controller(kafka_distribution, tmp_path / "nodes") as started:
        yield started


@pytest.fixture
def deployment(
    tmp_path: Path,
    pulumi_toolchain: PulumiToolchain,
    nodes: tuple[Broker, Broker],
    unique: Callable[[str], str],
) -> Deployment:
    _, broker = nodes
    cluster = Cluster(broker.bootstrap_servers)
    return make_deployment(tmp_path / "stack", pulumi_toolchain, cluster, unique)


def test_a_paused_controller_is_named_before_topics_are_created(
    deployment: Deployment, nodes: tuple[Broker, Broker]
) -> None:
    controller, _ = nodes
    deployment.declare()
    controller.pause()
    begin = time.monotonic()
    outcome = deployment.refused("RequestNotAnswered")
    assert time.monotonic() - begin < _LONGEST_REFUSAL_SECONDS
    assert _SUMMARY in " ".join(outcome.text.split()), str(outcome)


@pytest.mark.soak  # without Pulumi: `apply/test_controller_watch` and `apply/test_validation`
def test_a_controller_that_is_paused_while_topics_are_created_is_named(
    deployment: Deployment, nodes: tuple[Broker, Broker]
) -> None:
    controller, _ = nodes
    names = many(deployment, "automatic")
    process = deployment.stack.start(*SLOWLY)
    wait_for_lines(process, CREATED, count=2, seconds=_SECONDS)
    controller.pause()
    wait_for_lines(process, _SUMMARY, count=1, seconds=_SECONDS)
    assert len(deployment.cluster.existing(names)) < len(names)
    _resume(controller, deployment.cluster)
    end(process, seconds=_SECONDS)
    deployment.up()
    assert deployment.cluster.existing(names) == set(names)
    deployment.is_clean()


def _resume(controller: Broker, cluster: Cluster) -> None:
    """Resume the controller, and wait until it no longer fences the broker."""
    controller.resume()
    assert until(cluster.brokers, _SECONDS)
