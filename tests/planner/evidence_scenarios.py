"""Plans for the texts about owners of topics, and a plan for each reason to refuse a deletion."""

import attrs

from headwater.model.topology import Leftovers, Lifecycle, Setup
from headwater.planner import Plan
from tests.planner.simulated_cluster import (
    CHANGELOG,
    COMPACTED,
    MANUAL,
    REPARTITION,
    SimulatedCluster,
    application,
)
from tests.planner.simulated_stacks import Cluster, Stack

_OLD = "orders-old-changelog"


def unproven_adoption() -> Plan:
    cluster = SimulatedCluster()
    cluster.create(CHANGELOG, 4, {"cleanup.policy": "delete"})
    return cluster.plan(application())


def adoption_that_removes_data() -> Plan:
    cluster = SimulatedCluster()
    cluster.create(CHANGELOG, 4, {**COMPACTED, "cleanup.policy": "delete", "retention.ms": "-1"})
    return cluster.plan(application())


def retired_topic_in_use() -> Plan:
    reader = application(id_="reader", sources={REPARTITION: 4})
    cluster = SimulatedCluster.set_up(application(), reader)
    cluster.read_by("audit", CHANGELOG)
    return cluster.plan(application(lifecycle=Lifecycle.RETIRED), reader)


def retired_topic_of_another_client() -> Plan:
    cluster = SimulatedCluster.set_up(application(config=MANUAL))
    cluster.change(CHANGELOG, config={"cleanup.policy": "delete"})
    return cluster.plan(application(lifecycle=Lifecycle.RETIRED))


def deletion_that_the_records_do_not_allow() -> Plan:
    stack = Stack.on(Cluster(), "first")
    stack.up(application())
    stack.up(application(lifecycle=Lifecycle.RETIRED))
    old = dict(stack.records)
    stack.up(application())
    stack.records = old
    return stack.plan()


def leftovers_that_are_refused() -> Plan:
    compiled = application(config=MANUAL)
    leftovers = Leftovers(retire=(CHANGELOG, "orders-cdc-changelog"), delete=(_OLD, "orders-gone-changelog"))
    cluster = SimulatedCluster.set_up(compiled)
    cluster.create(_OLD, 4, COMPACTED)
    cluster.create("orders-cdc-changelog", 4)
    changed = attrs.evolve(compiled.application, leftovers=leftovers)
    return cluster.plan(attrs.evolve(compiled, application=changed))


def leftover_of_a_running_application() -> Plan:
    compiled = application(config=MANUAL)
    cluster = SimulatedCluster.set_up(compiled)
    cluster.create(_OLD, 4, COMPACTED)
    cluster.run_group("orders")
    changed = attrs.evolve(compiled.application, leftovers=Leftovers(retire=(_OLD,)))
    return cluster.plan(attrs.evolve(compiled, application=changed))


def id_that_overlaps_with_another_stack() -> Plan:
    cluster = Cluster()
    Stack.on(cluster, "other").up(application(id_="orders", stateful=False))
    return Stack.on(cluster, "first").plan(application(id_="orders-eu"))


def accepted_id_that_overlaps() -> Plan:
    cluster = Cluster()
    Stack.on(cluster, "other").up(application(id_="orders", stateful=False))
    return Stack.on(cluster, "first").plan(application(id_="orders-eu", setup=Setup(allow_id_overlap=True)))
