"""The ownership records that a run writes before and after its changes, and races between two runs."""

import attrs

from headwater.model.records import OwnershipRecord
from headwater.model.topology import Leftovers
from headwater.planner.claims import change_after, change_before, find_race, retract_claims
from headwater.planner.rules.ownership_messages import conflict_problem
from tests.planner.evidence_values import OLD
from tests.planner.simulated_cluster import application, changelog
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


def test_up_records_the_application_with_its_topics(first: Stack, cluster: Cluster) -> None:
    first.up(ORDERS)
    (record,) = cluster.ownership.values()
    ids = {name: topic.topic_id for name, topic in cluster.simulated.topics.items()}
    assert record == OwnershipRecord(
        application_id="orders", stack=first.identity, topics=ids, reads=frozenset({"orders-in"})
    )


def test_a_second_up_writes_no_record(first: Stack) -> None:
    first.up(ORDERS)
    planned = first.plan(ORDERS)
    assert planned.ownership is not None
    assert not change_before(planned, planned.ownership)
    assert not change_after(planned, planned.ownership, first.records)


def test_the_topics_of_before_and_after_are_claimed_during_a_run(first: Stack, cluster: Cluster) -> None:
    first.up(application(stateful=False), application(id_="sales"))
    before = cluster.ownership["first", "orders"]
    del cluster.simulated.topics[REPARTITION]
    topics = [topic for topic in ORDERS.internal_topics if topic.name == CHANGELOG]
    first.begin(application(topics=topics), application(id_="sales"))
    claim = attrs.evolve(before, topics={**before.topics, CHANGELOG: ""})
    assert cluster.ownership["first", "orders"] == claim


def test_the_id_of_a_re_created_topic_is_written_after_the_run(first: Stack, cluster: Cluster) -> None:
    first.up(ORDERS)
    before = dict(cluster.ownership)
    del cluster.simulated.topics[CHANGELOG]
    first.begin(ORDERS)
    assert cluster.ownership == before
    first.up(ORDERS)
    ids = cluster.ownership["first", "orders"].topics
    assert ids[CHANGELOG] == cluster.simulated.topics[CHANGELOG].topic_id


def test_an_application_is_retired_when_the_first_step_has_finished(first: Stack, cluster: Cluster) -> None:
    """A record of a retired application ends with its topics, so it has to wait until the state says it."""
    first.up(ORDERS)
    found = []
    for run, document in (
        (first.begin, RETIRED),
        (first.up, RETIRED),
        (first.begin, RETIRED),
        (first.begin, ORDERS),
    ):
        run(document)
        found.append(cluster.ownership["first", "orders"].is_retired)
    assert found == [False, True, True, False]


def test_an_application_after_a_released_one_is_claimed(first: Stack, cluster: Cluster) -> None:
    first.up(ORDERS)
    first.begin(RELEASED, application(id_="sales"))
    assert owners(cluster) == {"orders": {"first"}, "sales": {"first"}}


def test_a_run_keeps_the_records_of_a_simultaneous_run_of_a_stack_with_the_same_name(
    cluster: Cluster,
) -> None:
    one, other = Stack.on(cluster, "first", "one"), Stack.on(cluster, "first", "other")
    one.begin(ORDERS)
    planned = other.up(application(id_="sales"))
    assert owners(cluster) == {"orders": {"one"}, "sales": {"other"}}
    one.up(ORDERS)
    assert planned.ownership is not None
    cluster.write(change_after(planned, planned.ownership, other.records))
    assert owners(cluster) == {"orders": {"one"}, "sales": {"other"}}
    assert conflicts(other.plan(application(id_="sales"), ORDERS))


def test_renaming_moves_the_record(first: Stack, cluster: Cluster) -> None:
    first.up(ORDERS)
    first.up(application(id_="sales", renamed_from="orders"))
    assert owners(cluster) == {"sales": {"first"}}


def test_of_two_stacks_that_claim_at_the_same_time_none_continues_unnoticed(
    first: Stack, second: Stack, cluster: Cluster
) -> None:
    plans = [(stack, stack.plan(ORDERS)) for stack in (first, second)]
    for stack, planned in plans:
        assert planned.ownership is not None
        change = change_before(planned, planned.ownership)
        cluster.write(change)
        now = planned.ownership.with_foreign_records(tuple(cluster.ownership.values()))
        lost = find_race(change, planned.ownership, now)
        assert bool(lost) is (stack is second)
        if lost:
            cluster.write(retract_claims(change, planned.ownership))
    assert owners(cluster) == {"orders": {"first"}}


def test_a_record_that_is_taken_over_is_no_other_claim(first: Stack, second: Stack) -> None:
    first.up(ORDERS)
    planned = second.plan(TAKING_OVER)
    assert planned.ownership is not None
    change = change_before(planned, planned.ownership)
    assert not find_race(change, planned.ownership, planned.ownership)
    [conflict] = planned.ownership.find_conflicts("orders", [])
    assert conflict_problem(conflict, planned.ownership).fix.startswith("Declare it in one stack only.")


def test_a_topic_that_is_retired_while_it_is_taken_over_is_claimed(
    first: Stack, second: Stack, cluster: Cluster
) -> None:
    """Otherwise the second step of its deletion would find it in no record."""
    first.up(attrs.evolve(ORDERS, internal_topics=(*ORDERS.internal_topics, changelog(OLD, 4))))
    leftovers = Leftovers((OLD,), (), ())
    retiring = attrs.evolve(TAKING_OVER.application, leftovers=leftovers)
    second.up(attrs.evolve(TAKING_OVER, application=retiring))
    (record,) = cluster.ownership.values()
    assert record.stack == second.identity
    assert record.retired_topics == {OLD}
    assert record.topics[OLD] == cluster.simulated.topics[OLD].topic_id
    deleting = attrs.evolve(ORDERS.application, leftovers=Leftovers((), (OLD,), ()))
    second.up(attrs.evolve(ORDERS, application=deleting))
    assert OLD not in cluster.simulated.topics
