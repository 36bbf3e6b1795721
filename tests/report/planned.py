"""Example plans by name: one for each kind of action on a topic, and refused plans."""

from collections.abc import Callable, Mapping

import attrs

from headwater.model.problems import Location
from headwater.model.topology import Lifecycle, Sink
from headwater.planner import Plan
from tests.planner.simulated_cluster import AUTOSCALING, SimulatedCluster, application, changelog, repartition

REPARTITION, CHANGELOG = "orders-step1-repartition", "orders-counts-changelog"
_GROWN = {"orders-in": 6}


def first_setup() -> Plan:
    return SimulatedCluster().plan(
        application(sink=Sink("totals", None)), application(id_="audit", stateful=False)
    )


def nothing_to_do() -> Plan:
    return SimulatedCluster.set_up(application()).plan(application())


def expansion_in_waves() -> Plan:
    sink = Sink("totals", None)
    cluster = SimulatedCluster.set_up(application(config=AUTOSCALING, steps=2, sink=sink))
    return cluster.plan(application(config=AUTOSCALING, sources=_GROWN, steps=2, sink=sink))


def adoption() -> Plan:
    cluster = SimulatedCluster()
    cluster.create(REPARTITION, 4, {**application().internal_topics[0].config, "compression.type": "zstd"})
    cluster.create(CHANGELOG, 4, {"cleanup.policy": "compact", "message.timestamp.type": "LogAppendTime"})
    return cluster.plan(application())


def lost_topic_recreated() -> Plan:
    cluster = SimulatedCluster.set_up(application())
    del cluster.topics[CHANGELOG]
    return cluster.plan(application())


def topic_no_longer_declared() -> Plan:
    return SimulatedCluster.set_up(application()).plan(application(stateful=False))


def lifecycles() -> Plan:
    cluster = SimulatedCluster.set_up(*(application(id_=id_) for id_ in ("kept", "loyalty", "audit")))
    cluster.up(
        application(id_="kept"),
        application(id_="loyalty"),
        application(id_="audit", lifecycle=Lifecycle.RETIRED),
    )
    return cluster.plan(application(id_="kept"), application(id_="loyalty", lifecycle=Lifecycle.RELEASED))


def reconfigured_setting() -> Plan:
    cluster = SimulatedCluster.set_up(application())
    cluster.configure(CHANGELOG, cleanup_policy="compact,delete", retention_ms="3600000")
    return cluster.plan(application())


def refused() -> Plan:
    at = Location("orders.yaml", 12, 5, "/topology/2/groupBy")
    topics = [repartition(REPARTITION, 4, at=at), changelog(CHANGELOG, 4)]
    cluster = SimulatedCluster.set_up(application(topics=topics))
    cluster.change(REPARTITION, partitions=8)
    return cluster.plan(application(topics=topics))


def renumbered() -> Plan:
    """A new call before this one changed the generated name index."""
    old = attrs.evolve(
        changelog("orders-KSTREAM-AGGREGATE-STATE-STORE-0000000003-changelog", 4), generated=True
    )
    new = attrs.evolve(
        changelog("orders-KSTREAM-AGGREGATE-STATE-STORE-0000000004-changelog", 4), generated=True
    )
    return SimulatedCluster.set_up(application(topics=[old])).plan(application(topics=[new]))


PLANS: Mapping[str, Callable[[], Plan]] = {
    make.__name__: make
    for make in (
        first_setup,
        nothing_to_do,
        expansion_in_waves,
        adoption,
        lost_topic_recreated,
        topic_no_longer_declared,
        lifecycles,
        reconfigured_setting,
        refused,
        renumbered,
    )
}
