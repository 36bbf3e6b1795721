"""A cluster of three brokers in two racks: the first one is the controller, too."""

from collections.abc import Iterator, Mapping
from contextlib import ExitStack, contextmanager
from pathlib import Path

from confluent_kafka import ElectionType
from confluent_kafka.admin import AdminClient

from headwater.toolchain.broker import Broker, Settings
from headwater.toolchain.broker.readiness import HOST, free_ports, is_listening
from headwater.toolchain.kafka import KafkaDistribution
from tests.broker_data import copy_data

_RACKS = {1: "rack-a", 2: "rack-a", 3: "rack-b"}
REPLICATED = {
    "default.replication.factor": "3",
    "min.insync.replicas": "2",
    # With fewer replicas, groups have no coordinator while their broker is stopped.
    "offsets.topic.replication.factor": "3",
    "transaction.state.log.replication.factor": "3",
    "transaction.state.log.min.isr": "2",
}
_SESSION = {"broker.session.timeout.ms": "2000"}
"""The controller notices soon that a broker was killed or paused."""
_LONG_SESSION = {"broker.session.timeout.ms": "600000"}
"""A controller that was paused fences no broker when it is resumed: several times, on a busy machine."""


@contextmanager
def several_brokers(
    distribution: KafkaDistribution, folder: Path, overrides: Mapping[str, str] | None = None
) -> Iterator[tuple[Broker, ...]]:
    """Start three brokers, and kill them at the end; `overrides` are settings of the controller."""
    controller, *ports = free_ports(3)
    voters = {"controller.quorum.voters": f"1@{HOST}:{controller}"}
    with ExitStack() as stack:
        listeners = f"PLAINTEXT://{HOST}:{ports[0]},CONTROLLER://{HOST}:{controller}"
        settings = Settings(
            overrides={
                **REPLICATED,
                **_SESSION,
                **voters,
                "listeners": listeners,
                "broker.rack": _RACKS[1],
                **(overrides or {}),
            }
        )
        copy_data(distribution, folder / "1", settings)
        first = Broker(distribution, folder / "1", settings, port=ports[0])
        stack.callback(first.kill)
        first.start()
        brokers = [first]
        for number, port in enumerate((ports[1], *free_ports(1)), start=2):
            roles = {"process.roles": "broker", "node.id": str(number), "broker.rack": _RACKS[number]}
            only = {"listeners": f"PLAINTEXT://{HOST}:{port}"}
            settings = Settings(overrides={**REPLICATED, **_SESSION, **voters, **roles, **only})
            own = folder / str(number)
            copy_data(distribution, own, settings, node=number, cluster_id=first.cluster_id)
            broker = Broker(distribution, own, settings, port=port)
            stack.callback(broker.kill)
            broker.start()
            brokers.append(broker)
        yield tuple(brokers)


def elect_preferred_leaders(servers: str) -> None:
    """Make the first replica of each partition its leader again, if it is in sync."""
    admin = AdminClient({"bootstrap.servers": servers})  # kept until the answer
    admin.elect_leaders(ElectionType.PREFERRED).result()


class Controller(Broker):
    """A controller that is no broker: clients do not connect to it."""

    def _is_ready(self) -> bool:
        return is_listening(int(self.settings.overrides["listeners"].rpartition(":")[2]))


@contextmanager
def separate_controller(distribution: KafkaDistribution, folder: Path) -> Iterator[tuple[Controller, Broker]]:
    """Start a controller and a broker, and kill both at the end."""
    controller_port, port = free_ports(2)
    voters = {"controller.quorum.voters": f"1@{HOST}:{controller_port}"}
    roles = {"process.roles": "controller", "listeners": f"CONTROLLER://{HOST}:{controller_port}"}
    settings = Settings(overrides={**_LONG_SESSION, **voters, **roles})
    copy_data(distribution, folder / "1", settings)
    controller = Controller(distribution, folder / "1", settings)
    roles = {"process.roles": "broker", "node.id": "2", "listeners": f"PLAINTEXT://{HOST}:{port}"}
    settings = Settings(overrides={**_LONG_SESSION, **voters, **roles})
    copy_data(distribution, folder / "2", settings, node=2, cluster_id=controller.cluster_id)
    broker = Broker(distribution, folder / "2", settings, port=port)
    with ExitStack() as stack:
        for each in (controller, broker):
            stack.callback(each.kill)
            each.start()
        yield controller, broker
