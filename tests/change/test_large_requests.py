"""The controller refuses requests that write more than 10,000 metadata records; a plan may need more."""

from collections.abc import Callable, Mapping

import attrs
import pytest
from confluent_kafka.admin import AdminClient

from headwater.change import admin_client, request_config_changes, request_new_partitions, request_new_topics
from headwater.change.topics import await_failures
from headwater.kafka import Connection
from headwater.toolchain.broker.local import LocalBroker
from tests.pulumi.cluster import Cluster

pytestmark = pytest.mark.broker


@attrs.frozen
class _Target:
    name: str
    partitions: int | None = None
    replication_factor: int = 1
    config: Mapping[str, str] = attrs.field(factory=dict)


@pytest.fixture(scope="module")
def admin(kafka: LocalBroker) -> AdminClient:
    return admin_client(Connection(bootstrap_servers=(kafka.bootstrap_servers,)))


def test_new_topics_of_12_000_records_are_validated(admin: AdminClient, unique: Callable[[str], str]) -> None:
    targets = [_Target(unique("new"), 10, config={"retention.ms": "1"}) for _ in range(1_000)]
    assert list(await_failures(request_new_topics(admin, targets, validate_only=True))) == []


def test_new_partitions_of_12_000_records_are_validated(
    admin: AdminClient, kafka: LocalBroker, unique: Callable[[str], str]
) -> None:
    cluster, names = Cluster(kafka.bootstrap_servers), [unique("grown") for _ in range(3)]
    for name in names:
        cluster.create(name, 1)
    results = request_new_partitions(admin, [_Target(name, 4_001) for name in names], validate_only=True)
    assert list(await_failures(results)) == []


def test_a_topic_that_is_too_large_by_itself_is_refused(
    admin: AdminClient, unique: Callable[[str], str]
) -> None:
    targets = [_Target(unique("huge"), 10_001), _Target(unique("small"), 1)]
    (failure,) = await_failures(request_new_topics(admin, targets, validate_only=True))
    assert failure.startswith(targets[0].name)


def test_no_changes_need_no_request(admin: AdminClient) -> None:
    assert request_new_topics(admin, []) == request_config_changes(admin, []) == {}
