"""A plan for the text of each error and warning."""

from collections.abc import Callable

import attrs

from headwater.model.cluster import LiveGroup, RegisteredBroker, RegisteredBrokers
from headwater.model.compiled import CompiledApplication
from headwater.model.nodes import ChangelogKind
from headwater.model.problems import Location
from headwater.model.topology import Lifecycle, Protocol, Setup, Sink, StackSwitch
from headwater.planner import Plan, PlanPolicy
from tests.planner.evidence_scenarios import (
    accepted_id_that_overlaps,
    adoption_that_removes_data,
    deletion_that_the_records_do_not_allow,
    id_that_overlaps_with_another_stack,
    leftover_of_a_running_application,
    leftovers_that_are_refused,
    retired_topic_in_use,
    retired_topic_of_another_client,
    unproven_adoption,
)
from tests.planner.ownership_scenarios import (
    managed_by_a_lost_state,
    managed_by_another_stack,
    managed_with_a_copied_state,
    moved_to_another_stack,
    retired_in_one_of_two_stacks,
    sink_of_another_stack,
    sink_taken_over,
    sinks_of_another_stack,
    taken_over,
    unnecessary_take_over,
    unreadable_records,
    unsafe_records,
)
from tests.planner.simulated_cluster import (
    CHANGELOG,
    MANUAL,
    REPARTITION,
    SimulatedCluster,
    application,
    changelog,
    limits,
    repartition,
)

AUTOSCALING = {"partition.autoscaling.enabled": "true"}
Scenario = Callable[[], Plan]


def missing_source_topic() -> Plan:
    return SimulatedCluster().plan(attrs.evolve(application(topics=()), missing_sources=("orders-in",)))


def existing_internal_topics() -> Plan:
    cluster = SimulatedCluster()
    for topic in application().internal_topics:
        cluster.create(topic.name, topic.partitions, topic.config)
    return cluster.plan(application(config=MANUAL))


def _harmful_default(config: dict[str, str]) -> Plan:
    cluster = SimulatedCluster.set_up(application(config=config))
    cluster.topic_defaults = {"retention.bytes": "1073741824"}
    return cluster.plan(application(config=config))


def harmful_default() -> Plan:
    return _harmful_default({})


def harmful_default_manual() -> Plan:
    return _harmful_default(MANUAL)


def harmful_setting() -> Plan:
    cluster = SimulatedCluster.set_up(application())
    cluster.topic_defaults = {"max.message.bytes": "1048588"}
    cluster.change(CHANGELOG, config={**cluster.topics[CHANGELOG].config, "max.message.bytes": "1000"})
    return cluster.plan(application())


def incomplete_setup() -> Plan:
    cluster = SimulatedCluster()
    cluster.create(REPARTITION, 4, application().internal_topics[0].config)
    return cluster.plan(application(config=MANUAL))


def _lost(config: dict[str, str]) -> Plan:
    compiled = application(config=config, sink=Sink("orders-out", 4))
    cluster = SimulatedCluster.set_up(compiled)
    del cluster.topics[CHANGELOG]
    del cluster.topics["orders-out"]
    return cluster.plan(compiled)


def lost_topics_manual() -> Plan:
    return _lost(MANUAL)


def lost_topics_automatic() -> Plan:
    return _lost({})


def _replaced(config: dict[str, str]) -> Plan:
    compiled = application(config=config, sink=Sink("orders-out", 4))
    cluster = SimulatedCluster.set_up(compiled)
    cluster.recreate(CHANGELOG, is_empty=True)
    cluster.recreate(REPARTITION, is_empty=False)
    cluster.recreate("orders-out", is_empty=False)
    return cluster.plan(compiled)


def replaced_topics_manual() -> Plan:
    return _replaced(MANUAL)


def replaced_topics_automatic() -> Plan:
    return _replaced({})


def source_topics_expanded() -> Plan:
    pinned = attrs.evolve(repartition("orders-pinned-repartition", 3), pinned=True)
    cluster = SimulatedCluster.set_up(application(topics=[repartition(REPARTITION, 4), pinned]))
    topics = [repartition(REPARTITION, 6), attrs.evolve(pinned, partitions=5)]
    return cluster.plan(application(topics=topics))


def over_partitioned() -> Plan:
    sink = Sink("orders-out", 4)
    cluster = SimulatedCluster.set_up(application(sources={"orders-in": 6}, sink=sink, stateful=False))
    cluster.change("orders-out", partitions=5)
    cluster.create(CHANGELOG, 8, application().internal_topics[1].config)
    return cluster.plan(application(sink=sink))


def explicit_count_lowered() -> Plan:
    pinned = attrs.evolve(repartition("orders-pinned-repartition", 6), pinned=True)
    cluster = SimulatedCluster.set_up(application(topics=[pinned]))
    return cluster.plan(application(topics=[attrs.evolve(pinned, partitions=4)]))


def missing_sink() -> Plan:
    written = application()
    last = written.subtopologies[-1]
    parts = (*written.subtopologies[:-1], attrs.evolve(last, sinks=("revenue",)))
    return SimulatedCluster().plan(attrs.evolve(written, subtopologies=parts))


def group_protocol_missing() -> Plan:
    cluster = SimulatedCluster()
    cluster.group_protocols = frozenset({"classic", "consumer"})
    plain = application()
    streams = attrs.evolve(plain.application, protocol=Protocol.STREAMS)
    return cluster.plan(attrs.evolve(plain, application=streams))


def group_protocol_not_enabled() -> Plan:
    cluster = SimulatedCluster()
    cluster.group_protocols = frozenset({"classic", "consumer", "streams"})
    cluster.features = {"streams.version": 0}
    plain = application()
    streams = attrs.evolve(plain.application, protocol=Protocol.STREAMS)
    return cluster.plan(attrs.evolve(plain, application=streams))


def unsafe_expansion() -> Plan:
    cluster = SimulatedCluster.set_up(application(config=AUTOSCALING))
    return cluster.plan(application(config=AUTOSCALING, sources={"orders-in": 6}))


def _misconfigured(config: dict[str, str]) -> Plan:
    topics = [
        repartition(REPARTITION, 4),
        changelog(CHANGELOG, 4),
        changelog("orders-hourly-changelog", 4, ChangelogKind.WINDOWED),
        changelog("orders-prices-changelog", 4, ChangelogKind.VERSIONED),
    ]
    compiled = application(config=config, topics=topics)
    cluster = SimulatedCluster.set_up(compiled)
    cluster.configure(REPARTITION, retention_ms="604800000", retention_bytes="1073741824")
    cluster.configure(REPARTITION, message_timestamp_type="LogAppendTime")
    cluster.configure(CHANGELOG, cleanup_policy="compact,delete")
    cluster.configure("orders-hourly-changelog", retention_ms="3600000")
    cluster.configure("orders-prices-changelog", min_compaction_lag_ms="0")
    return cluster.plan(compiled)


def misconfigured_manual() -> Plan:
    return _misconfigured(MANUAL)


def misconfigured_automatic() -> Plan:
    return _misconfigured({})


def replication() -> Plan:
    topics = [repartition(REPARTITION, 4, replication_factor=5), changelog(CHANGELOG, 4)]
    cluster = SimulatedCluster(default_min_insync_replicas=4)
    cluster.create("orders-out", 4, replication_factor=1)
    return cluster.plan(application(topics=topics, sink=Sink("orders-out", 4)))


def unavailable() -> Plan:
    cluster = SimulatedCluster.set_up(application(sink=Sink("orders-out", 4)))
    cluster.create("orders-in", 4)
    cluster.change("orders-in", leaderless=2, in_sync=0)
    cluster.configure(REPARTITION, min_insync_replicas="2")
    for name, count in ((REPARTITION, 1), (CHANGELOG, 1), ("orders-out", 2)):
        cluster.change(name, in_sync=count)
    return cluster.plan(application(sink=Sink("orders-out", 4)))


def replicas_on_wrong_brokers() -> Plan:
    cluster = SimulatedCluster.set_up(application())
    brokers = {number: RegisteredBroker(id=number, rack=rack) for number, rack in enumerate("aab", start=1)}
    cluster.registered = RegisteredBrokers(brokers, with_fenced=True)
    cluster.change(CHANGELOG, in_sync=2, silent=frozenset({7}))
    cluster.change(REPARTITION, racks=1)
    return cluster.plan(application())


def changed_replication_factor() -> Plan:
    def declared(more: int, fewer: int) -> tuple[CompiledApplication, ...]:
        sales = application(id_="sales", sink=Sink("sales-out", 4, replication_factor=fewer))
        return application(sink=Sink("orders-out", 4, replication_factor=more)), sales

    return SimulatedCluster.set_up(*declared(1, 3)).plan(*declared(3, 2))


def _renumbered(config: dict[str, str]) -> Plan:
    def compiled(index: int) -> CompiledApplication:
        name = f"orders-KSTREAM-AGGREGATE-STATE-STORE-{index:010}-changelog"
        return application(config=config, topics=[attrs.evolve(changelog(name, 4), generated=True)])

    return SimulatedCluster.set_up(compiled(3)).plan(compiled(5))


def renumbered_manual() -> Plan:
    return _renumbered(MANUAL)


def renumbered_automatic() -> Plan:
    return _renumbered({})


def group_active() -> Plan:
    compiled = application(config=MANUAL, setup=Setup(reinitialize=True))
    cluster = SimulatedCluster.set_up(compiled)
    del cluster.topics[CHANGELOG]
    cluster.run_group("orders")
    return cluster.plan(compiled)


def group_active_while_retired() -> Plan:
    cluster = SimulatedCluster.set_up(application())
    cluster.run_group("orders")
    return cluster.plan(application(lifecycle=Lifecycle.RETIRED))


def re_created_before_retiring() -> Plan:
    cluster = SimulatedCluster.set_up(application())
    cluster.recreate(CHANGELOG, is_empty=False)
    return cluster.plan(application(lifecycle=Lifecycle.RETIRED))


def re_created_while_retired() -> Plan:
    cluster = SimulatedCluster.set_up(application())
    cluster.up(application(lifecycle=Lifecycle.RETIRED))
    cluster.recreate(CHANGELOG, is_empty=False)
    return cluster.plan()


def group_of_the_streams_protocol() -> Plan:
    compiled = application(config=MANUAL, setup=Setup(reinitialize=True))
    retired = application(id_="sales")
    cluster = SimulatedCluster.set_up(compiled, retired)
    del cluster.topics[CHANGELOG]
    cluster.run_group("orders", members=None)
    cluster.run_group("sales", members=None)
    return cluster.plan(compiled, application(id_="sales", lifecycle=Lifecycle.RETIRED))


def group_without_coordinator() -> Plan:
    compiled = application(config=MANUAL, setup=Setup(reinitialize=True))
    retired = application(id_="sales")
    cluster = SimulatedCluster.set_up(compiled, retired)
    del cluster.topics[CHANGELOG]
    cluster.groups |= {id_: LiveGroup.without_coordinator(id_) for id_ in ("orders", "sales")}
    return cluster.plan(compiled, application(id_="sales", lifecycle=Lifecycle.RETIRED))


def unnecessary_reinitialize() -> Plan:
    compiled = application(config=MANUAL, setup=Setup(reinitialize=True))
    return SimulatedCluster.set_up(compiled).plan(compiled)


def reinitialize_left_in_the_stack() -> Plan:
    switch = StackSwitch(
        "headwater:setup.orders.reinitialize",
        Location("Pulumi.prod.yaml", pointer="/config/headwater:setup"),
        "Run `pulumi config rm --path 'headwater:setup.orders.reinitialize'`.",
    )
    setup = Setup(reinitialize=True, in_stack={"reinitialize": switch})
    compiled = application(config=MANUAL, setup=setup)
    return SimulatedCluster.set_up(compiled).plan(compiled)


def unnecessary_unsafe_expansion() -> Plan:
    compiled = application(setup=Setup(allow_unsafe_expansion=True))
    return SimulatedCluster.set_up(compiled).plan(compiled)


def application_removed() -> Plan:
    return SimulatedCluster.set_up(application()).plan()


def stateless_application_removed() -> Plan:
    return SimulatedCluster.set_up(application(topics=())).plan()


def wrong_cluster() -> Plan:
    return SimulatedCluster().plan(application(), policy=PlanPolicy(cluster_id="n5uR7hA1RkyLTTuFzzzzzz"))


def blast_radius() -> Plan:
    return SimulatedCluster().plan(application(), policy=limits(createdTopics=1, addedPartitions=4))


def timeout() -> Plan:
    return SimulatedCluster().plan(application(), elapsed_ms=61_234)


def sink_of_two_applications() -> Plan:
    sink = Sink("shared-out", 4)
    return SimulatedCluster().plan(application(sink=sink), application(id_="sales", sink=sink))


def topic_of_a_former_application() -> Plan:
    name = "orders-sums-counts-changelog"
    owner = application(id_="orders-sums", topics=[changelog(name, 4)])
    cluster = SimulatedCluster.set_up(application(topics=[changelog(name, 4)]))
    return cluster.plan(application(), owner)


def topic_of_a_released_application() -> Plan:
    name = "orders-sums-counts-changelog"
    former = application(topics=[changelog(name, 4)], lifecycle=Lifecycle.RELEASED)
    owner = application(id_="orders-sums", topics=[changelog(name, 4)])
    return SimulatedCluster.set_up(application(topics=[changelog(name, 4)])).plan(former, owner)


def topic_of_a_retired_application() -> Plan:
    name = "orders-sums-counts-changelog"
    former = application(topics=[changelog(name, 4)], lifecycle=Lifecycle.RETIRED)
    owner = application(id_="orders-sums", topics=[changelog(name, 4)])
    return SimulatedCluster.set_up(application(topics=[changelog(name, 4)])).plan(former, owner)


def topic_of_two_retired_applications() -> Plan:
    name = "orders-sums-counts-changelog"
    former = application(topics=[changelog(name, 4)])
    cluster = SimulatedCluster.set_up(former)
    record = cluster.records["orders"]
    cluster.records["orders-sums"] = attrs.evolve(record, application_id="orders-sums")
    retired = (
        attrs.evolve(former.application, id=id_, lifecycle=Lifecycle.RETIRED) for id_ in cluster.records
    )
    return cluster.plan(*(attrs.evolve(former, application=each) for each in retired))


def internal_topic_and_sink() -> Plan:
    return SimulatedCluster().plan(application(sink=Sink("orders-counts-changelog", 4)))


def similar_names() -> Plan:
    topics = [changelog(f"orders-{store}-changelog", 4) for store in ("by.day", "by_day", "by_year")]
    return SimulatedCluster().plan(application(topics=topics))


def error_with_location() -> Plan:
    at = Location("orders.yaml", 9, 5, "/topology/1/groupBy")
    cluster = SimulatedCluster.set_up(application(config=MANUAL))
    return cluster.plan(application(config=MANUAL, topics=[repartition(REPARTITION, 6, at=at)]))


SCENARIOS: tuple[Scenario, ...] = (
    missing_source_topic,
    existing_internal_topics,
    incomplete_setup,
    lost_topics_manual,
    lost_topics_automatic,
    replaced_topics_manual,
    replaced_topics_automatic,
    source_topics_expanded,
    explicit_count_lowered,
    missing_sink,
    group_protocol_missing,
    group_protocol_not_enabled,
    over_partitioned,
    unsafe_expansion,
    misconfigured_manual,
    misconfigured_automatic,
    harmful_default,
    harmful_default_manual,
    harmful_setting,
    replication,
    unavailable,
    replicas_on_wrong_brokers,
    changed_replication_factor,
    renumbered_manual,
    renumbered_automatic,
    group_active,
    group_active_while_retired,
    re_created_before_retiring,
    re_created_while_retired,
    unreadable_records,
    unsafe_records,
    managed_by_another_stack,
    managed_by_a_lost_state,
    sink_of_another_stack,
    sinks_of_another_stack,
    moved_to_another_stack,
    managed_with_a_copied_state,
    retired_in_one_of_two_stacks,
    taken_over,
    sink_taken_over,
    unnecessary_take_over,
    group_of_the_streams_protocol,
    group_without_coordinator,
    unnecessary_reinitialize,
    reinitialize_left_in_the_stack,
    unnecessary_unsafe_expansion,
    application_removed,
    stateless_application_removed,
    wrong_cluster,
    blast_radius,
    timeout,
    sink_of_two_applications,
    topic_of_a_former_application,
    topic_of_a_released_application,
    topic_of_a_retired_application,
    topic_of_two_retired_applications,
    internal_topic_and_sink,
    similar_names,
    error_with_location,
    unproven_adoption,
    adoption_that_removes_data,
    retired_topic_in_use,
    retired_topic_of_another_client,
    deletion_that_the_records_do_not_allow,
    leftovers_that_are_refused,
    leftover_of_a_running_application,
    id_that_overlaps_with_another_stack,
    accepted_id_that_overlaps,
)
