"""A topic is deleted only if evidence shows whose it is, and that no other client uses it."""

import itertools

import attrs
import pytest

from headwater.model.client_record import client_group
from headwater.model.cluster import UnreadEvidence
from headwater.model.problems import ProblemCode, Severity
from headwater.model.topology import Lifecycle, Sink
from headwater.planner import ActionKind, plan
from tests.planner.evidence_values import (
    CHANGELOG,
    OLD,
    REPARTITION,
    RETIRED,
    USERS,
    recorded,
    refusals,
    with_leftovers,
)
from tests.planner.plans import kinds, warnings
from tests.planner.simulated_cluster import (
    COMPACTED,
    DENIED_GROUPS,
    GROUPS_OF_STOPPED_BROKERS,
    MANUAL,
    NO_LIMITS,
    SimulatedCluster,
    application,
    changelog,
)
from tests.planner.simulated_stacks import Cluster, Stack

_GRANT, _START, _CLEAR = "--for retire", "Start the brokers that are stopped", "Stop the other readers"


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
    cluster.unread_evidence = (DENIED_GROUPS,)
    assert len(refusals(cluster.plan(RETIRED))) == 2
    cluster.unread_evidence = ()
    cluster.up(RETIRED)
    unread = attrs.evolve(cluster.snapshot, evidence=None)
    assert len(refusals(plan((), unread, cluster.records, NO_LIMITS))) == 2


@pytest.mark.parametrize(
    ("is_read", "unread", "steps"),
    [
        pytest.param(True, (), [_CLEAR], id="another reader, named like a permission"),
        pytest.param(False, (DENIED_GROUPS,), [_GRANT], id="no permission"),
        pytest.param(True, (DENIED_GROUPS,), [_GRANT, _CLEAR], id="both"),
        pytest.param(False, (GROUPS_OF_STOPPED_BROKERS,), [_START], id="stopped brokers"),
        pytest.param(False, (DENIED_GROUPS, GROUPS_OF_STOPPED_BROKERS), [_GRANT, _START], id="neither"),
    ],
)
def test_the_fix_of_a_refused_deletion_follows_the_cause(
    *, is_read: bool, unread: tuple[UnreadEvidence, ...], steps: list[str]
) -> None:
    cluster = SimulatedCluster.set_up(application())
    if is_read:
        cluster.read_by("permission audit", CHANGELOG)
    cluster.unread_evidence = unread
    problem = next(each for each in refusals(cluster.plan(RETIRED)) if each.topic == CHANGELOG)
    assert [step for step in (_GRANT, _START, _CLEAR) if step in problem.fix] == steps


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
            cluster.unread_evidence = (DENIED_GROUPS,)
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
            cluster.unread_evidence = (DENIED_GROUPS,)
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
