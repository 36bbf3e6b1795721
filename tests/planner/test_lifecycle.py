"""The ends of applications, and the starts that were interrupted."""

import attrs

from infra.model.problems import ProblemCode
from infra.model.record import RecordedTopic, SetupRecord
from infra.model.topology import Lifecycle, Sink
from infra.planner import ActionKind, Plan
from tests.planner.world import AUTOSCALING, MANUAL, World, application

REPARTITION, CHANGELOG, SINK = "orders-step1-repartition", "orders-counts-changelog", "orders-out"
WITH_SINK = Sink(SINK, 4)
RETIRED = application(lifecycle=Lifecycle.RETIRED)
RELEASED = application(lifecycle=Lifecycle.RELEASED)


def kinds(plan: Plan) -> dict[str, ActionKind]:
    return {action.name: action.kind for action in plan.actions}


def codes(plan: Plan) -> list[ProblemCode]:
    return [problem.code for problem in plan.problems]


def test_an_application_without_a_document_is_an_error() -> None:
    world = World.set_up(application())
    plan = world.plan()
    assert codes(plan) == [ProblemCode.APPLICATION_REMOVED]
    assert plan.problems[0].application == "orders"
    assert not list(plan.actions)


def test_a_released_application_is_forgotten_and_its_topics_stay() -> None:
    world = World.set_up(application())
    plan = world.up(RELEASED)
    assert kinds(plan) == {REPARTITION: ActionKind.RELEASE, CHANGELOG: ActionKind.RELEASE}
    assert set(world.topics) == {REPARTITION, CHANGELOG}
    assert not world.records
    assert not world.plan(RELEASED).has_changes
    assert not world.plan().problems


def test_a_released_application_may_run_and_lack_its_sources() -> None:
    world = World.set_up(application())
    world.run_group("orders")
    assert world.plan(attrs.evolve(RELEASED, missing_sources=("orders-in",))).is_applicable


def test_retiring_deletes_internal_topics_in_two_steps() -> None:
    world = World.set_up(application(sink=WITH_SINK))
    first = world.up(RETIRED)
    assert first.has_changes
    assert kinds(first) == {
        REPARTITION: ActionKind.RETIRE,
        CHANGELOG: ActionKind.RETIRE,
        SINK: ActionKind.RELEASE,
    }
    assert set(world.topics) == {REPARTITION, CHANGELOG, SINK}
    assert not world.plan(RETIRED).has_changes
    second = world.up()
    assert kinds(second) == {REPARTITION: ActionKind.DELETE, CHANGELOG: ActionKind.DELETE}
    assert set(world.topics) == {SINK}
    assert not world.plan().has_changes


def test_retiring_needs_an_inactive_group_in_both_steps() -> None:
    world = World.set_up(application())
    world.run_group("orders")
    assert codes(world.plan(RETIRED)) == [ProblemCode.GROUP_ACTIVE]
    world.run_group("orders", members=0)
    world.up(RETIRED)
    world.run_group("orders")
    assert codes(world.plan()) == [ProblemCode.GROUP_ACTIVE]


def test_a_retired_application_may_come_back() -> None:
    world = World.set_up(application(config=MANUAL))
    world.up(RETIRED)
    world.up(application(config=MANUAL))
    assert codes(world.plan()) == [ProblemCode.APPLICATION_REMOVED]


def test_retired_topics_that_are_gone_already_are_forgotten() -> None:
    world = World.set_up(application())
    world.up(RETIRED)
    del world.topics[CHANGELOG]
    assert kinds(world.up()) == {REPARTITION: ActionKind.DELETE, CHANGELOG: ActionKind.RELEASE}
    assert not world.topics


def test_a_renamed_application_lets_go_of_its_old_topics_and_keeps_its_processors() -> None:
    world = World.set_up(application())
    world.records["orders"] = attrs.evolve(world.records["orders"], initial_processors=3)
    renamed = application(id_="sales", renamed_from="orders")
    plan = world.up(renamed)
    assert kinds(plan) == {
        REPARTITION: ActionKind.RELEASE,
        CHANGELOG: ActionKind.RELEASE,
        "sales-step1-repartition": ActionKind.CREATE,
        "sales-counts-changelog": ActionKind.CREATE,
    }
    assert set(world.records) == {"sales"}
    assert world.records["sales"].initial_processors == 3
    assert not world.plan(renamed).has_changes


def test_the_initial_processors_never_change() -> None:
    world = World.set_up(application(config=AUTOSCALING))
    world.up(application(config=AUTOSCALING, sources={"orders-in": 12}))
    assert world.records["orders"].initial_processors == 4


def test_a_topic_that_the_topology_lost_stays_and_comes_back() -> None:
    world = World.set_up(application(config=MANUAL))
    plan = world.up(application(config=MANUAL, stateful=False))
    assert kinds(plan) == {REPARTITION: ActionKind.KEEP, CHANGELOG: ActionKind.KEEP}
    assert not world.plan(application(config=MANUAL, stateful=False)).has_changes
    assert not world.plan(application(config=MANUAL)).problems


def test_a_topic_that_the_topology_lost_is_forgotten_once_it_is_deleted() -> None:
    world = World.set_up(application(config=MANUAL))
    world.up(application(config=MANUAL, stateful=False))
    del world.topics[CHANGELOG]
    assert kinds(world.up(application(config=MANUAL, stateful=False)))[CHANGELOG] is ActionKind.RELEASE
    assert CHANGELOG not in world.records["orders"].topics
    assert kinds(world.plan(application(config=MANUAL)))[CHANGELOG] is ActionKind.CREATE


def test_a_topology_that_grew_gets_its_new_topics_in_manual_mode_too() -> None:
    world = World.set_up(application(config=MANUAL, stateful=False))
    assert kinds(world.up(application(config=MANUAL)))[CHANGELOG] is ActionKind.CREATE


def test_a_new_topic_of_a_grown_topology_that_exists_must_be_adopted() -> None:
    world = World.set_up(application(config=MANUAL, stateful=False))
    world.create(CHANGELOG, 4, {"cleanup.policy": "compact"})
    assert codes(world.plan(application(config=MANUAL))) == [ProblemCode.INTERNAL_TOPICS_ALREADY_SETUP]


def test_an_interrupted_first_run_is_finished_by_the_next() -> None:
    world = World()
    compiled = application(config=MANUAL)
    world.create(REPARTITION, 4, compiled.internal_topics[0].config)
    world.records["orders"] = SetupRecord("orders", {}, 0, unfinished=True)
    plan = world.up(compiled)
    assert not plan.problems
    assert set(world.topics) == {REPARTITION, CHANGELOG}
    assert not world.records["orders"].unfinished
    assert world.records["orders"].initial_processors == 4
    assert not world.plan(compiled).has_changes


def test_topics_of_an_interrupted_later_run_are_no_loss() -> None:
    world = World.set_up(application(config=MANUAL, stateful=False))
    record = world.records["orders"]
    begun = {**record.topics, CHANGELOG: RecordedTopic(CHANGELOG, "", 4)}
    world.records["orders"] = attrs.evolve(record, topics=begun)
    plan = world.up(application(config=MANUAL))
    assert not plan.problems
    assert kinds(plan)[CHANGELOG] is ActionKind.CREATE
