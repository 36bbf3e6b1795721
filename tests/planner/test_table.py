"""What `manual` and `automatic` set-up do in each situation."""

from collections.abc import Mapping

import attrs
import pytest

from headwater.model.compiled import CompiledApplication
from headwater.model.problems import DRIFT_WITHOUT_RECORD, PLAN, Location, Problem, ProblemCode, Severity
from headwater.model.records import RecordedTopic
from headwater.model.topology import Setup, Sink, StackSwitch
from headwater.planner import ActionKind, plan
from tests.planner.plans import codes, kinds, warnings
from tests.planner.simulated_cluster import (
    AUTOSCALING,
    CHANGELOG,
    CLUSTER,
    MANUAL,
    NO_LIMITS,
    REPARTITION,
    SimulatedCluster,
    application,
    repartition,
)

AUTOMATIC: Mapping[str, str] = {}
BOTH = pytest.mark.parametrize("mode", [MANUAL, AUTOMATIC], ids=["manual", "automatic"])


@BOTH
def test_a_missing_source_topic_is_an_error(mode: Mapping[str, str]) -> None:
    compiled = attrs.evolve(application(config=mode, topics=()), missing_sources=("orders-in",))
    plan = SimulatedCluster().plan(compiled)
    assert codes(plan) == [ProblemCode.MISSING_SOURCE_TOPIC]
    assert plan.problems[0].topic == "orders-in"


@BOTH
def test_a_missing_source_topic_that_the_compiler_reported_is_reported_once(mode: Mapping[str, str]) -> None:
    reported = Problem(code=ProblemCode.MISSING_SOURCE_TOPIC, summary="It is missing.", topic="orders-in")
    compiled = attrs.evolve(
        application(config=mode, topics=()), missing_sources=("orders-in",), problems=(reported,)
    )
    assert SimulatedCluster().plan(compiled).problems == (attrs.evolve(reported, application="orders"),)


@BOTH
def test_the_first_setup_creates_all_topics(mode: Mapping[str, str]) -> None:
    plan = SimulatedCluster().plan(application(config=mode))
    assert not plan.problems
    assert kinds(plan) == {REPARTITION: ActionKind.CREATE, CHANGELOG: ActionKind.CREATE}
    (part,) = plan.applications
    assert part.record is not None
    assert part.record.topics[CHANGELOG] == RecordedTopic(CHANGELOG, "", 4)
    assert part.record.initial_processors == 4


@BOTH
def test_a_second_run_has_no_changes(mode: Mapping[str, str]) -> None:
    cluster = SimulatedCluster.set_up(application(config=mode))
    plan = cluster.plan(application(config=mode))
    assert not plan.problems
    assert not plan.has_changes
    assert {action.wave for action in plan.actions} == {0}
    assert plan.cluster_id == CLUSTER


def test_a_topic_is_lost_even_if_the_record_is_from_before_cluster_ids() -> None:
    cluster = SimulatedCluster.set_up(application(config=MANUAL))
    cluster.records["orders"] = attrs.evolve(cluster.records["orders"], cluster_id="")
    del cluster.topics[CHANGELOG]
    assert codes(cluster.plan(application(config=MANUAL))) == [ProblemCode.MISSING_INTERNAL_TOPICS]


def test_the_texts_depend_on_who_plans() -> None:
    cluster = SimulatedCluster()
    cluster.create(CHANGELOG, 8, application().internal_topics[1].config)
    for caller, summary in (
        (PLAN, "has more partitions than expected: Headwater did not set it up."),
        (DRIFT_WITHOUT_RECORD, "has more partitions than expected."),
    ):
        planned = plan([application()], cluster.snapshot, {}, NO_LIMITS, caller=caller)
        assert [problem.summary for problem in planned.problems] == [f"Internal topic {CHANGELOG} {summary}"]


def cluster_with_all_topics() -> SimulatedCluster:
    cluster = SimulatedCluster()
    for topic in application().internal_topics:
        cluster.create(topic.name, topic.partitions, topic.config)
    return cluster


def test_existing_topics_are_an_error_when_set_up_manually() -> None:
    plan = cluster_with_all_topics().plan(application(config=MANUAL))
    assert codes(plan) == [ProblemCode.INTERNAL_TOPICS_ALREADY_SETUP]
    assert "setup.adopt" in plan.problems[0].fix


@pytest.mark.parametrize(
    ("mode", "setup"), [(MANUAL, Setup(adopt=True)), (AUTOMATIC, Setup())], ids=["manual", "automatic"]
)
def test_existing_topics_are_adopted_with_a_note_in_the_plan(mode: Mapping[str, str], setup: Setup) -> None:
    cluster = cluster_with_all_topics()
    compiled = application(config=mode, setup=setup)
    plan = cluster.up(compiled)
    assert set(kinds(plan).values()) == {ActionKind.ADOPT}
    assert plan.applications[0].notes[-1] == (
        "2 topics that Headwater did not create: adopted, settings unchanged"
    )
    assert cluster.records["orders"].topics[CHANGELOG].topic_id == cluster.topics[CHANGELOG].topic_id
    assert not cluster.plan(compiled).has_changes


def cluster_without_changelog() -> SimulatedCluster:
    cluster = cluster_with_all_topics()
    del cluster.topics[CHANGELOG]
    return cluster


def test_an_incomplete_setup_is_an_error_for_each_missing_topic_when_set_up_manually() -> None:
    plan = cluster_without_changelog().plan(application(config=MANUAL))
    assert codes(plan) == [ProblemCode.MISSING_INTERNAL_TOPICS]
    assert plan.problems[0].topic == CHANGELOG


@pytest.mark.parametrize(
    ("mode", "setup"),
    [(MANUAL, Setup(if_incomplete=True)), (AUTOMATIC, Setup())],
    ids=["manual", "automatic"],
)
def test_an_incomplete_setup_is_completed(mode: Mapping[str, str], setup: Setup) -> None:
    cluster = cluster_without_changelog()
    plan = cluster.up(application(config=mode, setup=setup))
    assert kinds(plan) == {REPARTITION: ActionKind.ADOPT, CHANGELOG: ActionKind.CREATE}
    assert not cluster.plan(application(config=mode)).has_changes


@pytest.mark.parametrize("lost", [(CHANGELOG,), (CHANGELOG, REPARTITION)], ids=["some", "all"])
def test_lost_topics_are_errors_when_set_up_manually(lost: tuple[str, ...]) -> None:
    cluster = SimulatedCluster.set_up(application(config=MANUAL))
    for name in lost:
        del cluster.topics[name]
    plan = cluster.plan(application(config=MANUAL))
    assert codes(plan) == [ProblemCode.MISSING_INTERNAL_TOPICS] * len(lost)
    assert {problem.topic for problem in plan.problems} == set(lost)
    cluster.run_group("orders")
    assert codes(cluster.plan(application(config=MANUAL))) == codes(plan)


@pytest.mark.parametrize(
    ("mode", "setup"), [(MANUAL, Setup(reinitialize=True)), (AUTOMATIC, Setup())], ids=["manual", "automatic"]
)
def test_lost_topics_are_re_created_with_a_warning(mode: Mapping[str, str], setup: Setup) -> None:
    cluster = SimulatedCluster.set_up(application(config=mode))
    del cluster.topics[CHANGELOG]
    plan = cluster.up(application(config=mode, setup=setup))
    assert [problem.code for problem in warnings(plan)] == [ProblemCode.MISSING_INTERNAL_TOPICS]
    assert kinds(plan) == {REPARTITION: ActionKind.KEEP, CHANGELOG: ActionKind.RECREATE}
    assert next(action.note for action in plan.actions if action.name == CHANGELOG) == (
        "it was set up and no longer exists: its data is lost"
    )
    assert not cluster.plan(application(config=mode)).problems


def test_reinitializing_needs_an_inactive_group() -> None:
    cluster = SimulatedCluster.set_up(application(config=MANUAL))
    del cluster.topics[CHANGELOG]
    cluster.run_group("orders")
    compiled = application(config=MANUAL, setup=Setup(reinitialize=True))
    assert codes(cluster.plan(compiled)) == [ProblemCode.GROUP_ACTIVE]
    cluster.run_group("orders", members=0)
    assert cluster.plan(compiled).is_applicable


def test_an_unnecessary_reinitialize_is_a_warning() -> None:
    cluster = SimulatedCluster.set_up(application(config=MANUAL))
    plan = cluster.plan(application(config=MANUAL, setup=Setup(reinitialize=True)))
    assert [problem.code for problem in warnings(plan)] == [ProblemCode.CONFIG_HAS_NO_EFFECT]


@pytest.mark.parametrize(
    "config", [{}, {"partition.autoscaling.enabled": "true"}], ids=["alone", "for an agent"]
)
def test_an_unnecessary_unsafe_expansion_in_the_document_is_a_hint(config: dict[str, str]) -> None:
    """The runtime on Spark reads the document, and does not start without the option after an expansion."""
    compiled = application(config=config, setup=Setup(allow_unsafe_expansion=True))
    [problem] = SimulatedCluster.set_up(compiled).plan(compiled).problems
    assert (problem.code, problem.severity) == (ProblemCode.CONFIG_HAS_NO_EFFECT, Severity.INFO)
    assert "does not start without it until it has run with the new partition counts" in problem.fix
    assert ("Keep it only if an agent" in problem.fix) == bool(config)
    assert not SimulatedCluster().plan(compiled).problems


def test_an_unnecessary_unsafe_expansion_in_the_stack_is_a_warning() -> None:
    switch = StackSwitch("headwater:setup", Location("Pulumi.prod.yaml"), "Remove it.")
    setup = Setup(allow_unsafe_expansion=True, in_stack={"allowUnsafeExpansion": switch})
    [problem] = SimulatedCluster.set_up(application()).plan(application(setup=setup)).problems
    assert (problem.code, problem.severity) == (ProblemCode.CONFIG_HAS_NO_EFFECT, Severity.WARNING)
    assert problem.fix == switch.removal


def test_an_unsafe_expansion_that_a_run_needs_is_not_reported() -> None:
    config = {"partition.autoscaling.enabled": "true"}
    cluster = SimulatedCluster.set_up(application(config=config))
    setup = Setup(allow_unsafe_expansion=True)
    compiled = application(sources={"orders-in": 6}, config=config, setup=setup)
    assert not cluster.plan(compiled).problems


def test_a_re_created_empty_topic_is_an_error_when_set_up_manually() -> None:
    cluster = SimulatedCluster.set_up(application(config=MANUAL))
    cluster.recreate(CHANGELOG, is_empty=True)
    plan = cluster.plan(application(config=MANUAL))
    assert codes(plan) == [ProblemCode.MISSING_INTERNAL_TOPICS]
    assert "re-created" in plan.problems[0].summary
    cluster.up(application(config=MANUAL, setup=Setup(reinitialize=True)))
    assert not cluster.plan(application(config=MANUAL)).problems


def test_a_re_created_empty_topic_is_a_warning_when_set_up_automatically() -> None:
    cluster = SimulatedCluster.set_up(application())
    cluster.recreate(CHANGELOG, is_empty=True)
    plan = cluster.up(application())
    assert [problem.code for problem in warnings(plan)] == [ProblemCode.MISSING_INTERNAL_TOPICS]
    assert not cluster.plan(application()).problems


@BOTH
def test_a_re_created_topic_with_records_is_accepted_with_a_warning(mode: Mapping[str, str]) -> None:
    cluster = SimulatedCluster.set_up(application(config=mode))
    cluster.recreate(CHANGELOG, is_empty=False)
    plan = cluster.up(application(config=mode))
    assert "holds records" in warnings(plan)[0].summary
    assert {action.name: action.note for action in plan.actions} == {
        CHANGELOG: "it was deleted and re-created since it was set up",
        REPARTITION: "",
    }
    assert not cluster.plan(application(config=mode)).problems


@BOTH
def test_too_few_partitions_are_an_error_without_autoscaling(mode: Mapping[str, str]) -> None:
    cluster = SimulatedCluster.set_up(application(config=mode))
    plan = cluster.plan(application(config=mode, sources={"orders-in": 6}))
    assert codes(plan) == [ProblemCode.SOURCE_TOPICS_EXPANDED] * 2
    assert {(p.topic, p.expected, p.found) for p in plan.problems} == {
        (REPARTITION, "6 partitions, as many as orders-in", "4 partitions"),
        (CHANGELOG, "6 partitions, as many as orders-in", "4 partitions"),
    }


@BOTH
def test_too_few_partitions_are_added_with_autoscaling_downstream_first(mode: Mapping[str, str]) -> None:
    config = {**mode, **AUTOSCALING}
    cluster = SimulatedCluster.set_up(application(config=config, steps=2))
    plan = cluster.up(application(config=config, steps=2, sources={"orders-in": 6}))
    assert [(action.wave, action.name, action.added_partitions) for action in plan.actions] == [
        (0, "orders-counts-changelog", 2),
        (1, "orders-step2-repartition", 2),
        (2, "orders-step1-repartition", 2),
    ]
    assert cluster.records["orders"].initial_processors == 4
    assert cluster.records["orders"].topics[CHANGELOG].partitions == 6
    one_more = cluster.up(application(config=config, steps=2, sources={"orders-in": 7}))
    assert {action.added_partitions for action in one_more.actions} == {1}


@BOTH
@pytest.mark.parametrize("autoscaling", [{}, AUTOSCALING], ids=["off", "on"])
def test_too_many_partitions_are_always_an_error(
    mode: Mapping[str, str], autoscaling: Mapping[str, str]
) -> None:
    config = {**mode, **autoscaling}
    cluster = SimulatedCluster.set_up(application(config=config))
    for name in (REPARTITION, CHANGELOG):
        cluster.change(name, partitions=9)
    plan = cluster.plan(application(config=config))
    assert codes(plan) == [ProblemCode.OVER_PARTITIONED] * 2
    assert not {ActionKind.RECREATE, ActionKind.DELETE, ActionKind.CREATE} & set(kinds(plan).values())
    assert all(action.partitions == 9 for action in plan.actions)


def test_re_created_sources_with_fewer_partitions_and_a_manual_expansion_are_distinguished() -> None:
    cluster = SimulatedCluster.set_up(application())
    (with_fewer_sources, *_) = cluster.plan(application(sources={"orders-in": 2})).problems
    assert "its sources now have fewer" in with_fewer_sources.summary
    cluster.change(REPARTITION, partitions=5)
    (expanded,) = cluster.plan(application()).problems
    assert "another client expanded it" in expanded.summary


@BOTH
def test_an_expansion_of_unpartitioned_state_is_an_error_until_acknowledged(mode: Mapping[str, str]) -> None:
    config = {**mode, "partition.autoscaling.enabled": "true"}
    cluster = SimulatedCluster.set_up(application(config=config))
    expanded = {"orders-in": 6}
    assert codes(cluster.plan(application(config=config, sources=expanded))) == [ProblemCode.UNSAFE_EXPANSION]
    acknowledged = application(config=config, sources=expanded, setup=Setup(allow_unsafe_expansion=True))
    assert cluster.plan(acknowledged).is_applicable


def test_the_library_without_its_partitioner_keeps_no_keys_with_their_state() -> None:
    config = {
        "default.client.supplier": "io.headwater.streams.HeadwaterClientSupplier",
        "partition.autoscaling.enabled": "true",
        "static.partitioner.class": "initial-hash",
        "static.partitioner.initial.partitions": "4",
    }
    cluster = SimulatedCluster.set_up(application(config=config))
    found = cluster.plan(application(config=config, sources={"orders-in": 6})).problems
    (problem,) = [each for each in found if each.code is ProblemCode.UNSAFE_EXPANSION]
    assert "If the producers partition statically, set `producer.partitioner.class`" in problem.fix


def test_an_expansion_without_state_is_allowed() -> None:
    config = {"partition.autoscaling.enabled": "true"}
    cluster = SimulatedCluster.set_up(application(config=config, stateful=False))
    plan = cluster.up(application(config=config, stateful=False, sources={"orders-in": 6}))
    assert kinds(plan) == {REPARTITION: ActionKind.EXPAND}


def test_a_config_that_loses_data_is_an_error_when_set_up_manually() -> None:
    cluster = SimulatedCluster.set_up(application(config=MANUAL))
    cluster.configure(CHANGELOG, cleanup_policy="delete")
    plan = cluster.plan(application(config=MANUAL))
    assert codes(plan) == [ProblemCode.MISCONFIGURED_INTERNAL_TOPIC]
    assert (plan.problems[0].expected, plan.problems[0].found) == (
        "cleanup.policy compact",
        "cleanup.policy delete",
    )


def test_a_config_that_loses_data_is_reconfigured_when_set_up_automatically() -> None:
    cluster = SimulatedCluster.set_up(application())
    cluster.configure(CHANGELOG, cleanup_policy="delete", retention_bytes="1000")
    plan = cluster.up(application())
    assert [problem.code for problem in warnings(plan)] == [ProblemCode.MISCONFIGURED_INTERNAL_TOPIC] * 2
    assert kinds(plan)[CHANGELOG] is ActionKind.RECONFIGURE
    assert cluster.topics[CHANGELOG].config == {
        "cleanup.policy": "compact",
        "message.timestamp.type": "CreateTime",
    }
    assert not cluster.plan(application()).problems


def test_other_config_differences_are_shown_when_set_up_manually() -> None:
    cluster = SimulatedCluster.set_up(application(config=MANUAL))
    cluster.configure(REPARTITION, segment_bytes="1000000", min_insync_replicas="2")
    plan = cluster.plan(application(config=MANUAL))
    assert not plan.problems
    assert not plan.has_changes
    action = next(action for action in plan.actions if action.name == REPARTITION)
    assert [(change.key, change.live, change.declared) for change in action.drift] == [
        ("min.insync.replicas", "2", None),
        ("segment.bytes", "1000000", "52428800"),
    ]
    assert action.config == cluster.topics[REPARTITION].config


def test_a_run_does_not_require_more_replicas_in_sync_than_a_topic_has() -> None:
    def declared(config: Mapping[str, str], required: str) -> CompiledApplication:
        topic = repartition(REPARTITION, 4, replication_factor=2)
        insync = {**topic.config, "min.insync.replicas": required}
        return application(config=config, topics=[attrs.evolve(topic, config=insync)])

    cluster = SimulatedCluster.set_up(declared(AUTOMATIC, "1"))
    (problem,) = cluster.plan(declared(AUTOMATIC, "3")).problems
    assert (problem.code, problem.severity) == (ProblemCode.REPLICATION_FACTOR, Severity.ERROR)
    assert problem.summary == f"Topic {REPARTITION} has 2 replicas, but writes would require 3 in sync."
    assert not cluster.plan(declared(MANUAL, "3")).problems

    cluster.configure(REPARTITION, min_insync_replicas="3")
    (problem,) = cluster.plan(declared(AUTOMATIC, "3")).problems
    assert problem.severity is Severity.WARNING
    assert not cluster.plan(declared(AUTOMATIC, "1")).problems


def test_other_declared_configs_are_reconfigured_when_set_up_automatically() -> None:
    cluster = SimulatedCluster.set_up(application())
    cluster.configure(REPARTITION, segment_bytes="1000000", min_insync_replicas="2")
    plan = cluster.up(application())
    action = next(action for action in plan.actions if action.name == REPARTITION)
    assert action.kind is ActionKind.RECONFIGURE
    assert [change.key for change in action.changes] == ["segment.bytes"]
    assert [change.key for change in action.drift] == ["min.insync.replicas"]
    assert cluster.topics[REPARTITION].config["min.insync.replicas"] == "2"
    assert cluster.topics[REPARTITION].config["segment.bytes"] == "52428800"


@BOTH
@pytest.mark.parametrize("code", [ProblemCode.NOT_COPARTITIONED, ProblemCode.CONFLICTING_PARTITIONS])
def test_an_error_of_the_compiler_makes_the_plan_inapplicable(
    mode: Mapping[str, str], code: ProblemCode
) -> None:
    problem = Problem(code=code, summary="It does not fit.", application="orders")
    plan = SimulatedCluster().plan(attrs.evolve(application(config=mode), problems=(problem,)))
    assert codes(plan) == [code]
    assert not plan.is_applicable


@BOTH
def test_planning_that_takes_too_long_is_an_error(mode: Mapping[str, str]) -> None:
    compiled = application(config=mode, setup=Setup(timeout_ms=1_000))
    assert not SimulatedCluster().plan(compiled, elapsed_ms=1_000).problems
    assert codes(SimulatedCluster().plan(compiled, elapsed_ms=1_001)) == [ProblemCode.TIMEOUT]


def test_all_problems_are_reported_together() -> None:
    cluster = SimulatedCluster.set_up(application(config=MANUAL, steps=3))
    cluster.change("orders-step1-repartition", partitions=9)
    cluster.configure("orders-step2-repartition", cleanup_policy="compact")
    del cluster.topics["orders-step3-repartition"]
    plan = cluster.plan(application(config=MANUAL, steps=3, setup=Setup(timeout_ms=1)), elapsed_ms=2)
    assert set(codes(plan)) == {
        ProblemCode.OVER_PARTITIONED,
        ProblemCode.MISCONFIGURED_INTERNAL_TOPIC,
        ProblemCode.MISSING_INTERNAL_TOPICS,
        ProblemCode.TIMEOUT,
    }


def test_problems_have_a_location_a_reason_and_a_fix() -> None:
    cluster = SimulatedCluster.set_up(application(config=MANUAL))
    at = Location("orders.yaml", 9, 5, "/topology/1")
    topics = (repartition(REPARTITION, 6, at=at),)
    (problem,) = cluster.plan(application(config=MANUAL, topics=topics)).problems
    assert (problem.application, problem.node, problem.location) == ("orders", f"{REPARTITION}-sink", at)
    assert problem.why
    assert problem.fix


@BOTH
def test_a_managed_sink_is_created_expanded_and_never_shrunk(mode: Mapping[str, str]) -> None:
    def compiled(partitions: int, config: Mapping[str, str] | None = None) -> CompiledApplication:
        return application(config=mode, sink=Sink("orders-out", partitions, config or {}))

    cluster = SimulatedCluster.set_up(compiled(4, {"retention.ms": "1000"}))
    assert cluster.topics["orders-out"].config == {"retention.ms": "1000"}
    cluster.configure("orders-out", compression_type="zstd")
    plan = cluster.up(compiled(8, {"retention.ms": "1000"}))
    assert kinds(plan)["orders-out"] is ActionKind.EXPAND
    assert cluster.topics["orders-out"].config == {"retention.ms": "1000", "compression.type": "zstd"}
    assert codes(cluster.plan(compiled(6, {"retention.ms": "1000"}))) == [ProblemCode.OVER_PARTITIONED]
    del cluster.topics["orders-out"]
    assert kinds(cluster.up(compiled(8)))["orders-out"] is ActionKind.RECREATE
