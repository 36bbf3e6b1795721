"""The cluster is read in a handful of requests, whatever the number of topics."""

from collections.abc import Callable
from typing import TYPE_CHECKING, Any

import pytest
from confluent_kafka import KafkaError
from confluent_kafka.admin import AdminClient, ListOffsetsResultInfo, NewTopic  # type: ignore[attr-defined]

from headwater.kafka import Connection, KafkaClusterReader, SnapshotRequest, admin
from headwater.kafka.group_admin import GroupAdmin
from headwater.kafka.pending_snapshot import PendingSnapshot
from headwater.model.cluster import LiveGroup
from headwater.model.records import OwnershipLog
from headwater.toolchain.broker.local import LocalBroker
from headwater.toolchain.broker.readiness import until
from tests.contract.real_cluster import RealCluster

if TYPE_CHECKING:
    from concurrent.futures import Future

pytestmark = [pytest.mark.broker, pytest.mark.every_broker]
_SECONDS = 60.0


@pytest.fixture
def prefix(kafka: LocalBroker, unique: Callable[[str], str]) -> str:
    prefix = unique("many")
    client = AdminClient({"bootstrap.servers": kafka.bootstrap_servers})
    topics = [NewTopic(f"{prefix}-{number:02}", 2, 1) for number in range(50)]
    for future in client.create_topics(topics).values():
        future.result()
    names = {topic.topic for topic in topics}
    # The broker that answers learns of new topics a moment later.
    assert until(lambda: names <= client.list_topics(timeout=_SECONDS).topics.keys(), _SECONDS)
    return prefix


@pytest.fixture
def requests(kafka: LocalBroker) -> Callable[[SnapshotRequest], int]:
    """Return a function that reads the cluster and returns the number of requests."""

    def read(request: SnapshotRequest) -> int:
        reader = KafkaClusterReader(Connection(bootstrap_servers=(kafka.bootstrap_servers,)), _SECONDS)
        before = reader.requests
        reader.read(request)
        return reader.requests - before

    return read


def test_fifty_topics_require_as_many_requests_as_one(
    requests: Callable[[SnapshotRequest], int], prefix: str
) -> None:
    one = SnapshotRequest(prefixes=(f"{prefix}-00",), groups=("some-group",))
    all_of_them = SnapshotRequest(prefixes=(f"{prefix}-",), groups=("some-group",))
    assert requests(one) == requests(all_of_them) == 6


def test_replaced_topics_require_one_more_request(
    requests: Callable[[SnapshotRequest], int], prefix: str
) -> None:
    recorded = {f"{prefix}-{number:02}": "another-id" for number in range(50)}
    assert requests(SnapshotRequest(recorded=recorded)) == 6


def test_many_topics_are_requested_in_chunks(
    requests: Callable[[SnapshotRequest], int], prefix: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    assert admin.CHUNK == 1_000
    monkeypatch.setattr(admin, "CHUNK", 20)
    assert requests(SnapshotRequest(prefixes=(f"{prefix}-",))) == 5 + 2 * 2


def test_evidence_requires_a_request_only_if_offsets_matter(
    kafka: LocalBroker, unique: Callable[[str], str]
) -> None:
    topic, groups = unique("topic"), [unique(f"group-{number}") for number in range(3)]
    cluster = RealCluster(kafka.bootstrap_servers)
    cluster.create(topic, 1)
    for group in groups:
        cluster.commit(group, topic, {0: "text"})
    reader = KafkaClusterReader(Connection(bootstrap_servers=(kafka.bootstrap_servers,)), _SECONDS)
    found, _ = reader.group_facts(frozenset())
    assert {found[group].committed for group in groups} == {frozenset()}
    assert reader.requests == 2  # the list of groups, and their descriptions
    found, _ = reader.group_facts(frozenset(groups))
    assert {found[group].committed for group in groups} == {frozenset({topic})}
    assert reader.requests == 2 + 3


def test_records_of_fifty_topics_are_counted_in_two_requests(kafka: LocalBroker, prefix: str) -> None:
    reader = KafkaClusterReader(Connection(bootstrap_servers=(kafka.bootstrap_servers,)), _SECONDS)
    topics = {f"{prefix}-{number:02}": 2 for number in range(50)}
    # The partitions of a new topic have no leader for a moment.
    assert until(lambda: reader.record_counts(topics) == dict.fromkeys(topics, 0), _SECONDS)
    before = reader.requests
    reader.record_counts(topics)
    assert reader.requests - before == 2


def test_group_that_cannot_be_described_may_be_active(
    kafka: LocalBroker, monkeypatch: pytest.MonkeyPatch
) -> None:
    """As a group of the streams protocol on a broker that cannot describe it: it is dead, and listed."""
    unknown = KafkaError(KafkaError.UNSUPPORTED_VERSION)
    monkeypatch.setattr(GroupAdmin, "streams_groups", lambda _, ids, **__: dict.fromkeys(ids, unknown))
    monkeypatch.setattr(GroupAdmin, "existing_groups", lambda _, ids: {"streams-app"} & {*ids})
    reader = KafkaClusterReader(Connection(bootstrap_servers=(kafka.bootstrap_servers,)))
    ids = ("new-app", "streams-app")
    groups = reader.read(SnapshotRequest(groups=ids, streams_groups=frozenset(ids))).groups
    assert groups == {"streams-app": LiveGroup("streams-app", "Unknown", None, is_streams=True)}
    assert groups["streams-app"].is_active
    assert not reader.read(SnapshotRequest(groups=ids)).groups


def test_groups_that_cannot_be_described_are_found_in_one_request(
    requests: Callable[[SnapshotRequest], int], monkeypatch: pytest.MonkeyPatch
) -> None:
    """As a drift report of many applications does, on brokers without streams groups."""
    unknown = KafkaError(KafkaError.UNSUPPORTED_VERSION)
    monkeypatch.setattr(GroupAdmin, "streams_groups", lambda _, ids, **__: dict.fromkeys(ids, unknown))
    one, many = (tuple(f"no-app-{number}" for number in range(size)) for size in (1, 20))
    few = requests(SnapshotRequest(groups=one, streams_groups=frozenset(one)))
    assert requests(SnapshotRequest(groups=many, streams_groups=frozenset(many))) == few


def test_unknown_group_does_not_exist(kafka: LocalBroker, unique: Callable[[str], str]) -> None:
    reader = KafkaClusterReader(Connection(bootstrap_servers=(kafka.bootstrap_servers,)))
    id_ = unique("app")
    assert not reader.read(SnapshotRequest(groups=(id_,), streams_groups=frozenset({id_}))).groups


def test_first_requests_are_answered_once(kafka: LocalBroker, prefix: str) -> None:
    reader = KafkaClusterReader(Connection(bootstrap_servers=(kafka.bootstrap_servers,)))
    reader.open()
    reading = reader.begin(SnapshotRequest(prefixes=(f"{prefix}-",), with_ids=False))
    assert reading.partitions[f"{prefix}-00"] == 2
    snapshot = reading.snapshot()
    assert len(snapshot.described) == 50
    topic = snapshot.topics[f"{prefix}-00"]
    assert (topic.topic_id, topic.partitions, topic.replication_factor) == ("", 2, 1)
    assert snapshot.partitions == reading.partitions
    assert reader.read(SnapshotRequest(prefixes=(f"{prefix}-",))).topics[f"{prefix}-00"].topic_id


@pytest.mark.parametrize("with_ids", [True, False])
def test_topic_created_between_two_requests_has_its_settings(
    kafka: LocalBroker,
    unique: Callable[[str], str],
    with_ids: bool,  # noqa: FBT001 - parameter of a test
) -> None:
    connection = Connection(bootstrap_servers=(kafka.bootstrap_servers,))
    reader, topic = KafkaClusterReader(connection), unique("late")
    opened = GroupAdmin(connection, 15.0)
    metadata = opened.metadata(opened.open())
    client = AdminClient({"bootstrap.servers": kafka.bootstrap_servers})
    client.create_topics([NewTopic(topic, 1, 1, config={"cleanup.policy": "compact"})])[topic].result()
    assert until(lambda: topic in reader.topic_ids([topic]), _SECONDS)
    request = SnapshotRequest(names=frozenset([topic]), with_ids=with_ids)
    snapshot = PendingSnapshot(opened, request, metadata, OwnershipLog).snapshot()
    assert snapshot.topics[topic].config["cleanup.policy"] == "compact"
    assert topic in snapshot.described


def test_offsets_are_requested_one_chunk_after_the_other(
    kafka: LocalBroker, prefix: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The client crashes if metadata for one request arrives while another one begins."""
    pending: list[Future[ListOffsetsResultInfo]] = []
    request = AdminClient.list_offsets

    def list_offsets(client: AdminClient, *arguments: Any, **options: Any) -> Any:  # noqa: ANN401 - forwards
        assert all(future.done() for future in pending)
        answers = request(client, *arguments, **options)
        pending.extend(answers.values())
        return answers

    monkeypatch.setattr(admin, "CHUNK", 20)
    monkeypatch.setattr(AdminClient, "list_offsets", list_offsets)
    reader = KafkaClusterReader(Connection(bootstrap_servers=(kafka.bootstrap_servers,)), _SECONDS)
    reader.record_counts({f"{prefix}-{number:02}": 2 for number in range(50)})
    assert len(pending) == 2 * 2 * 50
