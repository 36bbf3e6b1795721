"""The permissions that docs/agent-operations.md names are sufficient, and missing ones are reported."""

from collections.abc import Callable, Iterator, Mapping, MutableMapping, Sequence
from typing import Any

import pytest
from confluent_kafka.admin import (  # type: ignore[attr-defined]  # public, but not exported explicitly
    AclBinding,
    AclOperation,
    AclPermissionType,
    AdminClient,
    NewTopic,
    ResourcePatternType,
    ResourceType,
)
from structlog.testing import capture_logs

from headwater.agent.coordination_topic import TOPIC_CONFIG
from headwater.kafka import Connection
from headwater.kafka.expansion_journal import coordination_topic
from headwater.model.expansions import Stage
from headwater.toolchain.broker import Broker, SaslUser, Settings
from headwater.toolchain.broker.readiness import until
from tests.coordination.conftest import Group
from tests.coordination.leader_process import entry
from tests.pulumi.cluster import Cluster

pytestmark = pytest.mark.broker

_USER = SaslUser("agent", "agent-password")


@pytest.fixture(scope="module")
def guarded(own_broker: Callable[..., Broker]) -> Iterator[Broker]:
    with own_broker(Settings(authorizer=True, sasl_users=(_USER,))) as broker:
        yield broker


@pytest.fixture
def agents(guarded: Broker, group: Callable[[str], Group]) -> Group:
    agents = group(guarded.address("SASL_PLAINTEXT"))
    agents.connection = Connection(
        bootstrap_servers=(guarded.address("SASL_PLAINTEXT"),),
        protocol="SASL_PLAINTEXT",
        mechanism="PLAIN",
        username=_USER.name,
        password=_USER.password,
    )
    return agents


def test_permissions_on_topic_and_group_are_sufficient(guarded: Broker, agents: Group) -> None:
    topic = coordination_topic(agents.name)
    on_topic = (AclOperation.READ, AclOperation.WRITE, AclOperation.DESCRIBE, AclOperation.CREATE)
    _allow(guarded, *((ResourceType.TOPIC, topic, operation) for operation in on_topic))
    _allow(guarded, (ResourceType.GROUP, topic, AclOperation.READ))
    agent = agents.join("agent")
    _, term = agents.leader([agent])
    agent.journal.append(entry("agent", Stage.STARTED), term)
    assert agent.journal.latest(term) == {"orders-app": entry("agent", Stage.STARTED)}


def test_agent_without_create_permission_uses_existing_topic(guarded: Broker, agents: Group) -> None:
    topic = coordination_topic(agents.name)
    admin = _admin(guarded)
    admin.create_topics([NewTopic(topic, 1, 1, config=TOPIC_CONFIG)])[topic].result(90)
    on_topic = (AclOperation.READ, AclOperation.WRITE, AclOperation.DESCRIBE)
    _allow(guarded, *((ResourceType.TOPIC, topic, operation) for operation in on_topic))
    _allow(guarded, (ResourceType.GROUP, topic, AclOperation.READ))
    with capture_logs() as log:
        agents.leader([agents.join("agent")])
        assert until(lambda: _events(log).get("settings of the coordination topic not checked"), 90)
    line = _events(log)["settings of the coordination topic not checked"]
    assert (line["reason"], "--add-config cleanup.policy=compact" in line["fix"]) == (
        "TOPIC_AUTHORIZATION_FAILED",
        True,
    )


def test_settings_of_an_existing_topic_are_repaired(guarded: Broker, agents: Group) -> None:
    topic = coordination_topic(agents.name)
    cluster = Cluster(guarded.bootstrap_servers)
    cluster.create(topic, 1, {"cleanup.policy": "delete", "max.message.bytes": "100000000"})
    on_topic = (AclOperation.READ, AclOperation.WRITE, AclOperation.DESCRIBE, AclOperation.ALTER_CONFIGS)
    _allow(guarded, *((ResourceType.TOPIC, topic, operation) for operation in on_topic))
    _allow(guarded, (ResourceType.GROUP, topic, AclOperation.READ))
    with capture_logs() as log:
        agents.leader([agents.join("agent")])
        assert until(lambda: cluster.config(topic) == TOPIC_CONFIG, 90)
        assert until(lambda: "coordination topic reconfigured" in _events(log), 90)


def _events(log: Sequence[MutableMapping[str, Any]]) -> Mapping[str, Mapping[str, Any]]:
    return {str(line["event"]): line for line in log}


def test_missing_permissions_are_reported_and_granted_without_restart(guarded: Broker, agents: Group) -> None:
    topic = coordination_topic(agents.name)
    on_topic = (AclOperation.READ, AclOperation.WRITE, AclOperation.DESCRIBE, AclOperation.CREATE)
    _allow(guarded, *((ResourceType.TOPIC, topic, operation) for operation in on_topic))
    agent = agents.join("agent")
    assert until(lambda: agents.terms([agent]) and "GROUP_AUTHORIZATION_FAILED" in agent.leadership.error, 90)
    _allow(guarded, (ResourceType.GROUP, topic, AclOperation.READ))
    agents.leader([agent])
    assert agent.leadership.error == ""


def _admin(broker: Broker) -> AdminClient:
    return AdminClient({"bootstrap.servers": broker.bootstrap_servers, "log_level": 0})


def _allow(broker: Broker, *permissions: tuple[ResourceType, str, AclOperation]) -> None:
    bindings = [
        AclBinding(
            kind,
            name,
            ResourcePatternType.LITERAL,
            f"User:{_USER.name}",
            "*",
            operation,
            AclPermissionType.ALLOW,
        )
        for kind, name, operation in permissions
    ]
    admin = _admin(broker)  # the client must exist until its responses arrive
    for future in admin.create_acls(bindings).values():
        future.result(90)
