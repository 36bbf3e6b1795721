"""`headwater doctor` finds the agents of a cluster and their leader."""

import json
from collections.abc import Callable, Sequence

import pytest
from click.testing import CliRunner

from headwater.cli.main import main
from headwater.kafka.expansion_journal import coordination_topic
from headwater.toolchain.broker.local import LocalBroker
from headwater.toolchain.broker.readiness import until
from tests.coordination.conftest import Group

pytestmark = pytest.mark.broker

_SECONDS = 90


def findings(broker: LocalBroker, topic: str) -> Sequence[str]:
    """Return status and text of the findings about a group of agents."""
    arguments = ["doctor", "--bootstrap-server", broker.bootstrap_servers, "--format", "json"]
    checks = json.loads(CliRunner().invoke(main, arguments).stdout)["checks"]
    return [f"{check['status']}: {check['text']}" for check in checks if topic in check["text"]]


def test_the_leader_and_the_end_of_agents_are_found(
    kafka: LocalBroker, group: Callable[[str], Group]
) -> None:
    agents = group(kafka.bootstrap_servers)
    topic = coordination_topic(agents.name)
    members = [agents.join("agent-1"), agents.join("agent-2")]
    leader, _ = agents.leader(members)
    name = "agent-1" if leader is members[0] else "agent-2"
    assert until(lambda: agents.terms(members) and _is_complete(findings(kafka, topic)), _SECONDS)
    (found,) = findings(kafka, topic)
    assert found.startswith(f"ok: {topic}: leader {name} at ")
    agents.close()
    ended = [f"warning: No agent of {topic} runs; one has run before."]
    assert until(lambda: findings(kafka, topic) == ended, _SECONDS), findings(kafka, topic)


def _is_complete(found: Sequence[str]) -> bool:
    return any("1 standby agent" in each for each in found)
