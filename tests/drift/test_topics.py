"""Drift of single topics: missing, re-created, with another count, with other settings."""

import attrs

from headwater.model.problems import Severity
from headwater.model.topology import Sink
from headwater.planner.drift import FindingKind
from tests.drift.drift_cases import CHANGELOG, REPARTITION, drift_of, kinds_of, only_finding
from tests.planner.simulated_cluster import (
    AUTOSCALING,
    MANUAL,
    SimulatedCluster,
    application,
    repartition,
)


def test_a_changed_explicit_count_is_found_in_both_directions() -> None:
    pinned = attrs.evolve(repartition(REPARTITION, 4), pinned=True)
    cluster = SimulatedCluster.set_up(application(topics=[pinned]))
    for count, kind in ((6, FindingKind.UNDER_PARTITIONED), (2, FindingKind.OVER_PARTITIONED)):
        drift = drift_of(cluster, application(topics=[attrs.evolve(pinned, partitions=count)]))
        assert kinds_of(drift) == [(kind, REPARTITION, Severity.ERROR)]
        assert not drift.problems


def test_a_lost_topic_is_missing() -> None:
    for config, severity in ((MANUAL, Severity.ERROR), ({}, Severity.WARNING)):
        orders = application(config=config)
        cluster = SimulatedCluster.set_up(orders)
        del cluster.topics[CHANGELOG]
        finding = only_finding(drift_of(cluster, orders))
        assert (finding.kind, finding.topic, finding.severity) == (FindingKind.MISSING, CHANGELOG, severity)
        assert finding.what == f"Internal topic {CHANGELOG} was set up and no longer exists."
        assert finding.found == "none"


def test_topics_that_never_existed_are_missing() -> None:
    orders = application(sink=Sink("orders-out", 4))
    drift = drift_of(SimulatedCluster(), orders, recorded=False)
    assert kinds_of(drift) == [
        (FindingKind.MISSING, name, Severity.WARNING) for name in (CHANGELOG, "orders-out", REPARTITION)
    ]
    assert not drift.problems


def test_a_topic_of_an_incomplete_setup_without_a_record_is_missing() -> None:
    orders = application(config=MANUAL)
    cluster = SimulatedCluster.set_up(orders)
    del cluster.topics[CHANGELOG]
    finding = only_finding(drift_of(cluster, orders, recorded=False))
    assert (finding.kind, finding.severity) == (FindingKind.MISSING, Severity.ERROR)


def test_a_re_created_topic_is_found() -> None:
    orders = application()
    cluster = SimulatedCluster.set_up(orders)
    cluster.recreate(CHANGELOG, is_empty=True)
    finding = only_finding(drift_of(cluster, orders))
    assert (finding.kind, finding.topic) == (FindingKind.RECREATED, CHANGELOG)
    assert drift_of(cluster, orders, recorded=False).is_clean


def test_topics_with_fewer_partitions_than_the_sources_are_found() -> None:
    expanded = {"orders-in": 6}
    for config, severity in (({}, Severity.ERROR), (AUTOSCALING, Severity.WARNING)):
        cluster = SimulatedCluster.set_up(application(config=config))
        drift = drift_of(cluster, application(config=config, sources=expanded))
        assert kinds_of(drift) == [
            (FindingKind.UNDER_PARTITIONED, name, severity) for name in (CHANGELOG, REPARTITION)
        ]
        assert {(finding.expected.split(",")[0], finding.found) for finding in drift.findings} == {
            ("6 partitions", "4 partitions")
        }
        assert not drift.problems


def test_a_topic_with_too_many_partitions_is_found() -> None:
    orders = application(sink=Sink("orders-out", 4))
    cluster = SimulatedCluster.set_up(orders)
    cluster.change(REPARTITION, partitions=9)
    finding = only_finding(drift_of(cluster, orders))
    assert (finding.kind, finding.severity) == (FindingKind.OVER_PARTITIONED, Severity.ERROR)
    assert finding.what.endswith("it was set up with 4, and another client expanded it.")
    unrecorded = only_finding(drift_of(cluster, orders, recorded=False))
    assert unrecorded.what == f"Internal topic {REPARTITION} has more partitions than expected."


def test_config_differences_are_found_with_their_severity() -> None:
    for config, severity in ((MANUAL, Severity.ERROR), ({}, Severity.WARNING)):
        orders = application(config=config)
        cluster = SimulatedCluster.set_up(orders)
        cluster.configure(REPARTITION, retention_ms="1000", segment_bytes="1", flush_ms="5")
        found = {finding.found: finding for finding in drift_of(cluster, orders).findings}
        assert {text: finding.severity for text, finding in found.items()} == {
            "retention.ms 1000 (1 second)": severity,
            "segment.bytes 1": Severity.INFO,
            "flush.ms 5": Severity.INFO,
        }
        assert {finding.kind for finding in found.values()} == {FindingKind.CONFIG}
        assert found["flush.ms 5"].expected == "flush.ms not set"


def test_a_retention_that_deletes_records_is_not_said_to_be_harmless() -> None:
    orders = application()
    cluster = SimulatedCluster.set_up(orders)
    cluster.configure(CHANGELOG, retention_ms="1000")
    assert only_finding(drift_of(cluster, orders)).why.startswith("It does not endanger data")
    cluster.configure(CHANGELOG, cleanup_policy="delete")
    policy, retention = drift_of(cluster, orders).findings
    assert (policy.found, policy.severity) == ("cleanup.policy delete", Severity.WARNING)
    assert retention.found == "retention.ms 1000"
    assert retention.why == (
        "While `cleanup.policy` has `delete`, Kafka deletes older records. The document does not show it."
    )
    cluster.configure(CHANGELOG, retention_ms="-1")
    _, unlimited = drift_of(cluster, orders).findings
    assert unlimited.why.startswith("It does not endanger data")


def test_a_different_replication_factor_is_found() -> None:
    declared = [repartition(REPARTITION, 4, replication_factor=3)]
    orders = application(topics=declared, stateful=False)
    cluster = SimulatedCluster.set_up(orders)
    cluster.change(REPARTITION, replication_factor=1)
    finding = only_finding(drift_of(cluster, orders))
    assert (finding.kind, finding.severity) == (FindingKind.REPLICATION_FACTOR, Severity.WARNING)
    assert (finding.expected, finding.found) == ("replication factor 3", "replication factor 1")
    cluster.change(REPARTITION, replication_factor=4)
    assert only_finding(drift_of(cluster, orders)).severity is Severity.INFO
    default = application(stateful=False)
    assert drift_of(cluster, default).is_clean


def test_fewer_replicas_than_min_insync_replicas_are_one_finding() -> None:
    orders = application(topics=[repartition(REPARTITION, 4, replication_factor=3)], stateful=False)
    cluster = SimulatedCluster.set_up(orders)
    cluster.change(REPARTITION, replication_factor=1)
    cluster.default_min_insync_replicas = 2
    assert "min.insync.replicas" in only_finding(drift_of(cluster, orders)).what
