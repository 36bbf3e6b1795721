"""Imported texts are completed by the topics of a cluster."""

import attrs
import pytest
from hypothesis import given
from hypothesis import strategies as st

from headwater.compiler import compile_document
from headwater.compiler.described import compare_with_cluster, complete_from_cluster, find_unknown
from headwater.describe import read_description
from headwater.model.cluster import ClusterSnapshot, LiveGroup, LiveTopic
from headwater.model.problems import ProblemCode
from headwater.model.topology import (
    Application,
    CreatedBy,
    DescribedTopology,
    Protocol,
    StoreDetail,
    TopologyDocument,
)
from tests.compiler.applications import codes, compiled, counts, topic
from tests.compiler.imported_texts import AGGREGATION, AT, cluster, compile_described, imported
from tests.describe.texts import recorded_texts

EVERYTHING = """
application:
  id: app
  config: {windowstore.changelog.additional.retention.ms: 1000, topic.segment.bytes: 1048576}
topology:
  - stream: {topic: in}
  - repartition: {name: wide, partitions: 6}
  - groupByKey: {}
  - windowedBy: {tumbling: {size: 1h, grace: 5m}}
  - count: {materialized: {store: windows, logging: {min.insync.replicas: 2}}}
  - toStream: {}
  - selectKey: {key: x, as: rekeyed}
  - table:
      topic: t
      as: t
      materialized: {supplier: {name: versions, kind: versionedKeyValue, retention: 1h}}
  - table: {topic: u, as: u, materialized: {store: unlogged, logging: false}}
  - join: {from: rekeyed, with: t, name: j}
  - groupByKey: {}
  - count: {materialized: {store: silent, logging: false}}
"""


def test_missing_details_are_read_from_the_cluster() -> None:
    sources = {"in": 2, "t": 4, "u": 1}
    truth = compiled(EVERYTHING, sources)
    application = truth.application
    snapshot = cluster(truth, sources)
    described = complete_from_cluster(imported(EVERYTHING), application, snapshot)
    found = compile_document(TopologyDocument(application, described=described), snapshot.partitions)
    assert {t.name: (t.partitions, t.config) for t in found.internal_topics} == {
        t.name: (t.partitions, t.config) for t in truth.internal_topics
    }
    assert described.repartition_partitions == {"wide-repartition": 6}
    assert described.stores["windows"] == StoreDetail(
        "windowed", 3_900_000, overrides={"min.insync.replicas": "2"}
    )
    assert described.stores["versions"].retention_ms == 3_600_000
    assert described.stores["unlogged"].source_topic == "u"
    assert not described.stores["silent"].logging
    assert ProblemCode.MISSING_DETAIL not in codes(found.problems)


def test_details_of_the_document_override_the_cluster() -> None:
    truth = compiled(AGGREGATION, {"in": 4})
    given = {"counts": StoreDetail("session", 5)}
    described = imported(AGGREGATION, stores=given)
    assert complete_from_cluster(described, truth.application, cluster(truth, {"in": 4})).stores == given


def test_a_cluster_without_the_application_adds_no_details() -> None:
    described = imported(AGGREGATION)
    application = compiled(AGGREGATION, {"in": 4}).application
    assert complete_from_cluster(described, application, ClusterSnapshot("c", 1)).stores == {}


def test_a_group_without_changelogs_has_logging_disabled() -> None:
    described = imported("topology: [{stream: {topic: in}}, {groupByKey: {}}, {count: {materialized: c}}]")
    snapshot = ClusterSnapshot("c", 1, {}, {"app": LiveGroup("app", "Stable", 1)})
    completed = complete_from_cluster(described, Application("app", AT), snapshot)
    assert completed.stores == {"c": StoreDetail(logging=False)}


def test_counts_that_are_derived_are_not_made_explicit() -> None:
    truth = compiled(AGGREGATION, {"in": 4})
    completed = complete_from_cluster(imported(AGGREGATION), truth.application, cluster(truth, {"in": 4}))
    assert completed.repartition_partitions == {}


@given(st.data())
def test_a_damaged_text_never_raises(data: st.DataObject) -> None:
    lines = data.draw(st.sampled_from(sorted(recorded_texts().values()))).splitlines()
    for _ in range(data.draw(st.integers(1, 4))):
        place = data.draw(st.integers(0, len(lines) - 1))
        lines[place : place + data.draw(st.integers(0, 3))] = data.draw(
            st.lists(st.sampled_from(lines), max_size=2)
        ) or [""]
    nodes, _ = read_description("\n".join(lines))
    described = DescribedTopology(nodes, AT)
    application = compile_described(described, {"left": 2, "right": 3})
    complete_from_cluster(described, application.application, cluster(application, {"left": 2, "right": 3}))


def test_a_topic_that_its_own_subtopology_writes_gets_its_explicit_count() -> None:
    text = """
topology:
  - stream: {topic: in, as: in}
  - repartition: {name: wide, partitions: 6, as: wide}
  - merge: {from: wide, with: in}
"""
    truth = compiled(text, {"in": 2})
    completed = complete_from_cluster(imported(text), truth.application, cluster(truth, {"in": 2}))
    assert completed.repartition_partitions == {"wide-repartition": 6}


GROUPED_BY_NAME = """
application: {id: app, protocol: streams}
topology:
  - stream: {topic: t1}
  - selectKey: {as: k}
  - repartition: {from: k, partitions: 2}
  - groupBy: {from: k, name: n10, as: g}
  - cogroup: {from: g, as: c}
  - aggregate: {from: c, materialized: agg}
"""
REPARTITIONED_BY_NAME = """
application: {id: app, protocol: streams}
topology:
  - stream: {topic: t1}
  - selectKey: {as: k}
  - repartition: {from: k, partitions: 2}
  - repartition: {from: k, name: n10, as: g}
  - groupByKey: {from: g, as: g2}
  - cogroup: {from: g2, as: c}
  - aggregate: {from: c, materialized: agg}
"""


@pytest.mark.parametrize(
    ("text", "call", "count"),
    [(GROUPED_BY_NAME, CreatedBy.GROUPING, 4), (REPARTITIONED_BY_NAME, CreatedBy.REPARTITION, 2)],
)
def test_counts_of_the_cluster_show_which_call_created_the_topic_of_a_cogroup(
    text: str, call: CreatedBy, count: int
) -> None:
    """The broker gives groups of repartition topics alone an explicit count of other topics."""
    truth = compiled(text, {"t1": 4})
    assert counts(truth)["agg-changelog"] == count
    snapshot = cluster(truth, {"t1": 4})
    described = complete_from_cluster(imported(text), truth.application, snapshot)
    assert described.created_by == {"n10-repartition": call}
    found = compile_document(TopologyDocument(truth.application, described=described), snapshot.partitions)
    assert counts(found) == counts(truth)
    assert list(compare_with_cluster(found, described, snapshot)) == []


def test_a_cogroup_of_a_named_group_takes_no_count_of_other_topics() -> None:
    explicit = {"KSTREAM-REPARTITION-0000000002-repartition": 2}
    described = imported(
        GROUPED_BY_NAME, repartition_partitions=explicit, stores={"agg": StoreDetail("keyValue")}
    )
    application = Application("app", AT, Protocol.STREAMS)
    compiled_text = compile_document(TopologyDocument(application, described=described), {"t1": 4})
    assert counts(compiled_text) == counts(compiled(GROUPED_BY_NAME, {"t1": 4}))
    assert find_unknown(described, application, {}).created_by == ("n10-repartition",)


LIVE_CONFIGS = {
    "a count whose changelog is not compacted": (
        {"cleanup.policy": "delete"},
        StoreDetail("timestampedKeyValue", overrides={"cleanup.policy": "delete"}),
    ),
    "a count that keeps its changelog for an hour": (
        {"cleanup.policy": "delete", "retention.ms": "3600000"},
        StoreDetail("timestampedKeyValue", overrides={"cleanup.policy": "delete", "retention.ms": "3600000"}),
    ),
    "a windowed count whose changelog is not compacted": (
        {"cleanup.policy": "delete", "retention.ms": "90000000"},
        StoreDetail("windowed", 3_600_000, overrides={"cleanup.policy": "delete"}),
    ),
    "a window or a session": (
        {"cleanup.policy": "delete,compact", "retention.ms": "90000000"},
        StoreDetail("windowed", 3_600_000, overrides={"cleanup.policy": "delete,compact"}),
    ),
    "a lag of a user": (
        {"cleanup.policy": "compact", "min.compaction.lag.ms": "60000"},
        StoreDetail("timestampedKeyValue", overrides={"min.compaction.lag.ms": "60000"}),
    ),
    "a versioned store": (
        {"cleanup.policy": "compact", "min.compaction.lag.ms": "90000000"},
        StoreDetail("versionedKeyValue", 3_600_000),
    ),
}


@pytest.mark.parametrize(("config", "expected"), LIVE_CONFIGS.values(), ids=LIVE_CONFIGS.keys())
def test_the_kind_of_a_count_follows_from_all_settings(config: dict[str, str], expected: StoreDetail) -> None:
    truth = compiled(AGGREGATION, {"in": 4})
    snapshot = cluster(truth, {"in": 4})
    changelog = snapshot.topics["app-counts-changelog"]
    live = attrs.evolve(changelog, config={"message.timestamp.type": "CreateTime", **config})
    snapshot = attrs.evolve(snapshot, topics={**snapshot.topics, live.name: live})
    described = complete_from_cluster(imported(AGGREGATION), truth.application, snapshot)
    assert described.stores == {"counts": expected}
    found = compile_document(TopologyDocument(truth.application, described=described), snapshot.partitions)
    assert topic(found, "counts-changelog").config == live.config


def test_a_store_of_a_custom_processor_without_compaction_has_duplicates() -> None:
    text = "topology: [{stream: {topic: in}}, {processValues: {stores: [{name: seen, kind: keyValue}]}}]"
    truth = compiled(text, {"in": 1})
    snapshot = cluster(truth, {"in": 1})
    config = {"message.timestamp.type": "CreateTime", "cleanup.policy": "delete", "retention.ms": "90000000"}
    live = attrs.evolve(snapshot.topics["app-seen-changelog"], config=config)
    snapshot = attrs.evolve(snapshot, topics={**snapshot.topics, live.name: live})
    described = complete_from_cluster(imported(text), truth.application, snapshot)
    assert described.stores == {"seen": StoreDetail("window", 3_600_000, retain_duplicates=True)}


@pytest.mark.parametrize(
    "snapshot",
    [
        ClusterSnapshot("c", 1, {"app-v1-c-changelog": LiveTopic("app-v1-c-changelog", "id", 1, 1)}),
        ClusterSnapshot("c", 1, groups={"app": LiveGroup("app", "Empty", 0)}),
    ],
    ids=["topic of another application", "group without members"],
)
def test_logging_is_not_disabled_because_another_application_has_topics(snapshot: ClusterSnapshot) -> None:
    described = imported("topology: [{stream: {topic: in}}, {groupByKey: {}}, {count: {materialized: c}}]")
    assert complete_from_cluster(described, Application("app", AT), snapshot).stores == {}
