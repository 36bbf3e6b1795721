"""The complete texts of errors and warnings."""

from collections.abc import Callable
from pathlib import Path

import attrs
import pytest

from infra.model.callers import APPLICATION
from infra.model.compiled import CompiledApplication
from infra.model.nodes import ChangelogKind
from infra.model.ownership import OwnershipRecord, StackIdentity
from infra.model.problems import Location, Severity
from infra.model.topology import Lifecycle, Protocol, Setup, Sink
from infra.planner import Plan, PlanPolicy, plan
from infra.planner.application import ActiveApplication
from infra.planner.rules.over_partitioned import over_partitioned as over_partitioned_topics
from infra.planner.rules.replaced_topics import replaced_topics
from infra.report import problems_text
from tests.planner.simulated_cluster import (
    MANUAL,
    SimulatedCluster,
    application,
    changelog,
    limits,
    repartition,
)

GOLDEN = Path(__file__).parent / "golden"
AUTOSCALING = {"partition.autoscaling.enabled": "true"}
REPARTITION, CHANGELOG = "orders-step1-repartition", "orders-counts-changelog"
TOPICS = (REPARTITION, CHANGELOG, "orders-out", "shared-out", "orders-sums-counts-changelog")
Scenario = Callable[[], Plan]


def missing_source_topic() -> Plan:
    return SimulatedCluster().plan(attrs.evolve(application(topics=()), missing_sources=("orders-in",)))


def existing_internal_topics() -> Plan:
    cluster = SimulatedCluster()
    for topic in application().internal_topics:
        cluster.create(topic.name, topic.partitions, topic.config)
    return cluster.plan(application(config=MANUAL))


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


def _set_up_in_two_stacks(compiled: CompiledApplication, owner: str, *, sink: str | None = None) -> Plan:
    cluster = SimulatedCluster.set_up(application(sink=Sink("orders-out", 4)))
    topics = {name: topic.topic_id for name, topic in cluster.topics.items() if sink in (None, name)}
    record = OwnershipRecord(
        application_id="orders" if sink is None else "sales",
        stack=StackIdentity("another id", owner),
        topics=topics,
    )
    snapshot = attrs.evolve(cluster.snapshot, ownership=(record,))
    policy = PlanPolicy(stack=StackIdentity("its id", "acme/headwater/production"))
    return plan([compiled], snapshot, cluster.records, policy)


def moved_to_another_stack() -> Plan:
    return _set_up_in_two_stacks(application(sink=Sink("orders-out", 4)), "acme/headwater/staging")


def retired_in_one_of_two_stacks() -> Plan:
    retired = application(sink=Sink("orders-out", 4), lifecycle=Lifecycle.RETIRED)
    return _set_up_in_two_stacks(retired, "acme/sales/production", sink=CHANGELOG)


def unnecessary_take_over() -> Plan:
    compiled = application(setup=Setup(take_over=True))
    cluster = SimulatedCluster.set_up(application())
    snapshot = attrs.evolve(cluster.snapshot, ownership=())
    policy = PlanPolicy(stack=StackIdentity("its id", "acme/headwater/production"))
    return plan([compiled], snapshot, cluster.records, policy)


def group_of_the_streams_protocol() -> Plan:
    compiled = application(config=MANUAL, setup=Setup(reinitialize=True))
    retired = application(id_="sales")
    cluster = SimulatedCluster.set_up(compiled, retired)
    del cluster.topics[CHANGELOG]
    cluster.run_group("orders", members=None)
    cluster.run_group("sales", members=None)
    return cluster.plan(compiled, application(id_="sales", lifecycle=Lifecycle.RETIRED))


def unnecessary_reinitialize() -> Plan:
    compiled = application(config=MANUAL, setup=Setup(reinitialize=True))
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
    replication,
    changed_replication_factor,
    renumbered_manual,
    renumbered_automatic,
    group_active,
    group_active_while_retired,
    re_created_before_retiring,
    re_created_while_retired,
    managed_by_another_stack,
    managed_by_a_lost_state,
    sink_of_another_stack,
    sinks_of_another_stack,
    moved_to_another_stack,
    retired_in_one_of_two_stacks,
    taken_over,
    sink_taken_over,
    unnecessary_take_over,
    group_of_the_streams_protocol,
    unnecessary_reinitialize,
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
    error_with_location,
)


@pytest.mark.parametrize("scenario", SCENARIOS, ids=lambda scenario: scenario.__name__)
def test_texts(scenario: Scenario, golden: Callable[[Path, str], None]) -> None:
    problems = scenario().problems
    golden(GOLDEN / f"{scenario.__name__}.txt", problems_text(problems) + "\n")
    for problem in problems:
        assert problem.summary.endswith(".")
        assert problem.why.endswith(".")
        assert problem.fix.endswith(".")
        assert problem.expected
        assert problem.found
        named = [topic for topic in TOPICS if topic in problem.summary]
        assert not named or problem.topic in named


def test_each_text_has_a_scenario() -> None:
    assert {file.stem for file in GOLDEN.iterdir()} == {scenario.__name__ for scenario in SCENARIOS}


def running(cluster: SimulatedCluster, compiled: CompiledApplication) -> ActiveApplication:
    record = cluster.records.get(compiled.application.id)
    return ActiveApplication.of(compiled, cluster.snapshot, record, caller=APPLICATION)


def test_a_running_application_is_stopped_before_a_topic_is_restored() -> None:
    compiled = application(config=MANUAL)
    cluster = SimulatedCluster.set_up(compiled)
    cluster.recreate(CHANGELOG, is_empty=False)
    (problem,) = replaced_topics(running(cluster, compiled))
    assert problem.severity is Severity.ERROR
    assert problem.fix == (
        "Restore the topic while the application is stopped, or rebuild the state by reprocessing the source "
        "topics. Then start the application again."
    )


def test_a_running_application_does_not_know_who_set_a_topic_up() -> None:
    cluster = SimulatedCluster()
    cluster.create(CHANGELOG, 8)
    (problem,) = over_partitioned_topics(running(cluster, application()))
    assert problem.summary == f"Internal topic {CHANGELOG} has more partitions than expected."
