"""The permissions in docs/agent-operations.md are sufficient, and missing permissions are reported."""

from collections.abc import Callable, Mapping, MutableMapping, Sequence
from typing import Any

import pytest
from structlog.testing import capture_logs

from headwater.agent.coordination_topic import TOPIC_CONFIG
from headwater.kafka.expansion_journal import coordination_topic
from headwater.model.acls import Operation, Permission, ResourceKind
from headwater.model.expansions import Stage
from headwater.toolchain.broker.readiness import until
from tests.acls.conftest import APPLICATION
from tests.acls.secured_cluster import SecuredCluster
from tests.coordination.conftest import Group, group
from tests.coordination.leader_process import entry
from tests.pulumi.cluster import Cluster

__all__ = ["group"]  # a fixture

pytestmark = pytest.mark.broker

_PRINCIPAL = f"User:{APPLICATION.name}"
_USING = (Operation.READ, Operation.WRITE, Operation.DESCRIBE)


@pytest.fixture
def agents(secured_cluster: SecuredCluster, group: Callable[[str], Group]) -> Group:
    agents = group(secured_cluster.broker.address("SASL_PLAINTEXT"))
    agents.connection = secured_cluster.connection(APPLICATION)
    return agents


def test_permissions_on_topic_and_group_are_sufficient(
    secured_cluster: SecuredCluster, agents: Group
) -> None:
    secured_cluster.set_acls(_PRINCIPAL, [*_on_topic(agents, *_USING, Operation.CREATE), _on_group(agents)])
    agent = agents.join("agent")
    _, term = agents.leader([agent])
    agent.journal.append(entry("agent", Stage.STARTED), term)
    assert agent.journal.latest(term) == {"orders-app": entry("agent", Stage.STARTED)}


def test_agent_without_create_permission_uses_existing_topic(
    secured_cluster: SecuredCluster, agents: Group
) -> None:
    secured_cluster.create({coordination_topic(agents.name): 1}, TOPIC_CONFIG)
    secured_cluster.set_acls(_PRINCIPAL, [*_on_topic(agents, *_USING), _on_group(agents)])
    with capture_logs() as log:
        agents.leader([agents.join("agent")])
        assert until(lambda: _events(log).get("settings of the coordination topic not checked"), 90)
    line = _events(log)["settings of the coordination topic not checked"]
    assert (line["reason"], "--add-config cleanup.policy=compact" in line["fix"]) == (
        "TOPIC_AUTHORIZATION_FAILED",
        True,
    )


def test_settings_of_an_existing_topic_are_repaired(secured_cluster: SecuredCluster, agents: Group) -> None:
    topic = coordination_topic(agents.name)
    cluster = Cluster(secured_cluster.broker.bootstrap_servers)
    cluster.create(topic, 1, {"cleanup.policy": "delete", "max.message.bytes": "100000000"})
    on_topic = _on_topic(agents, *_USING, Operation.ALTER_CONFIGS)
    secured_cluster.set_acls(_PRINCIPAL, [*on_topic, _on_group(agents)])
    with capture_logs() as log:
        agents.leader([agents.join("agent")])
        assert until(lambda: cluster.config(topic) == TOPIC_CONFIG, 90)
        assert until(lambda: "coordination topic reconfigured" in _events(log), 90)


def test_missing_permissions_are_reported_and_granted_without_restart(
    secured_cluster: SecuredCluster, agents: Group
) -> None:
    on_topic = _on_topic(agents, *_USING, Operation.CREATE)
    secured_cluster.set_acls(_PRINCIPAL, on_topic)
    agent = agents.join("agent")
    assert until(lambda: agents.terms([agent]) and "GROUP_AUTHORIZATION_FAILED" in agent.leadership.error, 90)
    secured_cluster.set_acls(_PRINCIPAL, [*on_topic, _on_group(agents)])
    agents.leader([agent])
    assert agent.leadership.error == ""


def _on_topic(agents: Group, *operations: Operation) -> list[Permission]:
    """Return permissions on the coordination topic."""
    name = coordination_topic(agents.name)
    return [Permission(ResourceKind.TOPIC, name, operation) for operation in operations]


def _on_group(agents: Group) -> Permission:
    return Permission(ResourceKind.GROUP, coordination_topic(agents.name), Operation.READ)


def _events(log: Sequence[MutableMapping[str, Any]]) -> Mapping[str, Mapping[str, Any]]:
    return {str(line["event"]): line for line in log}
