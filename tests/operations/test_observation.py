"""What a plan and a running application observe of a cluster, and the plans that follow from it."""

from pathlib import Path

import attrs
import pytest

from headwater.kafka import SnapshotRequest
from headwater.model.cluster import ClusterSnapshot
from headwater.model.topology import TopologyDocument
from headwater.operations.observation import Observation, observe_application, observe_cluster
from headwater.operations.planning import compile_with_counts, plan_application
from headwater.spec import load_documents
from tests.contract.fake_cluster import FakeCluster, FakeClusterReader, ReadSnapshot

DOCUMENT = """
application: {id: shop, config: {replication.factor: 3}}
topology:
  - stream: {topic: orders}
  - groupByKey:
  - count: {materialized: counts}
"""


@attrs.frozen
class CloudReader(FakeClusterReader):
    """Reads a cluster whose brokers have the host names of Redpanda Cloud."""

    def read(self, request: SnapshotRequest) -> ClusterSnapshot:
        return attrs.evolve(super().read(request), hosts=("broker-0.cloud.redpanda.com",))


@pytest.fixture
def document(tmp_path: Path) -> TopologyDocument:
    (tmp_path / "shop.yaml").write_text(DOCUMENT)
    (loaded,) = load_documents([tmp_path]).documents
    return loaded


def changelog_config(observed: Observation) -> dict[str, str]:
    (topic,) = observed.compiled[0].internal_topics
    return dict(topic.config)


def cloud() -> CloudReader:
    cluster = FakeCluster()
    cluster.create("orders", 4)
    return CloudReader(cluster)


def test_an_application_and_a_plan_declare_the_same_settings(document: TopologyDocument) -> None:
    """The application would otherwise change back what `pulumi up` declares for a recognized cluster."""
    planned = observe_cluster(cloud(), [document], None, with_ownership=False)
    running = observe_application(cloud(), document)
    assert planned.compiled[0].application.is_profile_recognized
    assert running.compiled[0].application.is_profile_recognized
    assert changelog_config(running) == changelog_config(planned)


def test_what_a_caller_needs_afterwards_is_imported_while_the_cluster_answers(
    document: TopologyDocument, monkeypatch: pytest.MonkeyPatch
) -> None:
    order: list[str] = []
    begin, snapshot = FakeClusterReader.begin, ReadSnapshot.snapshot

    def begin_in_order(reader: FakeClusterReader, request: SnapshotRequest) -> ReadSnapshot:
        order.append("begin")
        return begin(reader, request)

    def snapshot_in_order(reading: ReadSnapshot) -> ClusterSnapshot:
        order.append("snapshot")
        return snapshot(reading)

    monkeypatch.setattr(FakeClusterReader, "begin", begin_in_order)
    monkeypatch.setattr(ReadSnapshot, "snapshot", snapshot_in_order)
    observe_cluster(cloud(), [document], None, with_ownership=False, prepare=lambda: order.append("prepare"))
    assert order == ["begin", "prepare", "snapshot"]


def test_an_application_creates_what_a_recognized_cluster_accepts(document: TopologyDocument) -> None:
    (action,) = plan_application(observe_application(cloud(), document)).actions
    assert action.name == "shop-counts-changelog"
    assert "min.insync.replicas" not in action.config
    assert "cleanup.policy" in action.config


def test_internal_topics_follow_the_counts_that_sources_get(document: TopologyDocument) -> None:
    present = {"orders": 2, "shop-counts-changelog": 2, "another": 7}
    now = compile_with_counts(document, present, {})
    after = compile_with_counts(document, present, {"orders": 5})
    assert [topic.partitions for topic in (*now.internal_topics, *after.internal_topics)] == [2, 5]
