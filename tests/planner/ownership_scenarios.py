"""Plans of applications that another stack manages."""

import attrs

from infra.model.compiled import CompiledApplication
from infra.model.ownership import OwnershipRecord, StackIdentity
from infra.model.topology import Lifecycle, Setup, Sink
from infra.planner import Plan, PlanPolicy, plan
from tests.planner.simulated_cluster import CHANGELOG, REPARTITION, SimulatedCluster, application


def _owned(
    name: str, *applications: CompiledApplication, sink: str | None = None, more: str | None = None
) -> Plan:
    cluster = SimulatedCluster()
    record = OwnershipRecord(
        application_id="orders" if sink is None else "sales",
        stack=StackIdentity("another id", name),
        topics=dict.fromkeys((REPARTITION, CHANGELOG) if sink is None else (sink, more or sink), "id"),
    )
    snapshot = attrs.evolve(cluster.snapshot, ownership=(record,))
    policy = PlanPolicy(stack=StackIdentity("its id", "acme/headwater/production"))
    return plan(applications, snapshot, cluster.records, policy)


def managed_by_another_stack() -> Plan:
    return _owned("acme/headwater/staging", application())


def managed_by_a_lost_state() -> Plan:
    return _owned("acme/headwater/production", application())


def sink_of_another_stack() -> Plan:
    return _owned("acme/sales/production", application(sink=Sink("shared-out", 4)), sink="shared-out")


def taken_over() -> Plan:
    return _owned("acme/headwater/staging", application(setup=Setup(take_over=True)))


def sinks_of_another_stack() -> Plan:
    return _owned("acme/sales/production", application(), sink=REPARTITION, more=CHANGELOG)


def sink_taken_over() -> Plan:
    taking = application(sink=Sink("shared-out", 4), setup=Setup(take_over=True))
    return _owned("acme/sales/production", taking, sink="shared-out")


def _set_up_in_two_stacks(
    compiled: CompiledApplication, owner: str, *, sink: str | None = None, id_: str = "another id"
) -> Plan:
    cluster = SimulatedCluster.set_up(application(sink=Sink("orders-out", 4)))
    topics = {name: topic.topic_id for name, topic in cluster.topics.items() if sink in (None, name)}
    record = OwnershipRecord(
        application_id="orders" if sink is None else "sales",
        stack=StackIdentity(id_, owner),
        topics=topics,
    )
    snapshot = attrs.evolve(cluster.snapshot, ownership=(record,))
    policy = PlanPolicy(stack=StackIdentity("its id", "acme/headwater/production"))
    return plan([compiled], snapshot, cluster.records, policy)


def moved_to_another_stack() -> Plan:
    return _set_up_in_two_stacks(application(sink=Sink("orders-out", 4)), "acme/headwater/staging")


def managed_with_a_copied_state() -> Plan:
    return _set_up_in_two_stacks(application(), "acme/headwater/staging", id_="its id")


def retired_in_one_of_two_stacks() -> Plan:
    retired = application(sink=Sink("orders-out", 4), lifecycle=Lifecycle.RETIRED)
    return _set_up_in_two_stacks(retired, "acme/sales/production", sink=CHANGELOG)


def unnecessary_take_over() -> Plan:
    compiled = application(setup=Setup(take_over=True))
    cluster = SimulatedCluster.set_up(application())
    snapshot = attrs.evolve(cluster.snapshot, ownership=())
    policy = PlanPolicy(stack=StackIdentity("its id", "acme/headwater/production"))
    return plan([compiled], snapshot, cluster.records, policy)
