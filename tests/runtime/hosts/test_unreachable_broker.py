"""A broker without a route to it, before and in the middle of a command, an agent's expansion and an `up`."""

import subprocess
import sys
from collections.abc import Callable, Iterator
from pathlib import Path

import attrs
import pytest

from headwater.agent.events import ClusterReadable, ClusterUnreadable
from headwater.toolchain import KafkaDistribution, PulumiToolchain
from headwater.toolchain.broker import Broker, Settings
from tests.agent.live_documents import unique_documents
from tests.agent.running import await_counts, await_true, make_topics, running, settings
from tests.pulumi.cluster import Cluster
from tests.pulumi.conftest import Deployment
from tests.pulumi.driver import Stack, end, wait_for_lines
from tests.runtime.hosts.network import Host, Network, reason_to_skip

_REASON = reason_to_skip()
pytestmark = [
    pytest.mark.broker,
    pytest.mark.slow,
    pytest.mark.timeout(900),
    pytest.mark.skipif(bool(_REASON), reason=_REASON),
]
_PORT, _CONTROLLER_PORT = 9092, 9093
_SECONDS = 300.0
_STORES = 12
_DOCUMENT = """
application: {id: shop}
topology:
  - stream: {topic: orders, as: orders}
  - groupByKey:
  - count: {materialized: counts}
"""


@attrs.frozen
class _Route:
    """The host of this thread, and its route to the broker."""

    host: Host
    broker: Broker
    servers: str
    folder: Path

    def block(self) -> None:
        self.host.block(self.servers.partition(":")[0])

    def unblock(self) -> None:
        self.host.unblock(self.servers.partition(":")[0])


@pytest.fixture
def route(kafka_distribution: KafkaDistribution, tmp_path: Path) -> Iterator[_Route]:
    with Network(tmp_path / "hosts") as network:
        broker_host, client = network.add("broker"), network.add("client")
        servers = f"{broker_host.address}:{_PORT}"
        overrides = {
            "listeners": f"PLAINTEXT://0.0.0.0:{_PORT},CONTROLLER://127.0.0.1:{_CONTROLLER_PORT}",
            "advertised.listeners": f"PLAINTEXT://{servers}",
            "controller.quorum.voters": f"1@127.0.0.1:{_CONTROLLER_PORT}",
        }
        broker = Broker(kafka_distribution, tmp_path / "kafka", Settings(overrides=overrides), port=_PORT)
        with broker_host.entered(), broker, client.entered():
            yield _Route(client, broker, servers, tmp_path)


def test_commands_end_and_an_agent_continues(route: _Route, unique: Callable[[str], str]) -> None:
    """While the broker has no route: a command ends with its problem. Afterwards, the agent expands."""
    document = route.folder / "shop.yaml"
    document.write_text(_DOCUMENT)
    suffix = unique("x").removeprefix("x-")
    documents, cluster = unique_documents(suffix), Cluster(route.servers)
    sources = {f"orders-{suffix}": 2, f"returns-{suffix}": 3}
    cluster.create("orders", 2)
    make_topics(cluster, documents, sources)
    assert _plan(route, document).returncode == 0
    agent = settings(route.servers, documents, suffix, request_timeout_ms=3_000)
    with running(agent) as recorder:
        await_true(lambda: recorder.state.is_recovered, _SECONDS)
        sources[f"orders-{suffix}"] = 6
        cluster.expand(f"orders-{suffix}", 6)
        route.block()
        await_true(lambda: recorder.of(ClusterUnreadable), _SECONDS)
        failed = _plan(route, document)
        assert failed.returncode != 0
        assert "error[ClusterUnreachable]" in failed.stderr, failed
        route.unblock()
        await_true(lambda: recorder.of(ClusterReadable), _SECONDS)
        await_counts(cluster, documents, sources, _SECONDS)


@pytest.mark.pulumi
@pytest.mark.soak
def test_an_up_ends_and_the_next_one_completes_it(
    route: _Route, pulumi_toolchain: PulumiToolchain, unique: Callable[[str], str]
) -> None:
    """The provider retries for up to two minutes, then the run fails."""
    cluster = Cluster(route.servers)
    stack = Stack.create(route.folder / "stack", pulumi_toolchain, {"bootstrapServers": route.servers})
    deployment = Deployment(stack, cluster, unique("app"), unique("orders"))
    cluster.create(deployment.source, 2)
    topology: list[dict[str, object]] = [{"stream": {"topic": deployment.source, "as": "orders"}}]
    for number in range(_STORES):
        store = {"name": f"store-{number}", "kind": "keyValue"}
        topology.append({"process": {"from": "orders", "name": f"worker-{number}", "stores": [store]}})
    deployment.write(topology, {"internal.topics.setup": "manual"})
    names = [f"{deployment.id}-store-{number}-changelog" for number in range(_STORES)]
    process = deployment.stack.start("up", "--yes", "--skip-preview", "--parallel", "2")
    wait_for_lines(process, "changelog created", count=3, seconds=_SECONDS)
    route.block()
    assert not end(process, seconds=_SECONDS).succeeded
    unreachable = deployment.stack.up()
    assert "error[ClusterUnreachable]" in unreachable.text, str(unreachable)
    route.unblock()
    deployment.stack.run("cancel", "--yes")
    deployment.up()
    assert deployment.cluster.existing(names) == set(names)
    deployment.is_clean()


def _plan(route: _Route, document: Path) -> "subprocess.CompletedProcess[str]":
    """Run `headwater plan` on the host of this thread; it has to end by itself."""
    command = [sys.executable, "-m", "headwater.cli", "plan", str(document)]
    return subprocess.run(
        [*command, "--bootstrap-server", route.servers],
        capture_output=True,
        text=True,
        check=False,
        timeout=_SECONDS,
    )
