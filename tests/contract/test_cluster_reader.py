"""What every `ClusterReader` does, be the cluster real or in memory."""

from collections.abc import Callable

import pytest

from headwater.kafka import SnapshotRequest
from tests.contract.fake_cluster import FakeCluster
from tests.contract.real_cluster import RealCluster

Cluster = FakeCluster | RealCluster
CONFIG = {"cleanup.policy": "compact", "segment.bytes": "1048576"}


@pytest.fixture
def app(unique: Callable[[str], str]) -> str:
    return unique("app")


def test_snapshot_has_counts_of_all_topics(cluster: Cluster, app: str) -> None:
    cluster.create(f"{app}-in", 3)
    snapshot = cluster.reader().read(SnapshotRequest())
    assert snapshot.partitions[f"{app}-in"] == 3
    assert f"{app}-in" not in snapshot.described
    assert snapshot.cluster_id
    assert snapshot.brokers == 1


@pytest.mark.parametrize("way", ["prefix", "name", "recorded", "pattern"])
def test_requested_topics_are_described(cluster: Cluster, app: str, way: str) -> None:
    wanted, other = f"{app}-counts-changelog", f"other-{app}"
    cluster.create(wanted, 2, CONFIG)
    cluster.create(other, 1, CONFIG)
    request = {
        "prefix": SnapshotRequest(prefixes=(f"{app}-",)),
        "name": SnapshotRequest(names=frozenset({wanted})),
        "recorded": SnapshotRequest(recorded={wanted: ""}),
        "pattern": SnapshotRequest(patterns=(f"{app}-.*-changelog",)),
    }[way]
    snapshot = cluster.reader().read(request)
    assert wanted in snapshot.described
    assert other not in snapshot.described
    topic = snapshot.topics[wanted]
    assert (topic.partitions, topic.replication_factor, topic.config) == (2, 1, CONFIG)
    assert topic.topic_id
    assert topic.is_empty is None


@pytest.mark.parametrize("with_ids", [True, False])
def test_settings_of_source_topics_are_not_read(cluster: Cluster, app: str, *, with_ids: bool) -> None:
    """Whoever may see a source topic need not be allowed to see its settings."""
    source = f"{app}-in"
    cluster.create(source, 3, CONFIG)
    request = SnapshotRequest(names=frozenset({source}), sources=frozenset({source}), with_ids=with_ids)
    snapshot = cluster.reader().read(request)
    assert source in snapshot.described
    assert (snapshot.topics[source].partitions, snapshot.topics[source].config) == (3, {})


def test_topic_settings_and_defaults_are_separate(cluster: Cluster, app: str) -> None:
    cluster.create(f"{app}-a", 1)
    cluster.configure(f"{app}-a", {"retention.ms": "1000"})
    snapshot = cluster.reader().read(SnapshotRequest(prefixes=(f"{app}-",)))
    assert snapshot.topics[f"{app}-a"].config == {"retention.ms": "1000"}
    assert snapshot.topic_defaults["cleanup.policy"] == "delete"
    assert snapshot.default_replication_factor == 1
    assert snapshot.default_min_insync_replicas == 1


def test_missing_topics_are_omitted(cluster: Cluster, app: str) -> None:
    request = SnapshotRequest(
        names=frozenset({f"{app}-a"}), groups=(f"{app}-group",), recorded={f"{app}-b": "some-id"}
    )
    snapshot = cluster.reader().read(request)
    assert not {f"{app}-a", f"{app}-b"} & snapshot.topics.keys()
    assert not snapshot.groups


def test_invalid_topic_name_is_treated_as_missing(cluster: Cluster, app: str) -> None:
    """Else the plan would blame the brokers for what the lints tell of the document."""
    too_long, odd = f"{app}-{'n' * 240}", f"{app}-a:b"
    request = SnapshotRequest(names=frozenset({too_long}), recorded={odd: "some-id"})
    assert not {too_long, odd} & cluster.reader().read(request).topics.keys()
    assert not cluster.reader().topic_ids([too_long, odd])


def test_ids_distinguish_recreated_topics(cluster: Cluster, app: str) -> None:
    name, reader = f"{app}-a", cluster.reader()
    cluster.create(name, 1)
    first = reader.topic_ids([name, f"{app}-none"])
    assert first.keys() == {name}
    assert reader.read(SnapshotRequest(names=frozenset({name}))).topics[name].topic_id == first[name]
    cluster.delete(name)
    cluster.create(name, 1)
    assert reader.topic_ids([name])[name] != first[name]


def test_counts_can_be_requested_alone(cluster: Cluster, app: str) -> None:
    cluster.create(f"{app}-a", 3)
    assert cluster.reader().partition_counts([f"{app}-a", f"{app}-none"]) == {f"{app}-a": 3}


def test_emptiness_of_recreated_topic_is_read(cluster: Cluster, app: str) -> None:
    same, empty, filled = f"{app}-same", f"{app}-empty", f"{app}-filled"
    for name in (same, empty, filled):
        cluster.create(name, 2)
    cluster.write(filled)
    reader = cluster.reader()
    recorded = {same: reader.topic_ids([same])[same], empty: "another-id", filled: "another-id"}
    topics = reader.read(SnapshotRequest(recorded=recorded)).topics
    assert [topics[name].is_empty for name in (same, empty, filled)] == [None, True, False]


def test_records_are_counted_over_all_partitions(cluster: Cluster, app: str) -> None:
    topic, empty, purged = f"{app}-a", f"{app}-empty", f"{app}-purged"
    for name in (topic, empty, purged):
        cluster.create(name, 3)
        cluster.write(name, 20)  # each partition has a leader from then on
    for name in (empty, purged):
        cluster.purge(name)
    cluster.write(purged, 2)
    found = cluster.reader().record_counts(dict.fromkeys((topic, empty, purged, f"{app}-none"), 3))
    assert found == {topic: 20, empty: 0, purged: 2}


def test_the_metadata_of_committed_offsets(cluster: Cluster, app: str) -> None:
    topic, group = f"{app}-in", f"{app}-group"
    cluster.create(topic, 3)
    assert cluster.reader().offset_metadata(group, {topic: 3}) == []
    cluster.commit(group, topic, {0: "", 1: "one", 2: "two"})
    assert sorted(cluster.reader().offset_metadata(group, {topic: 3})) == ["one", "two"]
    assert cluster.reader().offset_metadata(group, {topic: 2}) == ["one"]
    assert cluster.reader().offset_metadata(group, {}) == []


def test_group_is_active_while_it_has_members(cluster: Cluster, app: str) -> None:
    topic, group = f"{app}-in", f"{app}-group"
    cluster.create(topic, 1)
    with cluster.member(group, topic):
        running = cluster.reader().read(SnapshotRequest(groups=(group,))).groups[group]
        assert (running.state, running.members, running.is_active) == ("Stable", 1, True)
    stopped = cluster.reader().read(SnapshotRequest(groups=(group,))).groups[group]
    assert (stopped.state, stopped.is_active) == ("Empty", False)


def test_groups_show_what_they_read(cluster: Cluster, app: str) -> None:
    topic, other, group = f"{app}-in", f"{app}-old", f"{app}-group"
    cluster.create(topic, 1)
    cluster.create(other, 1)
    cluster.commit(group, other, {0: "text"})
    with cluster.member(group, topic):
        groups, unread = cluster.reader().group_facts(None)
        assert (groups[group].state, groups[group].members, list(unread)) == ("Stable", 1, [])
        assert groups[group].subscribed == {topic}
        assert groups[group].committed >= {other}
    groups, _ = cluster.reader().group_facts(frozenset({group}))
    assert (groups[group].state, groups[group].subscribed) == ("Empty", frozenset())
    assert groups[group].committed >= {other}
    groups, _ = cluster.reader().group_facts(frozenset())
    assert not groups[group].committed


def test_the_cleanup_policy_of_a_topic_is_read(cluster: Cluster, app: str) -> None:
    cluster.create(f"{app}-a", 1, {"cleanup.policy": "compact"})
    cluster.create(f"{app}-b", 1)
    reader = cluster.reader()
    assert [reader.cleanup_policy(f"{app}-{name}") for name in "ab"] == ["compact", "delete"]
