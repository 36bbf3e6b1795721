"""Topics of Headwater's own records on a broker whose policy refuses a setting of them."""

import re
import subprocess
from collections.abc import Callable, Iterator

import pytest

from headwater.agent.leadership import KafkaLeadership
from headwater.change.ownership import configure_topic, write_ownership
from headwater.kafka import Connection, KafkaClusterReader
from headwater.kafka.reader import SnapshotRequest
from headwater.model.problems import ProblemCode, ProblemsError
from headwater.model.records import (
    OWNERSHIP_TOPIC,
    RECORD_TOPIC_SETTINGS,
    OwnershipChange,
    OwnershipRecord,
    StackIdentity,
)
from headwater.planner import PlanPolicy, plan
from headwater.toolchain import KafkaDistribution
from headwater.toolchain.broker import Broker, Settings, launch
from headwater.toolchain.broker.readiness import until
from tests.clusters.test_policies_of_vendors import with_policy

__all__ = ["with_policy"]  # a fixture

pytestmark = pytest.mark.broker
_SECONDS = 90
_RECORD = OwnershipRecord(
    application_id="orders",
    stack=StackIdentity("its id", "acme/headwater/production"),
    topics={"orders-counts-changelog": "topic id"},
)


@pytest.fixture(scope="module")
def broker(with_policy: KafkaDistribution, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Broker]:
    """As on Confluent Cloud."""
    policy = {
        "create.topic.policy.class.name": "TopicPolicy$Create",
        "alter.config.policy.class.name": "TopicPolicy$Alter",
        "test.policy.refused": "compression.type",
    }
    with Broker(with_policy, tmp_path_factory.mktemp("kafka"), Settings(overrides=policy)) as broker:
        yield broker


@pytest.fixture
def create(with_policy: KafkaDistribution, broker: Broker) -> Callable[[str], None]:
    """Return a function that runs a command of `kafka-topics.sh`."""

    def run(command: str) -> None:
        words = command.split()
        assert words[:3] == ["kafka-topics.sh", "--bootstrap-server", "BROKER"]
        line = launch.broker_tool_command(with_policy, "topics", broker.bootstrap_servers, words[3:])
        subprocess.run(line, check=True, capture_output=True)

    return run


def test_the_topic_of_ownership_records_is_created_as_the_problem_says(
    broker: Broker, create: Callable[[str], None]
) -> None:
    connection = Connection(bootstrap_servers=(broker.bootstrap_servers,))
    with pytest.raises(ProblemsError) as refused:
        write_ownership(connection, OwnershipChange((_RECORD,)))
    (problem,) = refused.value.problems
    assert problem.code is ProblemCode.REFUSED_BY_BROKERS
    assert "compression.type cannot be set on this cluster" in str(problem.found)
    (command,) = re.findall(r"`(kafka-topics.sh [^`]*)`", problem.fix)
    create(command)
    write_ownership(connection, OwnershipChange((_RECORD,)))
    assert KafkaClusterReader(connection).read_ownership().records == (_RECORD,)
    (unsafe,) = configure_topic(connection, {"compression.type": RECORD_TOPIC_SETTINGS["compression.type"]})
    assert unsafe.topic == OWNERSHIP_TOPIC
    assert unsafe.code is ProblemCode.RECORDS_NOT_SAFE
    assert unsafe.fix.startswith("Have the policy of the brokers changed, then run `kafka-configs.sh")
    assert "and set `headwater:ownership: acls`" in unsafe.fix
    snapshot = KafkaClusterReader(connection).read(SnapshotRequest(with_ownership=True))
    for configures_records, codes in ((True, [ProblemCode.RECORDS_NOT_SAFE]), (False, [])):
        limits = PlanPolicy(stack=_RECORD.stack, configures_records=configures_records)
        planned = plan([], snapshot, {}, limits)
        assert [each.code for each in planned.problems] == codes
        assert bool(planned.ownership_settings) is configures_records


def test_an_agent_leads_when_its_topic_is_created_as_its_status_says(
    broker: Broker, create: Callable[[str], None]
) -> None:
    connection = Connection(bootstrap_servers=(broker.bootstrap_servers,))
    leadership = KafkaLeadership(connection, "headwater-agent-orders", "agent")
    try:
        assert until(lambda: leadership.poll() is None and bool(leadership.error), _SECONDS)
        assert leadership.error == (
            "POLICY_VIOLATION: compression.type cannot be set on this cluster; create headwater-agent-orders "
            "with one partition and cleanup.policy=compact"
        )
        create(
            "kafka-topics.sh --bootstrap-server BROKER --create --topic headwater-agent-orders "
            "--partitions 1 --config cleanup.policy=compact"
        )
        assert until(lambda: leadership.poll() is not None, _SECONDS)
        assert leadership.error == ""
    finally:
        leadership.close()
