"""A quota on requests is named when it is the reason that a request had no answer."""

from collections.abc import Callable, Iterator

import pytest
from confluent_kafka.admin import NewTopic  # type: ignore[attr-defined]  # public, but not exported explicitly

from headwater.change import admin_client
from headwater.kafka import Connection
from headwater.kafka.ownership import read_ownership
from headwater.model.problems import Problem, ProblemCode, ProblemsError
from headwater.model.records import OWNERSHIP_TOPIC
from headwater.operations.validation import controller_problem
from headwater.toolchain import KafkaDistribution
from headwater.toolchain.broker import Broker
from headwater.toolchain.broker.launch import run_tool
from headwater.toolchain.broker.readiness import until
from tests.pulumi.cluster import Cluster

pytestmark = pytest.mark.broker
_SECONDS, _READ_SECONDS = 90, 3.0


@pytest.fixture(scope="module")
def broker(own_broker: Callable[[], Broker]) -> Iterator[Broker]:
    """A broker whose quotas are high again after each test."""
    with own_broker() as broker:
        yield broker


def test_throttled_requests_name_the_quota_and_a_higher_one_lets_them_pass(
    broker: Broker, kafka_distribution: KafkaDistribution
) -> None:
    cluster = Cluster(broker.bootstrap_servers)
    if OWNERSHIP_TOPIC not in cluster.names():
        cluster.create(OWNERSHIP_TOPIC, 1)
    cluster.produce(OWNERSHIP_TOPIC, b"no record", b"key")
    _set_quota(kafka_distribution, broker, percentage=0.01)
    assert until(lambda: _names_quota(broker), _SECONDS)
    _set_quota(kafka_distribution, broker, percentage=1000)
    assert until(lambda: not _problems(broker), _SECONDS)


def test_a_quota_for_changes_of_topics_is_named_while_pulumi_waits(
    broker: Broker, unique: Callable[[str], str]
) -> None:
    """The provider's requests have used it up. A higher one delays nothing."""
    connection = Connection(bootstrap_servers=(broker.bootstrap_servers,))
    assert until(lambda: controller_problem(connection, "any") is None, _SECONDS)
    broker.limit_topic_changes(0.1)
    provider = admin_client(connection, client_id="terraform-provider-kafka")
    [created] = provider.create_topics([NewTopic(unique("orders"), 50, 1)]).values()
    created.result()

    def names_quota() -> bool:
        problem = controller_problem(connection, "any")
        return problem is not None and problem.summary == "A quota of the brokers delays changes of topics."

    assert until(names_quota, _SECONDS)
    broker.limit_topic_changes(1_000_000)
    assert until(lambda: controller_problem(connection, "any") is None, _SECONDS)


def _names_quota(broker: Broker) -> bool:
    """Return whether the records cannot be read; then the problem must name the quota."""
    for problem in _problems(broker):
        assert problem.code is ProblemCode.REQUEST_NOT_ANSWERED
        assert f"a quota delays requests to {broker.bootstrap_servers}" in str(problem.found)
        assert "request_percentage" in problem.fix
        return True
    return False


def _problems(broker: Broker) -> list[Problem]:
    try:
        read_ownership(Connection(bootstrap_servers=(broker.bootstrap_servers,)), _READ_SECONDS)
    except ProblemsError as error:
        return list(error.problems)
    return []


def _set_quota(distribution: KafkaDistribution, broker: Broker, *, percentage: float) -> None:
    run_tool(
        distribution,
        "kafka.admin.ConfigCommand",
        *("--bootstrap-server", broker.bootstrap_servers, "--entity-type", "clients", "--entity-default"),
        *("--alter", "--add-config", f"request_percentage={percentage}"),
        failure="The request quota could not be set",
    )
