"""Topics that no document declares: whose they are, and what a fix says."""

import attrs

from headwater.model.problems import ProblemCode, Severity
from headwater.model.records import OwnershipRecord, StackIdentity
from headwater.model.topology import Leftovers, Lifecycle
from headwater.planner.drift import Drift, FindingKind
from tests.drift.drift_cases import CHANGELOG, drift_of, kinds_of, only_finding
from tests.planner.simulated_cluster import (
    COMPACTED,
    DENIED_GROUPS,
    MANUAL,
    SimulatedCluster,
    application,
)


def test_unknown_topics_of_known_applications_are_orphaned() -> None:
    orders = application()
    cluster = SimulatedCluster.set_up(orders)
    orphans = [
        "orders-old-changelog",
        "orders-old-repartition",
        "orders-by-product-subscription-registration-topic",
        "orders-KTABLE-FK-JOIN-SUBSCRIPTION-RESPONSE-0000000014-topic",
    ]
    for name in orphans:
        cluster.create(name, 3, COMPACTED)
    cluster.create("orders-old-topic", 1)  # not the name of an internal topic
    drift = drift_of(cluster, orders)
    assert kinds_of(drift) == [(FindingKind.ORPHANED, name, Severity.WARNING) for name in sorted(orphans)]
    assert all("`leftovers.retire`" in finding.fix for finding in drift.findings)


def _assert_no_delete_command(drift: Drift) -> None:
    texts = " ".join(f"{finding.what} {finding.why} {finding.fix}" for finding in drift.findings)
    assert "--delete" not in texts
    assert "kafka-topics.sh" not in texts


def test_a_topic_of_another_running_application_is_no_finding() -> None:
    """Its id begins with the id of the document, and only its group shows that it exists."""
    my_app = application(id_="my-app", config=MANUAL)
    for settings in (COMPACTED, {}):
        cluster = SimulatedCluster.set_up(my_app)
        cluster.create("my-app-v1-counts-changelog", 4, settings)
        cluster.run_group("my-app-v1")
        for recorded in (True, False):
            assert not list(drift_of(cluster, my_app, recorded=recorded).findings)


def test_a_topic_that_another_stack_records_is_no_finding() -> None:
    pay = application(id_="pay")
    cluster = SimulatedCluster.set_up(pay)
    cluster.create("pay-eu-counts-changelog", 4, COMPACTED)
    stack = StackIdentity("eu", "organization/headwater/eu")
    topics = {"pay-eu-counts-changelog": cluster.topics["pay-eu-counts-changelog"].topic_id}
    cluster.ownership.append(OwnershipRecord(application_id="pay-eu", stack=stack, topics=topics))
    assert not list(drift_of(cluster, pay).findings)


def test_a_topic_of_a_user_is_a_suspicion_and_no_drift() -> None:
    orders = application()
    cluster = SimulatedCluster.set_up(orders)
    cluster.create("orders-cdc-changelog", 6, {"cleanup.policy": "delete", "retention.ms": "-1"})
    drift = drift_of(cluster, orders)
    finding = only_finding(drift)
    assert (finding.kind, finding.severity) == (FindingKind.SUSPECTED, Severity.INFO)
    assert "Nothing else connects it with the application." in finding.what
    assert drift.is_clean
    _assert_no_delete_command(drift)
    leftovers = Leftovers(keep=("orders-cdc-changelog",))
    known = attrs.evolve(orders, application=attrs.evolve(orders.application, leftovers=leftovers))
    assert not list(drift_of(cluster, known).findings)


def test_a_topic_that_another_group_reads_is_a_suspicion() -> None:
    orders = application()
    cluster = SimulatedCluster.set_up(orders)
    cluster.create("orders-old-changelog", 4, COMPACTED)
    cluster.read_by("audit", "orders-old-changelog")
    drift = drift_of(cluster, orders)
    assert only_finding(drift).kind is FindingKind.SUSPECTED
    assert "read by group audit (Stable)" in only_finding(drift).found
    assert "leftovers.retire" not in only_finding(drift).fix
    cluster.change("orders-old-changelog", config={})
    assert not list(drift_of(cluster, orders).findings)


def test_a_recorded_left_over_that_another_group_reads_is_to_be_kept() -> None:
    cluster = SimulatedCluster.set_up(application())
    cluster.read_by("audit", CHANGELOG, state="Empty")
    finding = only_finding(drift_of(cluster, application(stateful=False)))
    assert finding.kind is FindingKind.ORPHANED
    assert "leftovers.retire" not in finding.fix
    assert "leftovers.keep" in finding.fix


def test_without_permission_to_see_groups_no_topic_is_orphaned() -> None:
    orders = application()
    cluster = SimulatedCluster.set_up(orders)
    cluster.create("orders-old-changelog", 4, COMPACTED)
    cluster.unread_evidence = (DENIED_GROUPS,)
    drift = drift_of(cluster, orders)
    finding = only_finding(drift)
    assert finding.kind is FindingKind.SUSPECTED
    assert "not known" in finding.what
    assert "not readable: the groups of other clients" in finding.found
    assert drift.is_clean


def test_an_orphan_belongs_to_the_longest_matching_id() -> None:
    orders, other = application(), application(id_="orders-eu", stateful=False)
    cluster = SimulatedCluster.set_up(orders, other)
    cluster.create("orders-eu-old-changelog", 1, COMPACTED)
    (finding,) = drift_of(cluster, orders, other).findings
    assert finding.application == "orders-eu"


def test_a_source_of_another_document_is_not_an_orphan() -> None:
    orders = application()
    cluster = SimulatedCluster.set_up(orders)
    cluster.create("orders-total-changelog", 4)
    reader = application(id_="reader", sources={"orders-total-changelog": 4}, steps=1)
    cluster.up(reader, orders)
    assert drift_of(cluster, orders, reader).is_clean


def test_a_recorded_topic_that_the_topology_no_longer_has_is_an_orphan() -> None:
    cluster = SimulatedCluster.set_up(application())
    drift = drift_of(cluster, application(stateful=False))
    assert kinds_of(drift) == [(FindingKind.ORPHANED, CHANGELOG, Severity.INFO)]


def test_no_orphans_are_reported_while_a_source_is_missing() -> None:
    orders = application()
    cluster = SimulatedCluster.set_up(orders)
    incomplete = attrs.evolve(application(topics=()), missing_sources=("orders-in",))
    drift = drift_of(cluster, incomplete)
    assert not list(drift.findings)
    assert [problem.code for problem in drift.problems] == [ProblemCode.MISSING_SOURCE_TOPIC]


def test_topics_of_released_and_removed_applications_are_not_orphans() -> None:
    orders, other = application(), application(id_="other")
    cluster = SimulatedCluster.set_up(orders, other)
    released = application(lifecycle=Lifecycle.RELEASED)
    assert drift_of(cluster, released, other).is_clean
    removed = drift_of(cluster, other)
    assert not list(removed.findings)
    assert [problem.code for problem in removed.problems] == [ProblemCode.APPLICATION_REMOVED]
