"""Each kind of drift is found once, at its location, and nothing else is."""

from collections.abc import Mapping, Sequence

import attrs

from headwater.model.compiled import CompiledApplication, InternalTopic, TopicKind
from headwater.model.problems import ProblemCode, Severity
from headwater.model.records import OwnershipRecord, StackIdentity
from headwater.model.topology import Sink
from headwater.planner.drift import FindingKind
from tests.drift.drift_cases import CHANGELOG, REPARTITION, drift_of, only_finding
from tests.planner.simulated_cluster import (
    COMPACTED,
    DENIED_GROUPS,
    MANUAL,
    SimulatedCluster,
    application,
    changelog,
)


def test_an_unchanged_cluster_has_no_drift() -> None:
    orders, other = application(sink=Sink("orders-out", 4)), application(id_="other", config=MANUAL)
    cluster = SimulatedCluster.set_up(orders, other)
    cluster.create("someone-elses-changelog", 2)
    for recorded in (True, False):
        drift = drift_of(cluster, orders, other, recorded=recorded)
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
    assert drift_of(cluster, orders).is_clean


def test_an_unsafe_expansion_is_an_error_with_a_fix() -> None:
    config = {"partition.autoscaling.enabled": "true"}
    cluster = SimulatedCluster.set_up(application(config=config))
    drift = drift_of(cluster, application(config=config, sources={"orders-in": 6}))
    assert [finding.severity for finding in drift.findings] == [Severity.ERROR] * 2
    assert all("allowUnsafeExpansion" in finding.fix for finding in drift.findings)
    assert not drift.problems


def test_a_changelog_with_another_count_than_processors_is_found() -> None:
    config = {"partition.autoscaling.enabled": "true"}
    orders = application(config=config, sources={"orders-in": 2}, processors=2)
    grown = application(config=config, sources={"orders-in": 4}, processors=2)
    cluster = SimulatedCluster.set_up(orders)
    cluster.up(grown)
    assert drift_of(cluster, grown).is_clean
    assert drift_of(cluster, grown, recorded=False).is_clean
    for partitions, kind in ((3, FindingKind.OVER_PARTITIONED), (1, FindingKind.UNDER_PARTITIONED)):
        cluster.change(CHANGELOG, partitions=partitions)
        finding = only_finding(drift_of(cluster, grown))
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
    finding = only_finding(drift_of(cluster, more))
    assert (finding.kind, finding.severity) == (FindingKind.UNDER_PARTITIONED, Severity.WARNING)
    assert (finding.expected, finding.found) == ("4 processors", "2 processors")
    assert "reads about 1.2 million changelog records for it (about 20 seconds)." in finding.why


def test_a_growth_without_internal_topics_that_moves_keys_is_a_problem() -> None:
    orders = application(sources={"orders-in": 2}, processors=2, steps=0)
    cluster = SimulatedCluster.set_up(orders)
    drift = drift_of(cluster, application(sources={"orders-in": 3}, processors=2, steps=0))
    assert [problem.code for problem in drift.problems] == [ProblemCode.UNSAFE_EXPANSION]


def test_a_number_of_processors_that_does_not_fit_the_inputs_is_a_problem() -> None:
    drift = drift_of(SimulatedCluster(), application(sources={"orders-in": 4}, processors=2))
    assert [problem.code for problem in drift.problems] == [ProblemCode.PROCESSOR_COUNT]


def test_a_new_application_is_not_a_renamed_one_while_the_other_is_running() -> None:
    cluster = SimulatedCluster.set_up(application(id_="my-app-v1"))
    cluster.run_group("my-app-v1")
    billing = application(id_="billing")
    assert {finding.kind for finding in drift_of(cluster, billing, recorded=False).findings} == {
        FindingKind.MISSING
    }
    cluster.run_group("my-app-v1", members=0)
    assert only_finding(drift_of(cluster, billing, recorded=False)).kind is FindingKind.RENAMED
    stack = StackIdentity("other", "organization/headwater/other")
    cluster.ownership.append(OwnershipRecord(application_id="my-app-v1", stack=stack))
    kinds = {finding.kind for finding in drift_of(cluster, billing, recorded=False).findings}
    assert kinds == {FindingKind.MISSING}


def test_without_permission_to_see_groups_no_application_is_renamed() -> None:
    cluster = SimulatedCluster.set_up(application(id_="my-app-v1"))
    cluster.unread_evidence = (DENIED_GROUPS,)
    kinds = {
        finding.kind for finding in drift_of(cluster, application(id_="billing"), recorded=False).findings
    }
    assert kinds == {FindingKind.MISSING}


def _generated(index: str) -> Sequence[InternalTopic]:
    name = f"orders-KSTREAM-AGGREGATE-STATE-STORE-{index}-changelog"
    return [attrs.evolve(changelog(name, 4), generated=True)]


def test_a_renumbered_topic_is_one_finding() -> None:
    before = application(topics=_generated("0000000003"))
    after = application(topics=_generated("0000000007"))
    cluster = SimulatedCluster.set_up(before)
    for recorded in (True, False):
        finding = only_finding(drift_of(cluster, after, recorded=recorded))
        assert finding.kind is FindingKind.RENUMBERED
        assert finding.expected == before.internal_topics[0].name
        assert finding.topic == after.internal_topics[0].name


def test_a_renamed_application_is_one_finding() -> None:
    cluster = SimulatedCluster.set_up(application(id_="orders", sink=Sink("out", 4)))
    renamed = application(id_="purchases", sink=Sink("out", 4))
    finding = only_finding(drift_of(cluster, renamed, recorded=False))
    assert (finding.kind, finding.application, finding.topic) == (FindingKind.RENAMED, "purchases", None)
    assert "renamedFrom: orders" in finding.fix
    declared = attrs.evolve(renamed, application=attrs.evolve(renamed.application, renamed_from="orders"))
    assert "renamedFrom" not in only_finding(drift_of(cluster, declared)).fix


def test_several_renamed_applications_have_a_finding_each() -> None:
    def stored(id_: str, store: str) -> CompiledApplication:
        return application(id_=id_, topics=[changelog(f"{id_}-{store}-changelog", 4)])

    cluster = SimulatedCluster.set_up(stored("my-app-v1", "counts"), stored("orders", "v2-totals"))
    renamed = (stored("purchases", "v2-totals"), stored("billing", "counts"), stored("new", "sums"))
    found = drift_of(cluster, *renamed, recorded=False).findings
    assert {(each.kind, each.application, each.found.partition("-, ")[0]) for each in found} == {
        (FindingKind.RENAMED, "purchases", "they begin with orders"),
        (FindingKind.RENAMED, "billing", "they begin with my-app-v1"),
        (FindingKind.MISSING, "new", "none"),
    }


def test_an_application_with_the_store_names_of_an_existing_one_is_not_renamed() -> None:
    orders, twin = application(), application(id_="twin")
    cluster = SimulatedCluster.set_up(orders)
    kinds = {finding.kind for finding in drift_of(cluster, orders, twin, recorded=False).findings}
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
    assert only_finding(drift_of(cluster, orders)).kind is FindingKind.UNDER_PARTITIONED


def test_each_finding_has_a_summary_a_reason_a_fix_and_a_location() -> None:
    settings: Mapping[str, str] = {"retention_ms": "1", "x_y": "1"}
    orders = application(sink=Sink("orders-out", 4, replication_factor=3))
    cluster = SimulatedCluster.set_up(orders)
    cluster.configure(REPARTITION, **settings)
    cluster.change("orders-out", partitions=2, replication_factor=2)
    cluster.create("orders-left-changelog", 1)
    del cluster.topics[CHANGELOG]
    findings = list(drift_of(cluster, orders).findings)
    assert len({finding.kind for finding in findings}) == 5
    for finding in findings:
        assert all((finding.what, finding.expected, finding.found, finding.why, finding.fix))
        assert finding.what.endswith(".")
        assert finding.location is not None
