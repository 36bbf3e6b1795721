"""Partition counts that do not fit: too few, too many, and expansions that separate keys from their state."""

from collections.abc import Mapping

import pytest

from headwater.model.problems import Problem, ProblemCode, errors
from headwater.model.topology import Setup
from headwater.planner import ActionKind
from tests.planner.plans import codes, kinds
from tests.planner.simulated_cluster import (
    AUTOSCALING,
    BOTH,
    CHANGELOG,
    REPARTITION,
    SimulatedCluster,
    application,
)


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


@pytest.mark.parametrize("config", [{}, AUTOSCALING], ids=["off", "on"])
@pytest.mark.parametrize(("changelog", "source"), [(9, 4), (4, 9)])
def test_a_reshard_is_completed_before_anything_else(
    changelog: int, source: int, config: Mapping[str, str]
) -> None:
    """Topics that are deleted or copied meanwhile would have parts of the state only.

    If they were expanded, the application could start, although its expansions are safe otherwise.
    """
    cluster = SimulatedCluster.set_up(application(config=config))
    cluster.change(CHANGELOG, partitions=changelog)
    counted = application(config=config, sources={"orders-in": source})
    other = {problem.fix for problem in cluster.plan(counted).problems}
    cluster.resharded = frozenset({"orders"})
    plan = cluster.plan(counted)
    assert errors(plan.problems)
    for problem in plan.problems:
        assert "run `headwater reshard` again" in problem.fix
        assert problem.fix not in other


@pytest.mark.parametrize(("changelog", "source"), [(9, 4), (4, 9)])
def test_nothing_is_expanded_while_it_is_not_known_whether_a_reshard_is_complete(
    changelog: int, source: int
) -> None:
    cluster = SimulatedCluster.set_up(application(config=AUTOSCALING))
    cluster.change(CHANGELOG, partitions=changelog)
    counted = application(config=AUTOSCALING, sources={"orders-in": source})
    known = cluster.plan(counted).problems
    denied = Problem(
        code=ProblemCode.NOT_AUTHORIZED,
        summary="The Kafka brokers do not let this user read the offsets of group orders.",
        fix="Grant the user Describe on group orders.",
    )
    cluster.unread_reshards["orders"] = denied
    found = errors(cluster.plan(counted).problems)
    if source == 9:
        assert not errors(known)
        assert [(each.code, each.summary, each.fix) for each in found] == [
            (denied.code, denied.summary, denied.fix)
        ]
    else:
        for each, other in zip(found, errors(known), strict=True):
            assert each.fix.startswith("It is not known whether a reshard of orders is complete (The Kafka")
            assert each.fix.endswith(other.fix)


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
    assert "its sources have fewer" in with_fewer_sources.summary
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
