"""What concerns the cluster and the run: another cluster, a running group, the time of planning."""

from collections.abc import Mapping

import attrs
import pytest

from headwater.model.problems import (
    ProblemCode,
)
from headwater.model.topology import Lifecycle, Setup, Sink
from headwater.planner import PlanPolicy
from tests.planner.plans import codes
from tests.planner.simulated_cluster import (
    AUTOSCALING,
    BOTH,
    CHANGELOG,
    CLUSTER,
    MANUAL,
    SimulatedCluster,
    application,
)


def test_reinitializing_needs_an_inactive_group() -> None:
    cluster = SimulatedCluster.set_up(application(config=MANUAL))
    del cluster.topics[CHANGELOG]
    cluster.run_group("orders")
    compiled = application(config=MANUAL, setup=Setup(reinitialize=True))
    assert codes(cluster.plan(compiled)) == [ProblemCode.GROUP_ACTIVE]
    cluster.run_group("orders", members=0)
    assert cluster.plan(compiled).is_applicable


@BOTH
def test_planning_that_takes_too_long_is_an_error(mode: Mapping[str, str]) -> None:
    compiled = application(config=mode, setup=Setup(timeout_ms=1_000))
    assert not SimulatedCluster().plan(compiled, elapsed_ms=1_000).problems
    assert codes(SimulatedCluster().plan(compiled, elapsed_ms=1_001)) == [ProblemCode.TIMEOUT]


def test_another_cluster_is_an_error() -> None:
    assert SimulatedCluster().plan(application(), policy=PlanPolicy(cluster_id=CLUSTER)).is_applicable
    (problem,) = SimulatedCluster().plan(application(), policy=PlanPolicy(cluster_id="other")).problems
    assert (problem.code, problem.expected) == (ProblemCode.WRONG_CLUSTER, "cluster id other")


def test_a_cluster_other_than_that_of_the_first_run_is_an_error() -> None:
    """Otherwise, automatic set-up would create every topic again on the other cluster."""
    cluster = SimulatedCluster.set_up(application())
    cluster.records = {
        id_: attrs.evolve(record, cluster_id="other") for id_, record in cluster.records.items()
    }
    (problem,) = cluster.plan(application()).problems
    assert (problem.code, problem.expected) == (ProblemCode.WRONG_CLUSTER, "cluster id other")


@pytest.mark.parametrize("config", [{}, MANUAL, AUTOSCALING], ids=["automatic", "manual", "autoscaling"])
def test_nothing_else_is_said_about_another_cluster(config: dict[str, str]) -> None:
    """There, a missing topic is not lost, and an existing topic is not a topic of the stack."""
    compiled = application(config=config, sink=Sink("orders-out", 4))
    cluster = SimulatedCluster.set_up(compiled, application(id_="sales"))
    cluster.up(compiled, application(id_="sales", lifecycle=Lifecycle.RETIRED))
    cluster.records = {
        id_: attrs.evolve(record, cluster_id="other") for id_, record in cluster.records.items()
    }
    for name in ("orders-out", "orders-counts-changelog"):
        del cluster.topics[name]
    for name in ("orders-step1-repartition", "sales-counts-changelog"):
        cluster.recreate(name, is_empty=True)
    new = application(id_="search", config=MANUAL)
    cluster.create("search-counts-changelog", 9)
    plan = cluster.plan(compiled, new)
    assert [problem.code for problem in plan.problems] == [ProblemCode.WRONG_CLUSTER]
    assert not [
        action.note for action in plan.actions if "lost" in action.note or "re-created" in action.note
    ]


def test_a_declared_move_to_another_cluster_is_recorded() -> None:
    cluster = SimulatedCluster.set_up(application())
    cluster.records = {
        id_: attrs.evolve(record, cluster_id="other") for id_, record in cluster.records.items()
    }
    plan = cluster.plan(application(), policy=PlanPolicy(cluster_id=CLUSTER))
    assert plan.is_applicable
    assert [planned.record.cluster_id for planned in plan.applications if planned.record] == [CLUSTER]
