"""A plan as a whole: its actions, its record, and all its problems together."""

from collections.abc import Mapping

import attrs
import pytest

from headwater.model.problems import DRIFT_WITHOUT_RECORD, PLAN, Location, Problem, ProblemCode
from headwater.model.records import RecordedTopic
from headwater.model.topology import Setup
from headwater.planner import ActionKind, plan
from tests.planner.plans import codes, kinds
from tests.planner.simulated_cluster import (
    BOTH,
    CHANGELOG,
    CLUSTER,
    MANUAL,
    NO_LIMITS,
    REPARTITION,
    SimulatedCluster,
    application,
    repartition,
)


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


def test_the_texts_depend_on_who_plans() -> None:
    cluster = SimulatedCluster()
    cluster.create(CHANGELOG, 8, application().internal_topics[1].config)
    for caller, summary in (
        (PLAN, "has more partitions than expected: Headwater did not set it up."),
        (DRIFT_WITHOUT_RECORD, "has more partitions than expected."),
    ):
        planned = plan([application()], cluster.snapshot, {}, NO_LIMITS, caller=caller)
        assert [problem.summary for problem in planned.problems] == [f"Internal topic {CHANGELOG} {summary}"]


@BOTH
@pytest.mark.parametrize("code", [ProblemCode.NOT_COPARTITIONED, ProblemCode.CONFLICTING_PARTITIONS])
def test_an_error_of_the_compiler_makes_the_plan_inapplicable(
    mode: Mapping[str, str], code: ProblemCode
) -> None:
    problem = Problem(code=code, summary="It does not fit.", application="orders")
    plan = SimulatedCluster().plan(attrs.evolve(application(config=mode), problems=(problem,)))
    assert codes(plan) == [code]
    assert not plan.is_applicable


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
