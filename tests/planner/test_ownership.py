"""Two stacks on one cluster: who may change, take over and delete which topics."""

import attrs
import pytest

from headwater.model.problems import Location, ProblemCode, Severity
from headwater.model.records import OwnershipRecord, StackIdentity
from headwater.model.topology import Setup, Sink, StackSwitch
from headwater.planner import ActionKind, PlanPolicy, plan
from headwater.planner.claims import change_after, change_before, find_race, retract_claims
from headwater.planner.ownership import Ownership
from tests.planner.simulated_cluster import SimulatedCluster, application
from tests.planner.simulated_stacks import (
    CHANGELOG,
    ORDERS,
    RELEASED,
    REPARTITION,
    RETIRED,
    TAKING_OVER,
    Cluster,
    Stack,
    conflicts,
    owners,
)


def test_a_second_stack_is_refused(first: Stack, second: Stack) -> None:
    first.up(ORDERS)
    (problem,) = conflicts(second.plan(ORDERS))
    assert problem.application == "orders"
    assert "organization/headwater/first" in (problem.found or "")
    assert problem.location == ORDERS.application.at
    assert not first.plan(ORDERS).problems


def test_a_second_stack_is_refused_before_the_first_has_finished(first: Stack, second: Stack) -> None:
    first.begin(ORDERS)
    assert conflicts(second.plan(ORDERS))


def test_an_application_without_internal_topics_has_one_owner_too(first: Stack, second: Stack) -> None:
    stateless = application(topics=())
    first.up(stateless)
    assert conflicts(second.plan(stateless))


def test_other_applications_are_not_affected(first: Stack, second: Stack) -> None:
    first.up(ORDERS)
    second.up(application(id_="sales"))
    assert not first.plan(ORDERS).problems


def test_a_sink_has_one_owner(first: Stack, second: Stack) -> None:
    sink = Sink("shared-out", 4)
    first.up(application(sink=sink))
    (problem,) = conflicts(second.plan(application(id_="sales", sink=sink)))
    assert (problem.application, problem.topic) == ("sales", "shared-out")


def test_an_application_that_is_released_can_move(first: Stack, second: Stack, cluster: Cluster) -> None:
    first.up(ORDERS)
    first.up(RELEASED)
    assert not cluster.ownership
    assert not second.up(ORDERS).problems
    assert owners(cluster) == {"orders": {"second"}}
    # The document may still be in the first stack.
    assert not first.plan(RELEASED).problems


def test_take_over_is_explicit_and_refuses_the_other_stack(
    first: Stack, second: Stack, cluster: Cluster
) -> None:
    first.up(ORDERS)
    planned = second.up(TAKING_OVER)
    assert len(conflicts(planned, Severity.WARNING)) == 1
    assert owners(cluster) == {"orders": {"second"}}
    (problem,) = conflicts(first.plan(ORDERS))
    assert "lifecycle: released" in problem.fix
    first.up(RELEASED)
    assert owners(cluster) == {"orders": {"second"}}


def test_a_sink_can_be_taken_over(first: Stack, second: Stack, cluster: Cluster) -> None:
    sink = Sink("shared-out", 4)
    first.up(application(sink=sink))
    second.up(application(id_="sales", sink=sink, setup=Setup(take_over=True)))
    assert "shared-out" not in cluster.ownership["first", "orders"].topics
    assert conflicts(first.plan(application(sink=sink)))
    # Without the sink in its document, the first stack continues and does not claim it again.
    first.up(ORDERS)
    assert "shared-out" not in cluster.ownership["first", "orders"].topics
    assert not second.plan(application(id_="sales", sink=sink)).problems


def test_take_over_that_is_left_on_is_reported(first: Stack) -> None:
    first.up(ORDERS)
    assert [problem.code for problem in first.plan(TAKING_OVER).problems] == [
        ProblemCode.CONFIG_HAS_NO_EFFECT
    ]


def test_take_over_that_is_set_in_the_stack_is_removed_there(first: Stack, second: Stack) -> None:
    switch = StackSwitch("headwater:setup.orders.takeOver", Location("Pulumi.prod.yaml"), "Run `rm`.")
    taking = application(setup=Setup(take_over=True, in_stack={"takeOver": switch}))
    first.up(ORDERS)
    (taken,) = conflicts(second.up(taking), Severity.WARNING)
    assert taken.fix.endswith("Then run `rm`.")
    (unneeded,) = second.plan(taking).problems
    assert (unneeded.fix, unneeded.location) == (switch.removal, switch.at)
    assert switch.label in (unneeded.found or "")


@pytest.mark.parametrize("is_second_step", [False, True])
def test_nothing_is_deleted_that_another_stack_records(
    first: Stack, second: Stack, *, is_second_step: bool
) -> None:
    first.up(ORDERS)
    if is_second_step:
        first.up(RETIRED)
    second.up(TAKING_OVER)
    assert conflicts(first.plan() if is_second_step else first.plan(RETIRED))


def test_topics_that_are_about_to_be_deleted_cannot_be_adopted(
    first: Stack, second: Stack, cluster: Cluster
) -> None:
    first.up(ORDERS)
    first.up(RETIRED)
    planned = first.begin()
    assert {action.kind for action in planned.actions} == {ActionKind.DELETE}
    assert planned.ownership is not None
    cluster.write(change_after(planned, planned.ownership, {}))
    # Pulumi deletes the topics after the end of the program.
    assert conflicts(second.plan(ORDERS))
    for name in (REPARTITION, CHANGELOG):
        del cluster.simulated.topics[name]
    assert not second.up(ORDERS).problems


def test_a_record_holds_as_long_as_the_ids_of_its_topics_are_not_read(first: Stack, cluster: Cluster) -> None:
    first.up(ORDERS)
    first.up(RETIRED)
    (record,) = cluster.ownership.values()
    other = StackIdentity("other id", first.identity.name)
    snapshot, sales = cluster.simulated.snapshot, frozenset({"sales"})

    def ownership(topic_id: str) -> Ownership:
        topics = {name: attrs.evolve(topic, topic_id=topic_id) for name, topic in snapshot.topics.items()}
        return Ownership.from_records([record], attrs.evolve(snapshot, topics=topics), other, sales)

    assert (ownership("").foreign, ownership("").outdated) == ((record,), ())
    assert (ownership("another id").foreign, ownership("another id").outdated) == ((), (record.key,))


@pytest.mark.parametrize(
    ("recorded", "is_valid"),
    [
        pytest.param({CHANGELOG: "live", REPARTITION: "live"}, True, id="all topics exist"),
        pytest.param({CHANGELOG: "deleted", REPARTITION: "live"}, True, id="one was re-created"),
        pytest.param({"gone": "deleted", REPARTITION: "live"}, True, id="one is gone"),
        pytest.param({"gone": "deleted", REPARTITION: ""}, True, id="the id of one was not read"),
        pytest.param({"gone": "", CHANGELOG: "deleted"}, False, id="none exists"),
        pytest.param({}, False, id="without topics"),
    ],
)
def test_the_record_of_a_retired_application_holds_until_its_last_topic_is_gone(
    first: Stack, cluster: Cluster, recorded: dict[str, str], *, is_valid: bool
) -> None:
    first.up(ORDERS)
    snapshot = cluster.simulated.snapshot
    live = {name: topic.topic_id for name, topic in snapshot.topics.items()}
    ids = {name: live[name] if id_ == "live" else id_ for name, id_ in recorded.items()}
    record = OwnershipRecord(application_id="orders", stack=first.identity, topics=ids, is_retired=True)
    found = Ownership.from_records([record], snapshot, StackIdentity("other", "a/b/other"), frozenset())
    assert (found.foreign, found.expired) == (((record,), ()) if is_valid else ((), (record,)))


def test_what_is_left_of_a_retired_application_is_removed_later(first: Stack, cluster: Cluster) -> None:
    first.up(ORDERS)
    first.up(RETIRED)
    first.up()
    assert owners(cluster) == {"orders": {"first"}}
    first.up()
    assert not cluster.ownership


def test_it_is_removed_too_when_the_state_with_the_id_is_empty(first: Stack, cluster: Cluster) -> None:
    first.up(ORDERS)
    first.up(RETIRED)
    first.up()
    Stack.on(cluster, "first", "new id").up()
    assert not cluster.ownership


def test_a_killed_first_run_can_be_repeated_without_its_state(cluster: Cluster) -> None:
    Stack.on(cluster, "first", "lost id").begin(ORDERS)
    again = Stack.on(cluster, "first", "new id")
    assert not again.begin(ORDERS).problems
    assert owners(cluster) == {"orders": {"new id"}}
    assert not again.up(ORDERS).problems
    assert owners(cluster) == {"orders": {"new id"}}


@pytest.mark.parametrize("is_reversed", [False, True])
def test_the_record_with_the_id_of_the_stack_wins(*, is_reversed: bool) -> None:
    stack = StackIdentity("its id", "organization/headwater/first")
    lost = StackIdentity("lost id", "organization/headwater/first")
    records = [
        OwnershipRecord(application_id="orders", stack=stack, is_finished=False),
        OwnershipRecord(application_id="orders", stack=lost, is_finished=False),
    ]
    if is_reversed:
        records.reverse()
    found = Ownership.from_records(records, SimulatedCluster().snapshot, stack, frozenset({"orders"}))
    assert [record.stack for record in found.own.values()] == [stack]
    assert found.outdated == (("lost id", "orders"),)


def test_an_expired_record_is_no_conflict_when_the_records_are_read_again(second: Stack) -> None:
    other = StackIdentity("first", "organization/headwater/first")
    expired = OwnershipRecord(application_id="orders", stack=other, topics={"gone": "id"}, is_retired=True)
    found = Ownership.from_records(
        [expired], SimulatedCluster().snapshot, second.identity, frozenset({"orders"})
    )
    assert (found.foreign, found.expired) == ((), (expired,))
    assert found.with_foreign_records([expired]).foreign == ()
    valid = attrs.evolve(expired, is_retired=False)
    assert found.with_foreign_records([valid]).foreign == (valid,)


def test_a_stack_with_the_same_name_and_another_state_is_refused(first: Stack, cluster: Cluster) -> None:
    first.up(ORDERS)
    again = Stack.on(cluster, "first", "new id")
    (problem,) = conflicts(again.plan(ORDERS))
    assert "same name" in (problem.found or "")
    assert "state" in problem.fix
    again.up(TAKING_OVER)
    assert owners(cluster) == {"orders": {"new id"}}


def test_a_preview_before_the_first_up_finds_the_owner(first: Stack, cluster: Cluster) -> None:
    first.up(ORDERS)
    assert conflicts(Stack.on(cluster, "second", "").plan(ORDERS))


def test_a_stack_from_before_the_records_is_recorded_by_its_next_up(
    first: Stack, second: Stack, cluster: Cluster
) -> None:
    first.up(ORDERS)
    cluster.ownership.clear()
    assert not first.up(ORDERS).problems
    assert conflicts(second.plan(ORDERS))


def test_a_retracted_claim_restores_the_record_of_before(
    first: Stack, second: Stack, cluster: Cluster
) -> None:
    sink = Sink("shared-out", 4)
    first.up(ORDERS)
    before = cluster.ownership["first", "orders"]
    planned = first.plan(application(sink=sink), application(id_="returns"))
    assert planned.ownership is not None
    change = change_before(planned, planned.ownership)
    cluster.write(change)
    second.simulate_claim(sink)
    now = planned.ownership.with_foreign_records(tuple(cluster.ownership.values()))
    (conflict,) = find_race(change, planned.ownership, now)
    assert (conflict.application_id, conflict.topics) == ("orders", ("shared-out",))
    cluster.write(retract_claims(change, planned.ownership))
    assert cluster.ownership["first", "orders"] == before
    assert owners(cluster) == {"orders": {"first"}, "sales": {"second"}}


def test_a_plan_without_records_has_no_owners(first: Stack, cluster: Cluster) -> None:
    first.up(ORDERS)
    unread = cluster.simulated.snapshot
    second = plan([ORDERS], unread, {}, PlanPolicy(stack=StackIdentity("second", "second")))
    assert second.ownership is None
    assert not conflicts(second)


def copied(first: Stack) -> Stack:
    """Return another stack with a copy of the state of the first one: it has the same id."""
    second = Stack.on(first.cluster, "second", first.identity.id)
    second.records = dict(first.records)
    return second


def test_a_copied_state_deletes_no_topic_of_the_stack_that_it_was_copied_from(first: Stack) -> None:
    first.up(ORDERS)
    second = copied(first)
    (problem,) = conflicts(second.plan(RETIRED))
    assert "If this state is a copy" in problem.fix
    first.up(RETIRED)
    second.records = dict(first.records)
    assert conflicts(second.plan())
    second.up(RELEASED)
    second.up()
    assert first.cluster.simulated.topics.keys() == {CHANGELOG, REPARTITION}


def test_a_renamed_stack_takes_its_applications_over(first: Stack) -> None:
    first.up(ORDERS)
    renamed = copied(first)
    renamed.up(TAKING_OVER)
    (record,) = first.cluster.ownership.values()
    assert record.stack == renamed.identity
    assert record.is_finished
    assert not renamed.plan(ORDERS).problems
    assert conflicts(first.plan(ORDERS))
