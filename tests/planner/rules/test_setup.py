"""The first setup of an application, and options of setup that a document declares without need."""

from collections.abc import Mapping

import pytest

from headwater.model.problems import Location, ProblemCode, Severity
from headwater.model.topology import Lifecycle, Setup, StackSwitch
from headwater.planner import ActionKind
from tests.planner.plans import codes, kinds, warnings
from tests.planner.simulated_cluster import (
    AUTOMATIC,
    CHANGELOG,
    MANUAL,
    REPARTITION,
    SimulatedCluster,
    application,
)
from tests.planner.simulated_stacks import Cluster, Stack


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


@pytest.mark.parametrize("lifecycle", [Lifecycle.ACTIVE, Lifecycle.RETIRED])
def test_ids_of_one_stack_do_not_overlap_with_its_own_records_when_its_state_is_lost(
    lifecycle: Lifecycle,
) -> None:
    orders = application(id_="orders", stateful=False)
    accepted = Setup(allow_id_overlap=True)
    cluster = Cluster()
    Stack.on(cluster, "first").up(orders, application(id_="orders-eu", stateful=False, setup=accepted))
    ending = application(id_="orders-eu", stateful=False, setup=accepted, lifecycle=lifecycle)
    plan = Stack.on(cluster, "first", "another id").plan(orders, ending)
    # This state has no record of the application to retire.
    is_retired = lifecycle is Lifecycle.RETIRED
    others = {ProblemCode.CONFIG_HAS_NO_EFFECT} if is_retired else set()
    assert {each.code for each in plan.problems} == {ProblemCode.MANAGED_BY_ANOTHER_STACK, *others}


@pytest.mark.parametrize("is_in_a_stack", [True, False])
def test_nothing_is_deleted_of_a_retired_application_that_the_stack_has_released(
    *, is_in_a_stack: bool
) -> None:
    stack = Stack.on(Cluster(), "first")
    for lifecycle in (Lifecycle.ACTIVE, Lifecycle.RELEASED):
        stack.up(application(lifecycle=lifecycle))
    retired = application(lifecycle=Lifecycle.RETIRED)
    if is_in_a_stack:
        planned = stack.plan(retired)
        (problem,) = planned.problems
        assert (problem.code, problem.severity) == (ProblemCode.CONFIG_HAS_NO_EFFECT, Severity.WARNING)
        assert problem.location == retired.application.at
        assert not [*planned.actions]
    else:
        assert not stack.cluster.simulated.plan(retired).problems


def test_an_id_that_another_stack_alone_declares_overlaps() -> None:
    """Also if the stack declares another application whose id overlaps."""
    cluster = Cluster()
    Stack.on(cluster, "other").up(application(id_="orders-eu", stateful=False))
    both = (
        application(id_="orders", stateful=False),
        application(id_="orders-us", stateful=False, setup=Setup(allow_id_overlap=True)),
    )
    (problem,) = Stack.on(cluster, "first").plan(*both).problems
    assert (problem.code, problem.severity) == (ProblemCode.APPLICATION_ID_OVERLAP, Severity.ERROR)
    assert "`orders-eu` in stack" in (problem.found or "")
