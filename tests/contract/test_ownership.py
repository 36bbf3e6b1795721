"""What every cluster does with ownership records, be it real or in memory."""

from collections.abc import Callable

import attrs
import pytest

from headwater.kafka import SnapshotRequest
from headwater.model.records import OwnershipChange, OwnershipRecord, StackIdentity
from tests.contract.fake_cluster import FakeCluster
from tests.contract.real_cluster import RealCluster

Cluster = FakeCluster | RealCluster
STACK = StackIdentity("0d6a", "organization/headwater/production")


@pytest.fixture
def record(unique: Callable[[str], str]) -> OwnershipRecord:
    id_ = unique("app")
    return OwnershipRecord(application_id=id_, stack=STACK, topics={f"{id_}-counts-changelog": "topic-id"})


def read(cluster: Cluster, application_id: str) -> tuple[OwnershipRecord, ...]:
    """Return the records of an application; other tests write to the same broker."""
    records = cluster.reader().read_ownership().records
    found = tuple(record for record in records if record.application_id == application_id)
    snapshot = cluster.reader().read(SnapshotRequest(with_ownership=True)).ownership or ()
    assert found == tuple(record for record in snapshot if record.application_id == application_id)
    return found


def test_written_records_are_read(cluster: Cluster, record: OwnershipRecord) -> None:
    assert read(cluster, record.application_id) == ()
    changed = attrs.evolve(record, stack=StackIdentity("1f2e", "staging"), is_finished=False, is_retired=True)
    cluster.write_ownership(OwnershipChange((changed, record)))
    assert read(cluster, record.application_id) == (record, changed)


def test_a_record_replaces_the_one_of_the_same_stack_and_application(
    cluster: Cluster, record: OwnershipRecord
) -> None:
    cluster.write_ownership(OwnershipChange((record,)))
    later = attrs.evolve(record, topics={}, is_finished=False)
    cluster.write_ownership(OwnershipChange((later,)))
    assert read(cluster, record.application_id) == (later,)


def test_deleted_records_are_gone(cluster: Cluster, record: OwnershipRecord) -> None:
    other = attrs.evolve(record, stack=StackIdentity("1f2e", "staging"))
    cluster.write_ownership(OwnershipChange((record, other)))
    cluster.write_ownership(OwnershipChange(deleted=(record.key, ("none", record.application_id))))
    assert read(cluster, record.application_id) == (other,)


def test_records_with_many_topics_are_read(cluster: Cluster, record: OwnershipRecord) -> None:
    names = (f"{record.application_id}-store-with-a-long-name-{n:05}-changelog" for n in range(20_000))
    large = attrs.evolve(record, topics={name: f"{hash(name):022x}" for name in names})
    cluster.write_ownership(OwnershipChange((large,)))
    try:
        assert read(cluster, record.application_id) == (large,)
    finally:
        cluster.write_ownership(OwnershipChange(deleted=(large.key,)))


def test_records_are_read_only_on_request(cluster: Cluster, record: OwnershipRecord) -> None:
    cluster.write_ownership(OwnershipChange((record,)))
    assert cluster.reader().read(SnapshotRequest()).ownership is None
