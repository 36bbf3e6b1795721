"""Topics that are missing, lost, re-created or configured otherwise, with manual and automatic setup."""

from collections.abc import Mapping

import attrs
import pytest

from headwater.model.compiled import CompiledApplication
from headwater.model.problems import Problem, ProblemCode, Severity
from headwater.model.topology import Setup
from headwater.planner import ActionKind
from tests.planner.plans import codes, kinds, warnings
from tests.planner.simulated_cluster import (
    AUTOMATIC,
    BOTH,
    CHANGELOG,
    MANUAL,
    REPARTITION,
    SimulatedCluster,
    application,
    repartition,
)


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
    located = reported.located(application="orders", location=compiled.application.at)
    assert SimulatedCluster().plan(compiled).problems == (located,)


def test_a_topic_is_lost_even_if_the_record_is_from_before_cluster_ids() -> None:
    cluster = SimulatedCluster.set_up(application(config=MANUAL))
    cluster.records["orders"] = attrs.evolve(cluster.records["orders"], cluster_id="")
    del cluster.topics[CHANGELOG]
    assert codes(cluster.plan(application(config=MANUAL))) == [ProblemCode.MISSING_INTERNAL_TOPICS]


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


def test_a_run_that_sets_more_replicas_in_sync_than_a_topic_has_warns() -> None:
    def declared(config: Mapping[str, str], required: str) -> CompiledApplication:
        topic = repartition(REPARTITION, 4, replication_factor=2)
        insync = {**topic.config, "min.insync.replicas": required}
        return application(config=config, topics=[attrs.evolve(topic, config=insync)])

    cluster = SimulatedCluster.set_up(declared(AUTOMATIC, "1"))
    (problem,) = cluster.plan(declared(AUTOMATIC, "3")).problems
    assert (problem.code, problem.severity) == (ProblemCode.REPLICATION_FACTOR, Severity.WARNING)
    assert problem.summary == f"Topic {REPARTITION} has 2 replicas, fewer than min.insync.replicas."
    assert not cluster.plan(declared(MANUAL, "3")).problems

    cluster.configure(REPARTITION, min_insync_replicas="3")
    (problem,) = cluster.plan(declared(AUTOMATIC, "3")).problems
    assert problem.severity is Severity.WARNING
    assert not cluster.plan(declared(AUTOMATIC, "1")).problems
