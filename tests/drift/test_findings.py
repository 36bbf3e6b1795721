"""Each kind of drift is found once, at its location, and nothing else is."""

from collections.abc import Mapping, Sequence

import attrs

from headwater.model.compiled import CompiledApplication, InternalTopic, TopicKind
from headwater.model.problems import ProblemCode, Severity
from headwater.model.records import OwnershipRecord, StackIdentity
from headwater.model.topology import Leftovers, Lifecycle, Sink
from headwater.planner.drift import Drift, Finding, FindingKind, find_drift
from tests.planner.simulated_cluster import (
    AUTOSCALING,
    COMPACTED,
    MANUAL,
    SimulatedCluster,
    application,
    changelog,
    repartition,
)

REPARTITION, CHANGELOG = "orders-step1-repartition", "orders-counts-changelog"


def _drift(cluster: SimulatedCluster, *compiled: CompiledApplication, recorded: bool = True) -> Drift:
    return find_drift(compiled, cluster.snapshot, cluster.records if recorded else None)


def _kinds(drift: Drift) -> list[tuple[FindingKind, str | None, Severity]]:
    return [(finding.kind, finding.topic, finding.severity) for finding in drift.findings]


def _only(drift: Drift) -> Finding:
    assert not drift.problems
    (finding,) = drift.findings
    return finding


def test_an_unchanged_cluster_has_no_drift() -> None:
    orders, other = application(sink=Sink("orders-out", 4)), application(id_="other", config=MANUAL)
    cluster = SimulatedCluster.set_up(orders, other)
    cluster.create("someone-elses-changelog", 2)
    for recorded in (True, False):
        drift = _drift(cluster, orders, other, recorded=recorded)
        assert drift.is_clean, list(drift.findings)
        assert [part.topics for part in drift.applications] == [
            (CHANGELOG, "orders-out", REPARTITION),
            ("other-counts-changelog", "other-step1-repartition"),
        ]


def test_broker_defaults_are_not_drift() -> None:
    orders = application()
    cluster = SimulatedCluster.set_up(orders)
    cluster.change(CHANGELOG, config={"cleanup.policy": "compact"})
    cluster.topic_defaults = {"message.timestamp.type": "CreateTime", "segment.bytes": "1073741824"}
    assert _drift(cluster, orders).is_clean


def test_a_changed_explicit_count_is_found_in_both_directions() -> None:
    pinned = attrs.evolve(repartition(REPARTITION, 4), pinned=True)
    cluster = SimulatedCluster.set_up(application(topics=[pinned]))
    for count, kind in ((6, FindingKind.UNDER_PARTITIONED), (2, FindingKind.OVER_PARTITIONED)):
        drift = _drift(cluster, application(topics=[attrs.evolve(pinned, partitions=count)]))
        assert _kinds(drift) == [(kind, REPARTITION, Severity.ERROR)]
        assert not drift.problems


def test_a_lost_topic_is_missing() -> None:
    for config, severity in ((MANUAL, Severity.ERROR), ({}, Severity.WARNING)):
        orders = application(config=config)
        cluster = SimulatedCluster.set_up(orders)
        del cluster.topics[CHANGELOG]
        finding = _only(_drift(cluster, orders))
        assert (finding.kind, finding.topic, finding.severity) == (FindingKind.MISSING, CHANGELOG, severity)
        assert finding.what == f"Internal topic {CHANGELOG} was set up and no longer exists."
        assert finding.found == "none"


def test_topics_that_never_existed_are_missing() -> None:
    orders = application(sink=Sink("orders-out", 4))
    drift = _drift(SimulatedCluster(), orders, recorded=False)
    assert _kinds(drift) == [
        (FindingKind.MISSING, name, Severity.WARNING) for name in (CHANGELOG, "orders-out", REPARTITION)
    ]
    assert not drift.problems


def test_a_topic_of_an_incomplete_setup_without_a_record_is_missing() -> None:
    orders = application(config=MANUAL)
    cluster = SimulatedCluster.set_up(orders)
    del cluster.topics[CHANGELOG]
    finding = _only(_drift(cluster, orders, recorded=False))
    assert (finding.kind, finding.severity) == (FindingKind.MISSING, Severity.ERROR)


def test_a_re_created_topic_is_found() -> None:
    orders = application()
    cluster = SimulatedCluster.set_up(orders)
    cluster.recreate(CHANGELOG, is_empty=True)
    finding = _only(_drift(cluster, orders))
    assert (finding.kind, finding.topic) == (FindingKind.RECREATED, CHANGELOG)
    assert _drift(cluster, orders, recorded=False).is_clean


def test_topics_with_fewer_partitions_than_the_sources_are_found() -> None:
    expanded = {"orders-in": 6}
    for config, severity in (({}, Severity.ERROR), (AUTOSCALING, Severity.WARNING)):
        cluster = SimulatedCluster.set_up(application(config=config))
        drift = _drift(cluster, application(config=config, sources=expanded))
        assert _kinds(drift) == [
            (FindingKind.UNDER_PARTITIONED, name, severity) for name in (CHANGELOG, REPARTITION)
        ]
        assert {(finding.expected.split(",")[0], finding.found) for finding in drift.findings} == {
            ("6 partitions", "4 partitions")
        }
        assert not drift.problems


def test_an_unsafe_expansion_is_an_error_with_a_fix() -> None:
    config = {"partition.autoscaling.enabled": "true"}
    cluster = SimulatedCluster.set_up(application(config=config))
    drift = _drift(cluster, application(config=config, sources={"orders-in": 6}))
    assert [finding.severity for finding in drift.findings] == [Severity.ERROR] * 2
    assert all("allowUnsafeExpansion" in finding.fix for finding in drift.findings)
    assert not drift.problems


def test_a_changelog_with_another_count_than_processors_is_found() -> None:
    config = {"partition.autoscaling.enabled": "true"}
    orders = application(config=config, sources={"orders-in": 2}, processors=2)
    grown = application(config=config, sources={"orders-in": 4}, processors=2)
    cluster = SimulatedCluster.set_up(orders)
    cluster.up(grown)
    assert _drift(cluster, grown).is_clean
    assert _drift(cluster, grown, recorded=False).is_clean
    for partitions, kind in ((3, FindingKind.OVER_PARTITIONED), (1, FindingKind.UNDER_PARTITIONED)):
        cluster.change(CHANGELOG, partitions=partitions)
        finding = _only(_drift(cluster, grown))
        assert (finding.kind, finding.topic, finding.severity) == (kind, CHANGELOG, Severity.ERROR)
        assert f"processors: {partitions}" in finding.fix


def test_processors_that_the_application_adds_are_found() -> None:
    config = {"partition.autoscaling.enabled": "true"}
    orders, more = (
        application(config=config, sources={"orders-in": count}, processors=count) for count in (2, 4)
    )
    cluster = SimulatedCluster.set_up(orders)
    cluster.change(REPARTITION, partitions=4)
    cluster.change(CHANGELOG, records=1_200_000)
    finding = _only(_drift(cluster, more))
    assert (finding.kind, finding.severity) == (FindingKind.UNDER_PARTITIONED, Severity.WARNING)
    assert (finding.expected, finding.found) == ("4 processors", "2 processors")
    assert "reads about 1.2 million changelog records for it (about 20 seconds)." in finding.why


def test_a_growth_without_internal_topics_that_moves_keys_is_a_problem() -> None:
    orders = application(sources={"orders-in": 2}, processors=2, steps=0)
    cluster = SimulatedCluster.set_up(orders)
    drift = _drift(cluster, application(sources={"orders-in": 3}, processors=2, steps=0))
    assert [problem.code for problem in drift.problems] == [ProblemCode.UNSAFE_EXPANSION]


def test_a_number_of_processors_that_does_not_fit_the_inputs_is_a_problem() -> None:
    drift = _drift(SimulatedCluster(), application(sources={"orders-in": 4}, processors=2))
    assert [problem.code for problem in drift.problems] == [ProblemCode.PROCESSOR_COUNT]


def test_a_topic_with_too_many_partitions_is_found() -> None:
    orders = application(sink=Sink("orders-out", 4))
    cluster = SimulatedCluster.set_up(orders)
    cluster.change(REPARTITION, partitions=9)
    finding = _only(_drift(cluster, orders))
    assert (finding.kind, finding.severity) == (FindingKind.OVER_PARTITIONED, Severity.ERROR)
    assert finding.what.endswith("it was set up with 4, and another client expanded it.")
    unrecorded = _only(_drift(cluster, orders, recorded=False))
    assert unrecorded.what == f"Internal topic {REPARTITION} has more partitions than expected."


def test_config_differences_are_found_with_their_severity() -> None:
    for config, severity in ((MANUAL, Severity.ERROR), ({}, Severity.WARNING)):
        orders = application(config=config)
        cluster = SimulatedCluster.set_up(orders)
        cluster.configure(REPARTITION, retention_ms="1000", segment_bytes="1", flush_ms="5")
        found = {finding.found: finding for finding in _drift(cluster, orders).findings}
        assert {text: finding.severity for text, finding in found.items()} == {
            "retention.ms 1000 (1 second)": severity,
            "segment.bytes 1": Severity.INFO,
            "flush.ms 5": Severity.INFO,
        }
        assert {finding.kind for finding in found.values()} == {FindingKind.CONFIG}
        assert found["flush.ms 5"].expected == "flush.ms not set"


def test_a_different_replication_factor_is_found() -> None:
    declared = [repartition(REPARTITION, 4, replication_factor=3)]
    orders = application(topics=declared, stateful=False)
    cluster = SimulatedCluster.set_up(orders)
    cluster.change(REPARTITION, replication_factor=1)
    finding = _only(_drift(cluster, orders))
    assert (finding.kind, finding.severity) == (FindingKind.REPLICATION_FACTOR, Severity.WARNING)
    assert (finding.expected, finding.found) == ("replication factor 3", "replication factor 1")
    cluster.change(REPARTITION, replication_factor=4)
    assert _only(_drift(cluster, orders)).severity is Severity.INFO
    default = application(stateful=False)
    assert _drift(cluster, default).is_clean


def test_fewer_replicas_than_min_insync_replicas_are_one_finding() -> None:
    orders = application(topics=[repartition(REPARTITION, 4, replication_factor=3)], stateful=False)
    cluster = SimulatedCluster.set_up(orders)
    cluster.change(REPARTITION, replication_factor=1)
    cluster.default_min_insync_replicas = 2
    assert "NOT_ENOUGH_REPLICAS" in _only(_drift(cluster, orders)).why


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
    drift = _drift(cluster, orders)
    assert _kinds(drift) == [(FindingKind.ORPHANED, name, Severity.WARNING) for name in sorted(orphans)]
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
            assert not list(_drift(cluster, my_app, recorded=recorded).findings)


def test_a_topic_that_another_stack_records_is_no_finding() -> None:
    pay = application(id_="pay")
    cluster = SimulatedCluster.set_up(pay)
    cluster.create("pay-eu-counts-changelog", 4, COMPACTED)
    stack = StackIdentity("eu", "organization/headwater/eu")
    topics = {"pay-eu-counts-changelog": cluster.topics["pay-eu-counts-changelog"].topic_id}
    cluster.ownership.append(OwnershipRecord(application_id="pay-eu", stack=stack, topics=topics))
    assert not list(_drift(cluster, pay).findings)


def test_a_topic_of_a_user_is_a_suspicion_and_no_drift() -> None:
    orders = application()
    cluster = SimulatedCluster.set_up(orders)
    cluster.create("orders-cdc-changelog", 6, {"cleanup.policy": "delete", "retention.ms": "-1"})
    drift = _drift(cluster, orders)
    finding = _only(drift)
    assert (finding.kind, finding.severity) == (FindingKind.SUSPECTED, Severity.INFO)
    assert "Nothing else connects it with the application." in finding.what
    assert drift.is_clean
    _assert_no_delete_command(drift)
    leftovers = Leftovers(keep=("orders-cdc-changelog",))
    known = attrs.evolve(orders, application=attrs.evolve(orders.application, leftovers=leftovers))
    assert not list(_drift(cluster, known).findings)


def test_a_topic_that_another_group_reads_is_a_suspicion() -> None:
    orders = application()
    cluster = SimulatedCluster.set_up(orders)
    cluster.create("orders-old-changelog", 4, COMPACTED)
    cluster.read_by("audit", "orders-old-changelog")
    drift = _drift(cluster, orders)
    assert _only(drift).kind is FindingKind.SUSPECTED
    assert "read by group audit (Stable)" in _only(drift).found
    assert "leftovers.retire" not in _only(drift).fix
    cluster.change("orders-old-changelog", config={})
    assert not list(_drift(cluster, orders).findings)


def test_a_recorded_left_over_that_another_group_reads_is_to_be_kept() -> None:
    cluster = SimulatedCluster.set_up(application())
    cluster.read_by("audit", CHANGELOG, state="Empty")
    finding = _only(_drift(cluster, application(stateful=False)))
    assert finding.kind is FindingKind.ORPHANED
    assert "leftovers.retire" not in finding.fix
    assert "leftovers.keep" in finding.fix


def test_without_permission_to_see_groups_no_topic_is_orphaned() -> None:
    orders = application()
    cluster = SimulatedCluster.set_up(orders)
    cluster.create("orders-old-changelog", 4, COMPACTED)
    cluster.unread_evidence = ("the groups of other clients",)
    drift = _drift(cluster, orders)
    finding = _only(drift)
    assert finding.kind is FindingKind.SUSPECTED
    assert "not known" in finding.what
    assert "not readable: the groups of other clients" in finding.found
    assert drift.is_clean


def test_a_new_application_is_not_a_renamed_one_while_the_other_is_running() -> None:
    cluster = SimulatedCluster.set_up(application(id_="my-app-v1"))
    cluster.run_group("my-app-v1")
    billing = application(id_="billing")
    assert {finding.kind for finding in _drift(cluster, billing, recorded=False).findings} == {
        FindingKind.MISSING
    }
    cluster.run_group("my-app-v1", members=0)
    assert _only(_drift(cluster, billing, recorded=False)).kind is FindingKind.RENAMED
    stack = StackIdentity("other", "organization/headwater/other")
    cluster.ownership.append(OwnershipRecord(application_id="my-app-v1", stack=stack))
    kinds = {finding.kind for finding in _drift(cluster, billing, recorded=False).findings}
    assert kinds == {FindingKind.MISSING}


def test_without_permission_to_see_groups_no_application_is_renamed() -> None:
    cluster = SimulatedCluster.set_up(application(id_="my-app-v1"))
    cluster.unread_evidence = ("the groups of other clients",)
    kinds = {finding.kind for finding in _drift(cluster, application(id_="billing"), recorded=False).findings}
    assert kinds == {FindingKind.MISSING}


def test_an_orphan_belongs_to_the_longest_matching_id() -> None:
    orders, other = application(), application(id_="orders-eu", stateful=False)
    cluster = SimulatedCluster.set_up(orders, other)
    cluster.create("orders-eu-old-changelog", 1, COMPACTED)
    (finding,) = _drift(cluster, orders, other).findings
    assert finding.application == "orders-eu"


def test_a_source_of_another_document_is_not_an_orphan() -> None:
    orders = application()
    cluster = SimulatedCluster.set_up(orders)
    cluster.create("orders-total-changelog", 4)
    reader = application(id_="reader", sources={"orders-total-changelog": 4}, steps=1)
    cluster.up(reader, orders)
    assert _drift(cluster, orders, reader).is_clean


def test_a_recorded_topic_that_the_topology_no_longer_has_is_an_orphan() -> None:
    cluster = SimulatedCluster.set_up(application())
    drift = _drift(cluster, application(stateful=False))
    assert _kinds(drift) == [(FindingKind.ORPHANED, CHANGELOG, Severity.INFO)]


def test_no_orphans_are_reported_while_a_source_is_missing() -> None:
    orders = application()
    cluster = SimulatedCluster.set_up(orders)
    incomplete = attrs.evolve(application(topics=()), missing_sources=("orders-in",))
    drift = _drift(cluster, incomplete)
    assert not list(drift.findings)
    assert [problem.code for problem in drift.problems] == [ProblemCode.MISSING_SOURCE_TOPIC]


def test_topics_of_released_and_removed_applications_are_not_orphans() -> None:
    orders, other = application(), application(id_="other")
    cluster = SimulatedCluster.set_up(orders, other)
    released = application(lifecycle=Lifecycle.RELEASED)
    assert _drift(cluster, released, other).is_clean
    removed = _drift(cluster, other)
    assert not list(removed.findings)
    assert [problem.code for problem in removed.problems] == [ProblemCode.APPLICATION_REMOVED]


def _generated(index: str) -> Sequence[InternalTopic]:
    name = f"orders-KSTREAM-AGGREGATE-STATE-STORE-{index}-changelog"
    return [attrs.evolve(changelog(name, 4), generated=True)]


def test_a_renumbered_topic_is_one_finding() -> None:
    before = application(topics=_generated("0000000003"))
    after = application(topics=_generated("0000000007"))
    cluster = SimulatedCluster.set_up(before)
    for recorded in (True, False):
        finding = _only(_drift(cluster, after, recorded=recorded))
        assert finding.kind is FindingKind.RENUMBERED
        assert finding.expected == before.internal_topics[0].name
        assert finding.topic == after.internal_topics[0].name


def test_a_renamed_application_is_one_finding() -> None:
    cluster = SimulatedCluster.set_up(application(id_="orders", sink=Sink("out", 4)))
    renamed = application(id_="purchases", sink=Sink("out", 4))
    finding = _only(_drift(cluster, renamed, recorded=False))
    assert (finding.kind, finding.application, finding.topic) == (FindingKind.RENAMED, "purchases", None)
    assert "renamedFrom: orders" in finding.fix
    declared = attrs.evolve(renamed, application=attrs.evolve(renamed.application, renamed_from="orders"))
    assert "renamedFrom" not in _only(_drift(cluster, declared)).fix


def test_an_application_with_the_store_names_of_an_existing_one_is_not_renamed() -> None:
    orders, twin = application(), application(id_="twin")
    cluster = SimulatedCluster.set_up(orders)
    kinds = {finding.kind for finding in _drift(cluster, orders, twin, recorded=False).findings}
    assert kinds == {FindingKind.MISSING}


def test_foreign_key_topics_are_compared() -> None:
    topic = InternalTopic(
        name="orders-x-subscription-registration-topic",
        kind=TopicKind.FK_SUBSCRIPTION,
        partitions=4,
        config=COMPACTED,
        subtopology=1,
        node="x",
    )
    orders = application(topics=[topic])
    cluster = SimulatedCluster.set_up(orders)
    cluster.change(topic.name, partitions=2)
    assert _only(_drift(cluster, orders)).kind is FindingKind.UNDER_PARTITIONED


def test_each_finding_has_a_summary_a_reason_a_fix_and_a_location() -> None:
    settings: Mapping[str, str] = {"retention_ms": "1", "x_y": "1"}
    orders = application(sink=Sink("orders-out", 4, replication_factor=3))
    cluster = SimulatedCluster.set_up(orders)
    cluster.configure(REPARTITION, **settings)
    cluster.change("orders-out", partitions=2, replication_factor=2)
    cluster.create("orders-left-changelog", 1)
    del cluster.topics[CHANGELOG]
    findings = list(_drift(cluster, orders).findings)
    assert len({finding.kind for finding in findings}) == 5
    for finding in findings:
        assert all((finding.what, finding.expected, finding.found, finding.why, finding.fix))
        assert finding.what.endswith(".")
        assert finding.location is not None
