"""Plans worth a text, by name: one for each thing that can happen to a topic, one for each refusal."""

from collections.abc import Callable, Mapping

import attrs

from infra.model.problems import Location
from infra.model.topology import Lifecycle, Setup, Sink
from infra.planner import Plan, PlanPolicy
from tests.planner.world import AUTOSCALING, MANUAL, World, application, changelog, repartition

REPARTITION, CHANGELOG = "orders-step1-repartition", "orders-counts-changelog"
_GROWN = {"orders-in": 6}


def first_setup() -> Plan:
    return World().plan(application(sink=Sink("totals", None)), application(id_="audit", stateful=False))


def nothing_to_do() -> Plan:
    return World.set_up(application()).plan(application())


def expansion_in_waves() -> Plan:
    sink = Sink("totals", None)
    world = World.set_up(application(config=AUTOSCALING, stages=2, sink=sink))
    return world.plan(application(config=AUTOSCALING, sources=_GROWN, stages=2, sink=sink))


def adoption() -> Plan:
    world = World()
    world.create(REPARTITION, 4, {**application().internal_topics[0].config, "compression.type": "zstd"})
    world.create(CHANGELOG, 4, {"cleanup.policy": "delete"})
    return world.plan(application())


def lost_topic_made_anew() -> Plan:
    world = World.set_up(application())
    del world.topics[CHANGELOG]
    return world.plan(application())


def topic_that_nobody_wants_any_more() -> Plan:
    return World.set_up(application()).plan(application(stateful=False))


def lifecycles() -> Plan:
    world = World.set_up(*(application(id_=id_) for id_ in ("kept", "loyalty", "audit")))
    world.up(
        application(id_="kept"),
        application(id_="loyalty"),
        application(id_="audit", lifecycle=Lifecycle.RETIRED),
    )
    return world.plan(application(id_="kept"), application(id_="loyalty", lifecycle=Lifecycle.RELEASED))


def internal_topics_already_setup() -> Plan:
    world = World()
    for topic in application().internal_topics:
        world.create(topic.name, topic.partitions, topic.config)
    return world.plan(application(config=MANUAL))


def missing_internal_topics_incomplete() -> Plan:
    world = World()
    world.create(REPARTITION, 4)
    return world.plan(application(config=MANUAL))


def missing_internal_topics_lost() -> Plan:
    world = World.set_up(application(config=MANUAL))
    del world.topics[CHANGELOG]
    return world.plan(application(config=MANUAL))


def missing_internal_topics_created_anew() -> Plan:
    world = World.set_up(application(config=MANUAL))
    world.recreate(CHANGELOG, is_empty=True)
    return world.plan(application(config=MANUAL))


def missing_source_topic() -> Plan:
    return World().plan(attrs.evolve(application(topics=()), missing_sources=("orders-in",)))


def misconfigured_internal_topic() -> Plan:
    world = World.set_up(application(config=MANUAL))
    world.configure(CHANGELOG, cleanup_policy="delete")
    return world.plan(application(config=MANUAL))


def misconfigured_internal_topic_put_right() -> Plan:
    world = World.set_up(application())
    world.configure(CHANGELOG, cleanup_policy="compact,delete", retention_ms="3600000")
    return world.plan(application())


def source_topics_expanded() -> Plan:
    return World.set_up(application()).plan(application(sources=_GROWN))


def over_partitioned_internal_topic() -> Plan:
    at = Location("orders.yaml", 12, 5, "/topology/2/groupBy")
    topics = [repartition(REPARTITION, 4, at=at), changelog(CHANGELOG, 4)]
    world = World.set_up(application(topics=topics))
    world.change(REPARTITION, partitions=8)
    return world.plan(application(topics=topics))


def unsafe_expansion() -> Plan:
    config = {"partition.autoscaling.enabled": "true"}
    return World.set_up(application(config=config)).plan(application(config=config, sources=_GROWN))


def application_removed() -> Plan:
    return World.set_up(application(), application(id_="audit")).plan(application())


def group_active() -> Plan:
    world = World.set_up(application(config=MANUAL))
    del world.topics[CHANGELOG]
    world.run_group("orders")
    return world.plan(application(config=MANUAL, setup=Setup(reinitialize=True)))


def wrong_cluster() -> Plan:
    return World().plan(application(), policy=PlanPolicy(cluster_id="5L6g3nShT-eMCtK--X86sw"))


def blast_radius() -> Plan:
    return World().plan(application(), policy=PlanPolicy(max_new_topics=1, max_added_partitions=6))


def replication_factor() -> Plan:
    world = World(brokers=1)
    return world.plan(application(topics=[repartition(REPARTITION, 4, replication_factor=3)]))


def timeout() -> Plan:
    return World().plan(application(setup=Setup(timeout_ms=60_000)), elapsed_ms=75_250)


def conflicting_partitions() -> Plan:
    sink = Sink("totals", 4)
    return World().plan(application(sink=sink), application(id_="audit", sink=sink))


def config_has_no_effect() -> Plan:
    world = World.set_up(application(config=MANUAL))
    return world.plan(application(config=MANUAL, setup=Setup(reinitialize=True)))


def renumbered() -> Plan:
    """A call was added before: the generated index shifted."""
    old = attrs.evolve(
        changelog("orders-KSTREAM-AGGREGATE-STATE-STORE-0000000003-changelog", 4), generated=True
    )
    new = attrs.evolve(
        changelog("orders-KSTREAM-AGGREGATE-STATE-STORE-0000000004-changelog", 4), generated=True
    )
    return World.set_up(application(topics=[old])).plan(application(topics=[new]))


PLANS: Mapping[str, Callable[[], Plan]] = {
    make.__name__: make
    for make in (
        first_setup,
        nothing_to_do,
        expansion_in_waves,
        adoption,
        lost_topic_made_anew,
        topic_that_nobody_wants_any_more,
        lifecycles,
        internal_topics_already_setup,
        missing_internal_topics_incomplete,
        missing_internal_topics_lost,
        missing_internal_topics_created_anew,
        missing_source_topic,
        misconfigured_internal_topic,
        misconfigured_internal_topic_put_right,
        source_topics_expanded,
        over_partitioned_internal_topic,
        unsafe_expansion,
        application_removed,
        group_active,
        wrong_cluster,
        blast_radius,
        replication_factor,
        timeout,
        conflicting_partitions,
        config_has_no_effect,
        renumbered,
    )
}
