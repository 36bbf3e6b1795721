"""A topic belongs to an application by evidence: groups, offsets, records, settings. A name alone is none."""

from collections.abc import Mapping

import attrs
import pytest

from headwater.model.compiled import CompiledApplication
from headwater.model.problems import APPLICATION, ProblemCode
from headwater.model.topology import Lifecycle, Setup, Sink
from headwater.planner import ActionKind, plan
from headwater.planner.evidence.topics import Evidence, Verdict
from tests.planner.evidence_values import (
    CHANGELOG,
    OLD,
    REPARTITION,
    USERS,
    recorded,
    refusals,
)
from tests.planner.plans import kinds, warnings
from tests.planner.simulated_cluster import (
    COMPACTED,
    DENIED_GROUPS,
    MANUAL,
    NO_LIMITS,
    WINDOWED,
    SimulatedCluster,
    application,
    changelog,
)
from tests.planner.simulated_stacks import Cluster, Stack

# The verdict


def verdict(cluster: SimulatedCluster, topic: str = OLD, *documents: CompiledApplication) -> Verdict:
    compiled = documents or (application(),)
    evidence = Evidence(compiled, cluster.snapshot, cluster.records)
    return evidence.about_topic("orders", cluster.topics[topic]).verdict


@pytest.mark.parametrize(
    ("settings", "expected"),
    [(COMPACTED, Verdict.LIKELY), (USERS, Verdict.SUSPECTED), ({}, Verdict.SUSPECTED)],
    ids=["of Kafka Streams", "of a user", "none"],
)
def test_settings_of_kafka_streams_are_evidence_and_a_name_is_none(
    settings: Mapping[str, str], expected: Verdict
) -> None:
    cluster = SimulatedCluster()
    cluster.create(OLD, 4, settings)
    assert verdict(cluster) is expected


def test_a_generated_name_and_the_own_group_are_evidence() -> None:
    cluster = SimulatedCluster()
    generated = "orders-KSTREAM-AGGREGATE-STATE-STORE-0000000003-changelog"
    cluster.create(generated, 4)
    cluster.create("orders-x-repartition", 4)
    assert verdict(cluster, generated) is Verdict.LIKELY
    assert verdict(cluster, "orders-x-repartition") is Verdict.SUSPECTED
    cluster.read_by("orders", "orders-x-repartition")
    assert verdict(cluster, "orders-x-repartition") is Verdict.LIKELY


@pytest.mark.parametrize("state", ["Stable", "Empty"])
def test_a_topic_that_another_group_reads_is_used(state: str) -> None:
    cluster = SimulatedCluster()
    cluster.create(OLD, 4, COMPACTED)
    cluster.read_by("audit", OLD, state=state)
    assert verdict(cluster) is Verdict.USED


def test_a_topic_that_another_document_or_stack_reads_is_used() -> None:
    cluster = SimulatedCluster()
    cluster.create(OLD, 4, COMPACTED)
    reader = application(id_="reader", sources={OLD: 4})
    assert verdict(cluster, OLD, application(), reader) is Verdict.USED
    cluster.ownership.append(recorded("reader", reads=OLD))
    assert verdict(cluster) is Verdict.USED


def test_the_group_of_a_longer_id_may_own_the_topic() -> None:
    cluster = SimulatedCluster()
    cluster.create("orders-eu-counts-changelog", 4, COMPACTED)
    cluster.run_group("orders-eu")
    assert verdict(cluster, "orders-eu-counts-changelog") is Verdict.OTHER
    eu = application(id_="orders-eu", topics=[])
    assert verdict(cluster, "orders-eu-counts-changelog", application(), eu) is Verdict.OTHER


def test_a_shorter_id_owns_no_unknown_topic_if_all_its_topics_are_known() -> None:
    name = "orders-eu-counts-changelog"
    cluster = SimulatedCluster()
    cluster.create(name, 4, COMPACTED)
    cluster.run_group("orders")
    eu, orders = application(id_="orders-eu", topics=[]), application()

    def verdict_for_eu(*compiled: CompiledApplication) -> Verdict:
        return Evidence(compiled, cluster.snapshot, {}).about_topic("orders-eu", cluster.topics[name]).verdict

    assert verdict_for_eu(eu) is Verdict.OTHER
    assert verdict_for_eu(eu, orders) is Verdict.LIKELY


def test_a_recorded_topic_may_be_deleted_if_the_longer_id_is_known() -> None:
    name = "orders-eu-x-changelog"
    eu = application(id_="orders-eu", topics=[])
    cluster = SimulatedCluster.set_up(application(topics=[changelog(name, 4)]), eu)
    cluster.run_group("orders-eu")
    cluster.up(application(topics=[changelog(name, 4)], lifecycle=Lifecycle.RETIRED), eu)
    cluster.up(eu)
    assert name not in cluster.topics


def test_records_of_stacks_decide() -> None:
    cluster = SimulatedCluster()
    cluster.create(OLD, 4)
    cluster.ownership.append(recorded("sales", OLD))
    assert verdict(cluster) is Verdict.RECORDED
    cluster.ownership[:] = [recorded("orders", OLD)]
    assert verdict(cluster) is Verdict.OWN
    cluster.ownership[:] = [attrs.evolve(recorded("sales"), topics={OLD: "id-of-an-earlier-topic"})]
    assert verdict(cluster) is Verdict.SUSPECTED


def test_a_recorded_topic_with_another_id_is_another_topic() -> None:
    cluster = SimulatedCluster.set_up(application())
    assert verdict(cluster, CHANGELOG) is Verdict.OWN
    cluster.recreate(CHANGELOG, is_empty=False)
    assert verdict(cluster, CHANGELOG) is not Verdict.OWN


def test_without_permission_the_owner_is_unknown() -> None:
    cluster = SimulatedCluster()
    cluster.create(OLD, 4, COMPACTED)
    cluster.unread_evidence = (DENIED_GROUPS,)
    assert verdict(cluster) is Verdict.UNKNOWN
    unread = attrs.evolve(cluster.snapshot, evidence=None)
    assert Evidence((), unread, {}).about_topic("orders", cluster.topics[OLD]).verdict is Verdict.UNKNOWN


# Adoption


def test_a_topic_of_a_user_is_not_adopted() -> None:
    cluster = SimulatedCluster()
    cluster.create(CHANGELOG, 4, USERS)
    planned = cluster.plan(application())
    (problem,) = refusals(planned, ProblemCode.OWNER_NOT_PROVEN)
    assert problem.topic == CHANGELOG
    assert "setup.adoptTopics" in problem.fix
    accepted = application(setup=Setup(adopt_topics=(CHANGELOG,)))
    assert kinds(cluster.up(accepted))[CHANGELOG] is ActionKind.ADOPT
    assert not cluster.plan(application()).problems


def test_manual_adoption_requires_the_same_evidence() -> None:
    cluster = SimulatedCluster()
    for topic in application().internal_topics:
        cluster.create(topic.name, 4, USERS)
    setup = Setup(adopt=True, adopt_topics=(REPARTITION,))
    (problem,) = refusals(cluster.plan(application(config=MANUAL, setup=setup)), ProblemCode.OWNER_NOT_PROVEN)
    assert problem.topic == CHANGELOG


def test_an_observed_document_claims_no_topic_by_its_name() -> None:
    cluster = SimulatedCluster()
    cluster.create("orders-payments", 4, USERS)
    claiming = application(topics=[changelog("orders-payments", 4)])
    observed = attrs.evolve(claiming, is_observed=True, subtopologies=())
    (problem,) = refusals(cluster.plan(observed), ProblemCode.OWNER_NOT_PROVEN)
    assert problem.topic == "orders-payments"


def test_a_topic_that_may_belong_to_a_longer_id_is_not_adopted() -> None:
    name = "orders-eu-x-changelog"
    cluster = SimulatedCluster()
    cluster.create(name, 4, COMPACTED)
    cluster.read_by("orders-eu", name)
    claiming = application(topics=[changelog(name, 4)])
    (problem,) = refusals(cluster.plan(claiming), ProblemCode.OWNER_NOT_PROVEN)
    assert "group orders-eu (Stable)" in (problem.found or "")


def test_a_topic_of_kafka_streams_is_adopted_although_other_clients_read_it() -> None:
    cluster = SimulatedCluster()
    cluster.create(CHANGELOG, 4, COMPACTED)
    cluster.read_by("connect-export", CHANGELOG)
    cluster.unread_evidence = (DENIED_GROUPS,)
    assert kinds(cluster.up(application()))[CHANGELOG] is ActionKind.ADOPT


@pytest.mark.parametrize(
    ("declared", "live"),
    [
        (COMPACTED, {"cleanup.policy": "delete", "retention.ms": "-1"}),
        (COMPACTED, {"cleanup.policy": "delete"}),
        (WINDOWED, {"cleanup.policy": "compact"}),
        (WINDOWED, {"cleanup.policy": "compact,delete", "retention.ms": "90000001"}),
        ({**WINDOWED, "retention.bytes": "5"}, {**WINDOWED, "retention.bytes": "6"}),
        ({**COMPACTED, "min.compaction.lag.ms": "1"}, {**COMPACTED, "min.compaction.lag.ms": "2"}),
    ],
    ids=["compact", "compact with retention", "delete", "shorter", "smaller", "lag"],
)
def test_adoption_changes_no_setting_that_removes_data(
    declared: Mapping[str, str], live: Mapping[str, str]
) -> None:
    topic = attrs.evolve(changelog(CHANGELOG, 4), config=declared)
    cluster = SimulatedCluster()
    cluster.create(CHANGELOG, 4, {"message.timestamp.type": "CreateTime", **live})
    (problem,) = refusals(cluster.plan(application(topics=[topic])), ProblemCode.SETTING_REMOVES_DATA)
    assert problem.topic == CHANGELOG
    accepted = application(topics=[topic], setup=Setup(adopt_topics=(CHANGELOG,)))
    cluster.up(accepted)
    cluster.up(application(topics=[topic]))


def test_adoption_may_change_settings_that_keep_more() -> None:
    cluster = SimulatedCluster()
    cluster.create(CHANGELOG, 4, {**COMPACTED, "cleanup.policy": "compact,delete", "retention.ms": "1"})
    cluster.up(application())
    assert cluster.topics[CHANGELOG].config["cleanup.policy"] == "compact"


def test_adopting_a_sink_removes_no_data() -> None:
    cluster = SimulatedCluster()
    cluster.create("orders-out", 4, {"retention.ms": "1000"})
    sink = Sink("orders-out", 4, config={"retention.ms": "1"})
    (problem,) = refusals(cluster.plan(application(sink=sink)), ProblemCode.SETTING_REMOVES_DATA)
    assert problem.topic == "orders-out"


def test_a_topic_that_another_client_re_created_with_data_is_not_compacted() -> None:
    cluster = SimulatedCluster.set_up(application())
    cluster.recreate(CHANGELOG, is_empty=False)
    cluster.change(CHANGELOG, config=USERS)
    assert refusals(cluster.plan(application()), ProblemCode.SETTING_REMOVES_DATA)
    cluster.change(CHANGELOG, is_empty=True)
    assert not refusals(cluster.plan(application()), ProblemCode.SETTING_REMOVES_DATA)


def test_a_running_application_does_not_compact_a_topic_of_a_user() -> None:
    """`headwater run` has no setup record: it changes the settings of topics that it finds."""
    for settings, is_refused in ((USERS, True), (COMPACTED, False)):
        cluster = SimulatedCluster()
        cluster.create(CHANGELOG, 4, settings)
        unread = attrs.evolve(cluster.snapshot, evidence=None)
        planned = plan([application()], unread, {}, NO_LIMITS, caller=APPLICATION)
        assert bool(refusals(planned, ProblemCode.OWNER_NOT_PROVEN)) == is_refused


# Overlapping ids


def test_the_id_of_another_stack_overlaps() -> None:
    cluster = Cluster()
    pay = Stack.on(cluster, "pay")
    pay.up(application(id_="pay"))
    eu = Stack.on(cluster, "pay-eu")
    planned = eu.plan(application(id_="pay-eu"))
    (problem,) = refusals(planned, ProblemCode.APPLICATION_ID_OVERLAP)
    assert "stack organization/headwater/pay" in (problem.found or "")
    eu.up(application(id_="pay-eu", setup=Setup(allow_id_overlap=True)))
    # Both are set up: the other stack can only be warned.
    again = pay.plan(application(id_="pay"))
    assert again.is_applicable
    assert [problem.code for problem in warnings(again)] == [ProblemCode.APPLICATION_ID_OVERLAP]
    # Each stack accepts the overlap in its own document.
    assert not warnings(pay.plan(application(id_="pay", setup=Setup(allow_id_overlap=True))))
    assert not warnings(eu.plan(application(id_="pay-eu", setup=Setup(allow_id_overlap=True))))


_WITH_MEMBERS = (
    "Stable",
    "PreparingRebalance",
    "CompletingRebalance",
    "Assigning",
    "Reconciling",
    "NotReady",
)


@pytest.mark.parametrize(
    ("state", "members", "is_running"),
    [
        pytest.param(None, (), False, id="no group"),
        *(pytest.param(state, (), False, id=f"{state} group") for state in ("Empty", "Dead")),
        *(pytest.param(state, (), True, id=f"{state} group") for state in _WITH_MEMBERS),
        pytest.param(None, (0,), False, id="no members"),
        pytest.param(None, (1,), True, id="one member"),
        pytest.param(None, (None,), True, id="members not known"),
        pytest.param("Empty", (1,), True, id="a member has joined"),
        pytest.param("Stable", (0,), True, id="the last member has left"),
    ],
)
def test_an_application_is_running_if_its_group_may_have_members(
    state: str | None,
    members: tuple[int | None, ...],
    is_running: bool,  # noqa: FBT001 - parameter of a test
) -> None:
    """The list of all groups and the groups of the applications are read one after the other."""
    cluster = SimulatedCluster.set_up(application())
    if state is not None:
        cluster.read_by("orders", CHANGELOG, state=state)
    for number in members:
        cluster.run_group("orders", members=number)
    evidence = Evidence((application(),), cluster.snapshot, cluster.records)
    assert evidence.is_running("orders") is is_running
    assert evidence.is_unused("orders") is not is_running
    assert not evidence.is_running("order")


def test_an_id_is_unused_only_if_no_other_stack_records_it_and_all_groups_are_read() -> None:
    cluster = SimulatedCluster.set_up(application())
    cluster.ownership.append(recorded("sales", OLD))

    def is_unused(id_: str) -> bool:
        return Evidence((application(),), cluster.snapshot, cluster.records).is_unused(id_)

    assert (is_unused("sales"), is_unused("orders"), is_unused("other")) == (False, True, True)
    cluster.ownership.append(recorded("orders", OLD))  # a former record of the own application
    assert is_unused("orders")
    cluster.unread_evidence = (DENIED_GROUPS,)
    assert not is_unused("other")
    assert not Evidence((), attrs.evolve(cluster.snapshot, evidence=None), {}).is_unused("other")
