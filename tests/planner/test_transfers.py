"""A managed sink moves to the application that declares it; each topic has one manager in a plan."""

from collections import Counter

import attrs
import pytest

from headwater.model.compiled import CompiledApplication
from headwater.model.problems import ProblemCode, Severity
from headwater.model.records import RecordedTopic, SetupRecord
from headwater.model.topology import Lifecycle, Sink
from headwater.planner import ActionKind, Plan, TopicAction
from tests.planner.simulated_cluster import MANUAL, SimulatedCluster, application, changelog

OUT = "totals"
SINK = Sink(OUT, 4)
ORDERS = application(sink=SINK)
SALES = application(id_="sales")
SALES_WITH_SINK = application(id_="sales", sink=SINK)
RENAMED = application(id_="sales", renamed_from="orders", sink=SINK)


def of_sink(plan: Plan) -> TopicAction:
    [action] = [action for action in plan.actions if action.name == OUT]
    return action


def notes(plan: Plan, id_: str) -> str:
    return next("; ".join(part.notes) for part in plan.applications if part.application_id == id_)


def check_moved(cluster: SimulatedCluster, *compiled: CompiledApplication) -> None:
    """Assert that the next run moves the sink from orders to sales, once, and does not change it."""
    before = cluster.topics[OUT]
    plan = cluster.up(*compiled)
    assert not plan.problems
    action = of_sink(plan)
    assert (action.kind, action.note) == (ActionKind.KEEP, "managed by orders until now")
    assert f"sink {OUT} moves to sales" in notes(plan, "orders")
    assert plan.has_changes
    assert cluster.topics[OUT] == before
    assert cluster.records["sales"].topics[OUT] == RecordedTopic(OUT, before.topic_id, 4, is_sink=True)
    assert all(OUT not in record.topics for id_, record in cluster.records.items() if id_ != "sales")
    again = cluster.plan(*compiled)
    assert not again.has_changes
    assert not again.problems
    assert not of_sink(again).note


@pytest.mark.parametrize("config", [{}, MANUAL], ids=["automatic", "manual"])
def test_a_sink_moves_with_a_renamed_application(config: dict[str, str]) -> None:
    orders = application(config=config, sink=SINK)
    renamed = application(id_="sales", renamed_from="orders", config=config, sink=SINK)
    check_moved(SimulatedCluster.set_up(orders), renamed)


def test_a_sink_that_two_applications_declare_does_not_move() -> None:
    cluster = SimulatedCluster.set_up(ORDERS)
    plan = cluster.plan(application(), SALES_WITH_SINK, application(id_="returns", sink=SINK))
    assert not plan.is_applicable
    assert "moves" not in notes(plan, "orders")


def test_a_lost_sink_that_moves_has_both_notes() -> None:
    cluster = SimulatedCluster.set_up(ORDERS, SALES)
    del cluster.topics[OUT]
    action = of_sink(cluster.plan(application(), SALES_WITH_SINK))
    assert action.note == "managed by orders until now; it was set up and no longer exists: its data is lost"


def test_a_sink_moves_to_another_document() -> None:
    check_moved(SimulatedCluster.set_up(ORDERS, SALES), application(), SALES_WITH_SINK)


@pytest.mark.parametrize("lifecycle", [Lifecycle.RELEASED, Lifecycle.RETIRED])
def test_a_sink_moves_from_an_application_that_ends(lifecycle: Lifecycle) -> None:
    check_moved(
        SimulatedCluster.set_up(ORDERS, SALES), application(lifecycle=lifecycle, sink=SINK), SALES_WITH_SINK
    )


def test_a_sink_that_an_application_no_longer_declares_moves_later() -> None:
    cluster = SimulatedCluster.set_up(ORDERS, SALES)
    cluster.up(application(), SALES)
    check_moved(cluster, application(), SALES_WITH_SINK)


def test_an_interrupted_move_continues() -> None:
    cluster = SimulatedCluster.set_up(ORDERS)
    begun = {OUT: RecordedTopic(OUT, "", 4, is_sink=True)}
    cluster.records["sales"] = SetupRecord("sales", begun, unfinished=True)
    check_moved(cluster, RENAMED)


def test_a_sink_in_two_records_is_released_once() -> None:
    cluster = SimulatedCluster.set_up(ORDERS)
    begun = {OUT: RecordedTopic(OUT, "", 4, is_sink=True)}
    cluster.records["sales"] = SetupRecord("sales", begun, unfinished=True)
    both = [application(id_=id_, lifecycle=Lifecycle.RELEASED) for id_ in ("orders", "sales")]
    plan = cluster.up(*both)
    assert of_sink(plan).kind is ActionKind.RELEASE
    assert not cluster.records


def test_a_sink_that_is_lost_when_it_moves_is_reported() -> None:
    cluster = SimulatedCluster.set_up(ORDERS)
    del cluster.topics[OUT]
    plan = cluster.up(RENAMED)
    [problem] = plan.problems
    assert (problem.code, problem.topic) == (ProblemCode.MISSING_INTERNAL_TOPICS, OUT)
    assert problem.severity is Severity.WARNING
    assert of_sink(plan).kind is ActionKind.RECREATE


def test_a_sink_is_expanded_and_reconfigured_when_it_moves() -> None:
    cluster = SimulatedCluster.set_up(ORDERS)
    larger = Sink(OUT, 6, {"retention.ms": "1000"})
    plan = cluster.up(application(id_="sales", renamed_from="orders", sink=larger))
    assert of_sink(plan).kind is ActionKind.EXPAND
    assert cluster.topics[OUT].partitions == 6
    assert cluster.topics[OUT].config["retention.ms"] == "1000"


CHANGELOG = "orders-sums-counts-changelog"
"""Store `sums-counts` of application orders, and store `counts` of application orders-sums."""
FORMER = application(topics=[changelog(CHANGELOG, 4)])
OWNER = application(id_="orders-sums", topics=[changelog(CHANGELOG, 4)])


@pytest.mark.parametrize(
    ("former", "found"),
    [
        (application(), "orders (keeps it), orders-sums (declares it)"),
        (
            application(lifecycle=Lifecycle.RELEASED),
            "orders (releases it), orders-sums (declares it)",
        ),
        (
            application(lifecycle=Lifecycle.RETIRED),
            "orders (will delete it), orders-sums (declares it)",
        ),
    ],
    ids=["kept", "released", "retired"],
)
def test_an_internal_topic_does_not_move(former: CompiledApplication, found: str) -> None:
    cluster = SimulatedCluster.set_up(FORMER)
    [problem] = cluster.plan(former, OWNER).problems
    assert (problem.code, problem.topic) == (ProblemCode.CONFLICTING_PARTITIONS, CHANGELOG)
    assert (problem.severity, problem.found) == (Severity.ERROR, found)


def test_an_internal_topic_is_not_deleted_while_another_application_declares_it() -> None:
    cluster = SimulatedCluster.set_up(FORMER)
    cluster.up(
        attrs.evolve(FORMER, application=attrs.evolve(FORMER.application, lifecycle=Lifecycle.RETIRED))
    )
    [problem] = cluster.plan(OWNER).problems
    assert problem.found == "orders (deletes it), orders-sums (declares it)"


def test_an_internal_topic_does_not_become_the_sink_of_another_application() -> None:
    cluster = SimulatedCluster.set_up(FORMER)
    plan = cluster.plan(application(), application(id_="sales", sink=Sink(CHANGELOG, 4)))
    assert [problem.topic for problem in plan.problems] == [CHANGELOG]
    assert not plan.is_applicable


def test_a_sink_does_not_become_an_internal_topic_of_another_application() -> None:
    cluster = SimulatedCluster.set_up(application(sink=Sink(CHANGELOG, 4)))
    plan = cluster.plan(application(), OWNER)
    assert CHANGELOG in {problem.topic for problem in plan.problems}
    assert not plan.is_applicable


def test_a_topic_that_is_gone_leaves_its_name_to_another_application() -> None:
    cluster = SimulatedCluster.set_up(FORMER)
    del cluster.topics[CHANGELOG]
    plan = cluster.up(application(), OWNER)
    [action] = [action for action in plan.actions if action.name == CHANGELOG]
    assert action.kind is ActionKind.CREATE
    assert CHANGELOG in cluster.records["orders-sums"].topics
    assert CHANGELOG not in cluster.records["orders"].topics


def test_a_topic_is_not_internal_topic_and_sink_of_one_application() -> None:
    plan = SimulatedCluster().plan(application(sink=Sink("orders-counts-changelog", 4)))
    [problem] = plan.problems
    assert problem.found == "internal topic and managed sink"
    assert not plan.is_applicable


def test_each_topic_has_one_action_in_a_plan_that_can_be_applied() -> None:
    cluster = SimulatedCluster.set_up(ORDERS, SALES)
    for compiled in ([application(), SALES_WITH_SINK], [ORDERS, SALES], [RENAMED]):
        plan = cluster.up(*compiled)
        assert max(Counter(action.name for action in plan.actions).values()) == 1
