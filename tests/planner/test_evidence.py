"""A topic belongs to an application by evidence: groups, offsets, records, settings. A name alone is none."""

import itertools
from collections.abc import Mapping

import attrs
import pytest

from headwater.model.compiled import CompiledApplication
from headwater.model.offset_metadata import client_group
from headwater.model.problems import APPLICATION, Problem, ProblemCode, Severity
from headwater.model.records import OwnershipRecord, StackIdentity
from headwater.model.topology import Leftovers, Lifecycle, Setup, Sink
from headwater.planner import ActionKind, Plan, plan
from headwater.planner.evidence.topics import Evidence, Verdict
from tests.planner.plans import kinds, warnings
from tests.planner.simulated_cluster import (
    COMPACTED,
    MANUAL,
    NO_LIMITS,
    WINDOWED,
    SimulatedCluster,
    application,
    changelog,
)
from tests.planner.simulated_stacks import Cluster, Stack

REPARTITION, CHANGELOG, OLD = "orders-step1-repartition", "orders-counts-changelog", "orders-old-changelog"
RETIRED = application(lifecycle=Lifecycle.RETIRED)
OTHER_STACK = StackIdentity("other", "organization/headwater/other")
USERS = {"cleanup.policy": "delete", "retention.ms": "-1"}
"""The settings of a topic that a user created."""


def refusals(planned: Plan, code: ProblemCode = ProblemCode.DELETION_REFUSED) -> list[Problem]:
    return [p for p in planned.problems if p.code is code and p.severity is Severity.ERROR]


def with_leftovers(
    *, retire: tuple[str, ...] = (), delete: tuple[str, ...] = (), keep: tuple[str, ...] = ()
) -> CompiledApplication:
    compiled = application(config=MANUAL)
    leftovers = Leftovers(retire, delete, keep)
    return attrs.evolve(compiled, application=attrs.evolve(compiled.application, leftovers=leftovers))


def recorded(id_: str, *topics: str, reads: str = "") -> OwnershipRecord:
    return OwnershipRecord(
        application_id=id_,
        stack=OTHER_STACK,
        topics=dict.fromkeys(topics, ""),
        reads=frozenset({reads} if reads else ()),
    )


# The verdict


def verdict(cluster: SimulatedCluster, topic: str = OLD, *documents: CompiledApplication) -> Verdict:
    compiled = documents or (application(),)
    evidence = Evidence(compiled, cluster.snapshot, cluster.records)
    return evidence.of("orders", cluster.topics[topic]).verdict


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
        return Evidence(compiled, cluster.snapshot, {}).of("orders-eu", cluster.topics[name]).verdict

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
    cluster.unread_evidence = ("the groups of other clients",)
    assert verdict(cluster) is Verdict.UNKNOWN
    unread = attrs.evolve(cluster.snapshot, evidence=None)
    assert Evidence((), unread, {}).of("orders", cluster.topics[OLD]).verdict is Verdict.UNKNOWN


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
    cluster.unread_evidence = ("group secret",)
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


# Deletion


def test_a_retired_topic_that_another_group_reads_is_not_deleted() -> None:
    cluster = SimulatedCluster.set_up(application())
    cluster.read_by("audit", CHANGELOG, state="Empty")
    (problem,) = refusals(cluster.plan(RETIRED))
    assert (problem.topic, "group audit (Empty)" in (problem.found or "")) == (CHANGELOG, True)
    cluster.readers.clear()
    cluster.up(RETIRED)
    cluster.read_by("audit", CHANGELOG)
    assert [each.topic for each in refusals(cluster.plan())] == [CHANGELOG]


def test_the_record_of_the_own_active_client_reads_nothing() -> None:
    """It is a committed offset in a group of its own."""
    cluster = SimulatedCluster.set_up(application())
    cluster.read_by(client_group("orders"), CHANGELOG, state="Empty")
    assert refusals(cluster.plan(RETIRED)) == []
    cluster.read_by(client_group("audit"), CHANGELOG, state="Empty")
    (problem,) = refusals(cluster.plan(RETIRED))
    assert client_group("audit") in (problem.found or "")


def test_a_retired_topic_that_a_longer_id_may_own_is_not_deleted() -> None:
    name = "orders-eu-x-changelog"
    cluster = SimulatedCluster.set_up(application(topics=[changelog(name, 4)]))
    cluster.run_group("orders-eu", members=0)
    retired = application(topics=[changelog(name, 4)], lifecycle=Lifecycle.RETIRED)
    assert [each.topic for each in refusals(cluster.plan(retired))] == [name]


def test_a_retired_topic_that_an_active_document_reads_is_not_deleted() -> None:
    reader = application(id_="reader", sources={CHANGELOG: 4})
    cluster = SimulatedCluster.set_up(application(), reader)
    (problem,) = refusals(cluster.plan(RETIRED, reader))
    assert problem.topic == CHANGELOG
    assert "application reader (reader.yaml)" in (problem.found or "")
    cluster.up(RETIRED, attrs.evolve(reader, external_sources=()))
    assert [each.topic for each in refusals(cluster.plan(reader))] == [CHANGELOG]


def test_a_retired_topic_that_another_stack_reads_is_not_deleted() -> None:
    cluster = SimulatedCluster.set_up(application())
    cluster.ownership.append(recorded("reader", reads=CHANGELOG))
    (problem,) = refusals(cluster.plan(RETIRED))
    assert "application reader of stack organization/headwater/other" in (problem.found or "")


def test_a_topic_without_the_settings_of_an_internal_topic_is_released_instead() -> None:
    cluster = SimulatedCluster.set_up(application(config=MANUAL))
    cluster.change(CHANGELOG, config={"cleanup.policy": "delete"})
    planned = cluster.up(RETIRED)
    assert kinds(planned) == {CHANGELOG: ActionKind.RELEASE, REPARTITION: ActionKind.RETIRE}
    (problem,) = planned.problems
    assert (problem.code, problem.severity) == (ProblemCode.DELETION_REFUSED, Severity.WARNING)
    cluster.up()
    assert set(cluster.topics) == {CHANGELOG}


def test_nothing_is_deleted_while_groups_are_not_readable() -> None:
    cluster = SimulatedCluster.set_up(application())
    cluster.unread_evidence = ("the groups of other clients",)
    assert len(refusals(cluster.plan(RETIRED))) == 2
    cluster.unread_evidence = ()
    cluster.up(RETIRED)
    unread = attrs.evolve(cluster.snapshot, evidence=None)
    assert len(refusals(plan((), unread, cluster.records, NO_LIMITS))) == 2


def test_the_state_of_a_stack_alone_deletes_nothing() -> None:
    """Retired, active again, an old state restored, and the document lost."""
    cluster = Cluster()
    stack = Stack.on(cluster, "first")
    stack.up(application())
    stack.up(RETIRED)
    old = dict(stack.records)
    stack.up(application())
    stack.records = old
    found = {problem.found for problem in refusals(stack.plan())}
    assert found == {"the ownership record on the cluster says that it was not retired"}
    stack.up(RETIRED)
    stack.up()
    assert not cluster.simulated.topics


def test_a_forged_state_deletes_no_topic_that_the_records_do_not_contain() -> None:
    cluster = Cluster()
    stack = Stack.on(cluster, "first")
    stack.up(application())
    cluster.simulated.create("sales-counts-changelog", 4, COMPACTED)
    target = cluster.simulated.topics["sales-counts-changelog"]
    stack.records = {
        "orders": attrs.evolve(
            stack.records["orders"],
            topics={
                target.name: attrs.evolve(
                    stack.records["orders"].topics[CHANGELOG], name=target.name, topic_id=target.topic_id
                )
            },
        )
    }
    (first,) = refusals(stack.plan(RETIRED))
    assert "does not contain it" in (first.found or "")
    stack.records["orders"] = attrs.evolve(stack.records["orders"], retired=True)
    (second,) = refusals(stack.plan())
    assert "was not retired" in (second.found or "")


def test_records_of_a_topic_that_may_lose_them_allow_no_deletion() -> None:
    cluster = Cluster()
    stack = Stack.on(cluster, "first")
    stack.up(application())
    stack.up(RETIRED)
    cluster.simulated.ownership_policy = "delete"
    assert all("cleanup.policy delete" in (each.found or "") for each in refusals(stack.plan()))
    assert len(refusals(stack.plan())) == 2
    cluster.simulated.ownership_policy = ""
    assert all("DescribeConfigs" in (each.found or "") for each in refusals(stack.plan()))


OBSTACLES = ("group", "offsets", "document", "stack", "record", "longer id", "settings", "unread", "other id")


def add_obstacle(cluster: SimulatedCluster, obstacle: str, topic: str) -> None:
    """Change the cluster so that the topic must not be deleted. A document is added by the caller."""
    match obstacle:
        case "group":
            cluster.read_by("audit", topic)
        case "offsets":
            cluster.read_by("export", topic, state="Empty")
        case "stack":
            cluster.ownership.append(recorded("reader", reads=topic))
        case "record":
            cluster.ownership.append(recorded("sales", topic))
        case "longer id":
            cluster.run_group(topic.rpartition("-x-changelog")[0], members=0)
        case "settings":
            cluster.change(topic, config={})
        case "unread":
            cluster.unread_evidence = ("the groups of other clients",)
        case "other id":
            cluster.recreate(topic, is_empty=False)


@pytest.mark.parametrize("step", ["retire", "delete", "leftover retire", "leftover delete"])
def test_each_obstacle_and_each_two_of_them_prevent_each_step_of_a_deletion(step: str) -> None:
    name = "orders-eu-x-changelog"
    before = application(config=MANUAL)
    more = attrs.evolve(before, internal_topics=(*before.internal_topics, changelog(name, 4)))
    retired = attrs.evolve(more, application=attrs.evolve(RETIRED.application, config=MANUAL))
    steps = {
        "retire": (more, [retired]),
        "delete": (retired, []),
        "leftover retire": (before, [with_leftovers(retire=(name,))]),
        "leftover delete": (with_leftovers(retire=(name,)), [with_leftovers(delete=(name,))]),
    }
    first, second = steps[step]
    for one, other in itertools.combinations_with_replacement((*OBSTACLES, ""), 2):
        cluster = SimulatedCluster.set_up(more)
        cluster.up(first)
        for obstacle in {one, other}:
            add_obstacle(cluster, obstacle, name)
        readers = [application(id_="reader", sources={name: 4})] if "document" in {one, other} else []
        planned = cluster.plan(*second, *readers)
        kind = kinds(planned)[name]
        is_touched = kind in (ActionKind.RETIRE, ActionKind.DELETE) and planned.is_applicable
        # The first step records the id that it finds.
        is_clean = {one, other} <= {""} or ({one, other} <= {"", "other id"} and "delete" not in step)
        assert is_touched == is_clean, (one, other, planned.problems)


# Left-over topics


def left_over() -> SimulatedCluster:
    """Return a cluster with a recorded topic that the topology no longer has."""
    before = application(config=MANUAL)
    more = attrs.evolve(before, internal_topics=(*before.internal_topics, changelog(OLD, 4)))
    cluster = SimulatedCluster.set_up(more)
    cluster.up(before)
    return cluster


def test_a_left_over_topic_is_deleted_in_two_steps() -> None:
    cluster = left_over()
    first = cluster.up(with_leftovers(retire=(OLD,)))
    assert kinds(first)[OLD] is ActionKind.RETIRE
    assert OLD in cluster.topics
    assert not cluster.plan(with_leftovers(retire=(OLD,))).has_changes
    second = cluster.up(with_leftovers(delete=(OLD,)))
    assert kinds(second)[OLD] is ActionKind.DELETE
    assert OLD not in cluster.topics
    assert set(cluster.topics) == {CHANGELOG, REPARTITION}
    cluster.up(application(config=MANUAL))
    assert OLD not in cluster.records["orders"].topics


def test_a_left_over_topic_that_no_run_recorded_is_adopted_to_be_deleted() -> None:
    cluster = SimulatedCluster.set_up(application(config=MANUAL))
    cluster.create(OLD, 4, COMPACTED)
    cluster.up(with_leftovers(retire=(OLD,)))
    cluster.up(with_leftovers(delete=(OLD,)))
    assert OLD not in cluster.topics


def test_without_its_entry_a_left_over_topic_stays() -> None:
    """A commit that is reverted must not delete."""
    cluster = left_over()
    cluster.up(with_leftovers(retire=(OLD,)))
    assert kinds(cluster.up(with_leftovers()))[OLD] is ActionKind.KEEP
    (problem,) = refusals(cluster.plan(with_leftovers(delete=(OLD,))))
    assert "no run has retired it" in (problem.found or "")


def test_a_kept_left_over_topic_leaves_the_record() -> None:
    cluster = left_over()
    assert kinds(cluster.up(with_leftovers(keep=(OLD,))))[OLD] is ActionKind.RELEASE
    assert OLD in cluster.topics
    assert OLD not in cluster.records["orders"].topics


def test_a_left_over_topic_that_was_re_created_is_not_deleted() -> None:
    cluster = left_over()
    cluster.up(with_leftovers(retire=(OLD,)))
    cluster.recreate(OLD, is_empty=False)
    (problem,) = refusals(cluster.plan(with_leftovers(delete=(OLD,))))
    assert "topic id id-" in (problem.found or "")


@pytest.mark.parametrize("name", [CHANGELOG, "orders-out"])
def test_a_topic_that_the_topology_has_and_a_sink_are_no_left_overs(name: str) -> None:
    cluster = SimulatedCluster.set_up(application(config=MANUAL, sink=Sink("orders-out", 4)))
    cluster.up(application(config=MANUAL))
    assert [each.topic for each in refusals(cluster.plan(with_leftovers(retire=(name,))))] == [name]


@pytest.mark.parametrize(
    "evidence", ["reader", "own reader", "user", "foreign record", "longer id", "shorter id", "unread"]
)
def test_a_left_over_topic_of_another_client_is_not_retired(evidence: str) -> None:
    name = "orders-x-old-changelog" if evidence == "longer id" else OLD
    cluster = SimulatedCluster.set_up(application(config=MANUAL))
    cluster.create(name, 4, USERS if evidence == "user" else COMPACTED)
    match evidence:
        case "reader":
            cluster.read_by("audit", name)
        case "own reader":
            cluster.read_by("orders", name)
        case "foreign record":
            cluster.ownership.append(recorded("sales", name))
        case "longer id":
            cluster.run_group("orders-x", members=0)
        case "shorter id":
            cluster.topics.pop(name)
            name = "sales-counts-changelog"
            cluster.create(name, 4, COMPACTED)
            cluster.run_group("sales")
        case "unread":
            cluster.unread_evidence = ("the groups of other clients",)
    assert [each.topic for each in refusals(cluster.plan(with_leftovers(retire=(name,))))] == [name]


def test_the_ownership_record_says_which_left_over_topics_are_retired() -> None:
    cluster = Cluster()
    stack = Stack.on(cluster, "first")
    before = application(config=MANUAL)
    stack.up(attrs.evolve(before, internal_topics=(*before.internal_topics, changelog(OLD, 4))))
    stack.up(with_leftovers(retire=(OLD,)))
    (record,) = cluster.ownership.values()
    assert record.retired_topics == {OLD}
    assert not record.is_retired
    cluster.ownership[record.key] = attrs.evolve(record, retired_topics=frozenset())
    (problem,) = refusals(stack.plan(with_leftovers(delete=(OLD,))))
    assert "was not retired" in (problem.found or "")
    cluster.ownership[record.key] = record
    stack.up(with_leftovers(delete=(OLD,)))
    assert OLD not in cluster.simulated.topics


def test_a_running_application_is_a_warning_before_a_left_over_topic_is_deleted() -> None:
    cluster = left_over()
    cluster.run_group("orders")
    planned = cluster.plan(with_leftovers(retire=(OLD,)))
    assert planned.is_applicable
    assert [problem.code for problem in warnings(planned)] == [ProblemCode.GROUP_ACTIVE]


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
