"""`up` on three brokers, one of which is stopped, or dies while topics are created."""

from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from headwater.toolchain import PulumiToolchain
from headwater.toolchain.broker import Broker
from headwater.toolchain.broker.readiness import until
from headwater.toolchain.kafka import KafkaDistribution
from tests.kafka.several_brokers import several_brokers
from tests.pulumi.cluster import Cluster
from tests.pulumi.conftest import Deployment, make_deployment
from tests.pulumi.driver import end, wait_for_lines
from tests.pulumi.test_interruption import CREATED, SLOWLY, many

pytestmark = [pytest.mark.pulumi, pytest.mark.slow]
_REPLICATED = {"replication.factor": 3}
_SECONDS, _END_SECONDS = 300, 60


@pytest.fixture
def brokers(kafka_distribution: KafkaDistribution, tmp_path: Path) -> Iterator[tuple[Broker, ...]]:
    with several_brokers(kafka_distribution, tmp_path / "brokers") as started:
        yield started


@pytest.fixture
def deployment(
    tmp_path: Path,
    pulumi_toolchain: PulumiToolchain,
    brokers: tuple[Broker, ...],
    unique: Callable[[str], str],
) -> Deployment:
    servers = [broker.bootstrap_servers for broker in brokers]
    cluster = Cluster(",".join(servers))
    assert until(lambda: cluster.brokers() == {1, 2, 3}, _SECONDS)
    deployment = make_deployment(tmp_path / "stack", pulumi_toolchain, cluster, unique)
    deployment.stack.configure({"bootstrapServers": servers})
    return deployment


def test_one_of_three_brokers_may_be_stopped_during_up(
    deployment: Deployment, brokers: tuple[Broker, ...]
) -> None:
    brokers[2].kill()
    assert until(lambda: deployment.cluster.brokers() == {1, 2}, _SECONDS)
    deployment.declare(_REPLICATED)
    outcome = deployment.up()
    assert "only 2 brokers answer" in " ".join(outcome.text.split()), str(outcome)
    deployment.settles_at(4, 4)
    assert deployment.cluster.replicas(deployment.changelog) == {3}
    deployment.is_clean()


@pytest.mark.soak  # `test_interruption` kills the only broker during an `up`
def test_one_of_three_brokers_may_die_during_up(deployment: Deployment, brokers: tuple[Broker, ...]) -> None:
    names = many(deployment, "automatic", _REPLICATED)
    process = deployment.stack.start(*SLOWLY)
    wait_for_lines(process, CREATED, count=2, seconds=_SECONDS)
    brokers[1].kill()
    end(process, seconds=_END_SECONDS)
    # Until then, brokers name it, and a request that is sent to it is not answered.
    assert until(lambda: deployment.cluster.brokers() == {1, 3}, _SECONDS)
    deployment.stack.run("cancel", "--yes")
    deployment.up()
    assert deployment.cluster.existing(names) == set(names)
    assert all(deployment.cluster.replicas(name) == {3} for name in names)
    deployment.is_clean()
