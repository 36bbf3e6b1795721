"""The cluster is read in a handful of requests, whatever the number of topics."""

from collections.abc import Callable

import pytest
from confluent_kafka.admin import AdminClient, NewTopic  # type: ignore[attr-defined]

from infra.observe import Connection, KafkaClusterReader, SnapshotRequest, kafka_reader
from toolchain.broker.local import LocalBroker

pytestmark = pytest.mark.broker


@pytest.fixture
def prefix(kafka: LocalBroker, unique: Callable[[str], str]) -> str:
    prefix = unique("many")
    admin = AdminClient({"bootstrap.servers": kafka.bootstrap_servers})
    topics = [NewTopic(f"{prefix}-{number:02}", 2, 1) for number in range(50)]
    for future in admin.create_topics(topics).values():
        future.result()
    while sum(name.startswith(prefix) for name in admin.list_topics().topics) < len(topics):
        pass  # the broker that answers learns of new topics a moment later
    return prefix


def requests(kafka: LocalBroker, request: SnapshotRequest) -> int:
    reader = KafkaClusterReader(Connection(bootstrap_servers=(kafka.bootstrap_servers,)))
    reader.read(SnapshotRequest(groups=("some-group",)))  # a new broker's coordinator is asked until it is up
    before = reader.requests
    reader.read(request)
    return reader.requests - before


def test_fifty_topics_need_no_more_requests_than_one(kafka: LocalBroker, prefix: str) -> None:
    one = SnapshotRequest(prefixes=(f"{prefix}-00",), groups=("some-group",))
    all_of_them = SnapshotRequest(prefixes=(f"{prefix}-",), groups=("some-group",))
    assert requests(kafka, one) == requests(kafka, all_of_them) == 6


def test_replaced_topics_need_one_request_more(kafka: LocalBroker, prefix: str) -> None:
    recorded = {f"{prefix}-{number:02}": "another-id" for number in range(50)}
    assert requests(kafka, SnapshotRequest(recorded=recorded)) == 6


def test_more_topics_than_fit_are_asked_for_in_chunks(
    kafka: LocalBroker, prefix: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    assert kafka_reader.CHUNK == 1_000
    monkeypatch.setattr(kafka_reader, "CHUNK", 20)
    assert requests(kafka, SnapshotRequest(prefixes=(f"{prefix}-",))) == 5 + 2 * 2
