"""An import is compared with the topics of the cluster."""

import attrs

from headwater.compiler import compile_document
from headwater.compiler.described import compare_with_cluster
from headwater.model.cluster import ClusterSnapshot, LiveGroup, LiveTopic
from headwater.model.problems import ProblemCode, Severity
from headwater.model.topology import (
    StoreDetail,
    TopologyDocument,
)
from tests.compiler.applications import compiled
from tests.compiler.imported_texts import AGGREGATION, cluster, imported


def test_each_difference_from_the_cluster_is_reported() -> None:
    truth = compiled(AGGREGATION, {"in": 4})
    described = imported(AGGREGATION, stores={"counts": StoreDetail("keyValue")})
    application = compile_document(TopologyDocument(truth.application, described=described), {"in": 4})
    live = dict(cluster(truth, {"in": 4}).topics)
    by = live["app-by-repartition"]
    live["app-by-repartition"] = attrs.evolve(by, partitions=5, config={**by.config, "retention.ms": "1000"})
    del live["app-counts-changelog"]
    live |= {name: LiveTopic(name, "id", 3, 1) for name in ("app-old-changelog", "app-eu-c-changelog")}
    groups = {"app": LiveGroup("app", "Stable", 1)}
    snapshot = ClusterSnapshot("c", 1, live, groups=groups, described=frozenset(live))
    assert [
        (p.code, p.severity, p.topic, p.expected, p.found)
        for p in compare_with_cluster(application, described, snapshot, ["app-old-changelog"])
    ] == [
        (ProblemCode.DIFFERS_FROM_CLUSTER, Severity.WARNING, topic, expected, found)
        for topic, expected, found in (
            ("app-by-repartition", "4 partitions", "5 partitions"),
            ("app-by-repartition", "retention.ms=-1", "retention.ms=1000"),
            ("app-counts-changelog", "4 partitions", "no topic"),
            ("app-old-changelog", "no topic", "3 partitions"),
        )
    ]
    assert list(compare_with_cluster(application, described, ClusterSnapshot("c", 1))) == []


def test_a_setting_that_equals_the_brokers_default_is_no_difference() -> None:
    truth = compiled(AGGREGATION, {"in": 4})
    described = imported(AGGREGATION, stores={"counts": StoreDetail("keyValue")})
    snapshot = cluster(truth, {"in": 4})
    live = {
        name: attrs.evolve(
            each, config={key: value for key, value in each.config.items() if "timestamp" not in key}
        )
        for name, each in snapshot.topics.items()
    }
    live["app-counts-changelog"] = attrs.evolve(
        live["app-counts-changelog"], config={"cleanup.policy": "compact", "retention.ms": "604800000"}
    )
    defaults = {"message.timestamp.type": "CreateTime", "retention.ms": "604800000"}
    snapshot = attrs.evolve(snapshot, topics=live, topic_defaults=defaults)
    assert list(compare_with_cluster(truth, described, snapshot)) == []
