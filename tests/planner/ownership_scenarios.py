"""Plans of applications that another stack manages."""

import attrs

from headwater.model.compiled import CompiledApplication
from headwater.model.records import OWNERSHIP_TOPIC, OwnershipRecord, OwnershipTopic, StackIdentity
from headwater.model.topology import Lifecycle, Setup, Sink
from headwater.model.untrusted import UnreadReason, UnreadRecord
from headwater.planner import Plan, PlanPolicy, plan
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


STACK = StackIdentity("its id", "acme/headwater/production", has_records=True)


def unread(
    reason: UnreadReason, key: tuple[str, str] | None = None, offset: int = 41, last: int | None = None
) -> UnreadRecord:
    return UnreadRecord(
        topic=OWNERSHIP_TOPIC,
        partition=0,
        offset=offset,
        last_offset=offset if last is None else last,
        reason=reason,
        key=key,
    )


def with_topic(topic: OwnershipTopic, *applications: CompiledApplication, is_new: bool = False) -> Plan:
    """Return the plan of a stack whose records are in a topic in this state."""
    cluster = SimulatedCluster() if is_new else SimulatedCluster.set_up(*applications)
    own = tuple(
        OwnershipRecord(application_id=id_, stack=STACK, topics=dict.fromkeys(record.topics, "id"))
        for id_, record in cluster.records.items()
        if (STACK.id, id_) not in {each.key for each in topic.unread}
    )
    snapshot = attrs.evolve(cluster.snapshot, ownership=own, ownership_topic=topic)
    return plan(applications, snapshot, cluster.records, PlanPolicy(stack=STACK))


def unreadable_records() -> Plan:
    records = (
        unread(UnreadReason.TOO_LARGE, offset=3),
        unread(UnreadReason.COMPRESSED, offset=5, last=7),
        unread(UnreadReason.NOT_OURS, ("another id", "sales"), 8),
        unread(UnreadReason.NOT_OURS, ("another id", "orders"), 9),
        unread(UnreadReason.NOT_OURS, ("its id", "orders"), 10),
        unread(UnreadReason.LATER_FORMAT, ("its id", "orders"), 11),
        unread(UnreadReason.LATER_FORMAT, ("another id", "sales"), 12),
        unread(UnreadReason.OTHER_KEY, None, 13),
    )
    return with_topic(OwnershipTopic(unread=records, more_unread=7), application())


def unsafe_records() -> Plan:
    cluster = SimulatedCluster.set_up(application())
    topic = OwnershipTopic({"cleanup.policy": "delete", "compression.type": "producer"}, 3)
    snapshot = attrs.evolve(cluster.snapshot, ownership=(), ownership_topic=topic)
    return plan([application()], snapshot, cluster.records, PlanPolicy(stack=STACK))
