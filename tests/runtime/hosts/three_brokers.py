"""Three brokers, each on a host of its own: a route to one of them may be missing."""

from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from pathlib import Path

import attrs

from headwater.toolchain.broker import Broker, Settings
from headwater.toolchain.kafka import KafkaDistribution
from tests.kafka.several_brokers import REPLICATED
from tests.runtime.hosts.network import Host, Network

_PORT, _CONTROLLER_PORT = 9092, 9093


@attrs.frozen
class BrokerHosts:
    """The hosts of three brokers; the programs that are tested run on `client`.

    The test itself is on another host, whose routes stay.
    """

    brokers: tuple[Broker, ...]
    hosts: tuple[Host, ...]
    client: Host

    @property
    def servers(self) -> tuple[str, ...]:
        return tuple(f"{host.address}:{_PORT}" for host in self.hosts)

    def block(self, number: int) -> None:
        """Take the route to the broker with this id from the client."""
        self.client.block(self.hosts[number - 1].address)

    def unblock(self, number: int) -> None:
        self.client.unblock(self.hosts[number - 1].address)


@contextmanager
def three_brokers(distribution: KafkaDistribution, folder: Path) -> Iterator[BrokerHosts]:
    """Start three brokers, with three replicas of each partition; the first one is the controller."""
    with Network(folder / "hosts") as network, ExitStack() as stack:
        hosts = tuple(network.add(f"broker{number}") for number in (1, 2, 3))
        client, observer = network.add("client"), network.add("observer")
        controller = f"{hosts[0].address}:{_CONTROLLER_PORT}"
        brokers: list[Broker] = []
        for number, host in enumerate(hosts, 1):
            listeners = f"PLAINTEXT://0.0.0.0:{_PORT}"
            overrides = {
                **REPLICATED,
                "node.id": str(number),
                "process.roles": "broker,controller" if number == 1 else "broker",
                "controller.quorum.voters": f"1@{controller}",
                "listeners": f"{listeners},CONTROLLER://{controller}" if number == 1 else listeners,
                "advertised.listeners": f"PLAINTEXT://{host.address}:{_PORT}",
                # A heartbeat that a busy machine delays elects no other leaders.
                "broker.session.timeout.ms": "60000",
            }
            broker = Broker(distribution, folder / str(number), Settings(overrides=overrides), port=_PORT)
            if brokers:
                broker.cluster_id = brokers[0].cluster_id
            stack.callback(broker.kill)
            with host.entered():
                broker.start()
            brokers.append(broker)
        with observer.entered():
            yield BrokerHosts(tuple(brokers), hosts, client)
