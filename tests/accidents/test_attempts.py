"""Attempts to lose a topic, step by step, with the real program and the simulated engine."""

import attrs
import pytest

from headwater.model.records import OWNERSHIP_TOPIC, OwnershipRecord, StackIdentity
from headwater.planner import ActionKind
from tests.accidents.continuation import settle
from tests.accidents.documents import Declared
from tests.accidents.engine import Clock
from tests.accidents.world import SOURCE, World

PAY = Declared(id="pay", source=SOURCE)
RETIRED = attrs.evolve(PAY, lifecycle="retired")
CHANGELOG, REPARTITION = "pay-a-changelog", "pay-by-customer-repartition"


@pytest.fixture
def world() -> World:
    """A world in which stack `one` has set up an application."""
    world = World()
    apply(world, PAY)
    return world


def apply(world: World, document: Declared, stack: str = "one") -> None:
    world.declare(stack, document)
    assert world.up(stack).is_finished, world.log


def retire(world: World) -> None:
    """Take the first step of retiring the application, and remove its document."""
    apply(world, RETIRED)
    world.remove("one", PAY.id)


def ids(world: World) -> dict[str, str]:
    return {name: topic.topic_id for name, topic in world.cluster.topics.items() if name != OWNERSHIP_TOPIC}


def refused(world: World, stack: str = "one") -> tuple[str, ...]:
    """Run `up`, which must be refused and keep all topics; return the codes of its problems."""
    before = ids(world)
    run = world.up(stack)
    assert not run.is_finished
    assert ids(world) == before
    return run.codes


def test_a_deleted_ownership_record_allows_no_deletion(world: World) -> None:
    retire(world)
    world.lose_record(next(iter(world.cluster.ownership)))
    assert refused(world) == ("DeletionRefused",)


def test_a_deleted_topic_of_ownership_records_allows_no_deletion(world: World) -> None:
    retire(world)
    world.delete(OWNERSHIP_TOPIC)
    assert refused(world) == ("DeletionRefused",)


def test_a_record_of_another_stack_with_the_topic_allows_no_deletion(world: World) -> None:
    retire(world)
    topics = {CHANGELOG: world.cluster.topics[CHANGELOG].topic_id}
    stack = StackIdentity("another", "organization/headwater/other")
    world.write_record(OwnershipRecord(application_id="sales", stack=stack, topics=topics))
    assert "ManagedByAnotherStack" in refused(world)


def test_a_stack_does_not_continue_a_deletion_of_what_another_one_has_taken_over(world: World) -> None:
    retire(world)
    apply(world, attrs.evolve(PAY, setup=frozenset({"takeOver", "adopt"})), "two")
    assert "ManagedByAnotherStack" in refused(world)
    settle(world, "one")
    assert {CHANGELOG, REPARTITION} <= ids(world).keys()


def test_a_copied_state_retires_nothing(world: World) -> None:
    world.save("one")
    world.restore("two", 0)
    world.declare("two", RETIRED)
    assert refused(world, "two") == ("ManagedByAnotherStack",)
    world.remove("two", PAY.id)
    assert refused(world, "two") == ("ApplicationRemoved",)


def test_what_was_removed_from_the_state_is_managed_again(world: World) -> None:
    before = ids(world)
    state = world.stacks["one"].state
    world.drop("one", next(urn for urn in state if urn.endswith(f"::{CHANGELOG}")))
    assert world.up("one").is_finished
    # Without its component, the state does not know the application any more.
    world.drop("one", next(urn for urn in state if urn.endswith("InternalTopics::pay")))
    assert refused(world) == ("ManagedByAnotherStack",)
    settle(world, "one")
    assert ids(world) == before


@pytest.mark.parametrize("is_manual", [False, True])
def test_a_topic_that_a_refresh_removed_from_the_state_is_reported_as_lost(*, is_manual: bool) -> None:
    world = World()
    apply(world, attrs.evolve(PAY, is_manual=is_manual))
    world.delete(CHANGELOG)
    world.refresh("one")
    if is_manual:
        assert refused(world) == ("MissingInternalTopics",)
    else:
        assert CHANGELOG in world.up("one").warned("MissingInternalTopics")


def test_a_lost_state_with_manual_setup_is_an_error() -> None:
    world = World()
    apply(world, attrs.evolve(PAY, is_manual=True))
    world.lose("one")
    assert refused(world) == ("InternalTopicsAlreadySetup", "ManagedByAnotherStack")


def test_destroying_an_unprotected_stack_deletes_no_topic(world: World) -> None:
    before = ids(world)
    world.unprotect("one")
    world.destroy("one")
    assert ids(world) == before
    settle(world, "one")


@pytest.mark.parametrize("step", ["set up", "retire", "delete", "expand stores"])
def test_each_run_can_be_killed_before_each_of_its_changes(step: str) -> None:
    changes = 0
    while True:
        world = World()
        if step != "set up":
            apply(world, PAY)
        if step == "delete":
            retire(world)
        elif step == "retire":
            world.declare("one", RETIRED)
        else:
            world.declare("one", attrs.evolve(PAY, stores=frozenset({"a", "b"})))
        run = world.up("one", Clock(ends_at=changes))
        if not run.is_killed:
            break
        assert world.up("one").is_finished, world.log
        settle(world, "one")
        assert (CHANGELOG in ids(world)) is (step != "delete")
        changes += 1
    assert changes > 3


def test_a_source_topic_and_its_records_are_never_touched(world: World) -> None:
    world.write(SOURCE)
    source = world.cluster.topics[SOURCE]
    retire(world)
    run = world.up("one")
    assert run.plan is not None
    assert {action.name for action in run.plan.actions if action.kind is ActionKind.DELETE} == {
        CHANGELOG,
        REPARTITION,
    }
    assert ids(world).keys() == {SOURCE, "clicks"}
    assert world.cluster.topics[SOURCE] == source
    assert world.cluster.written[SOURCE] == 1
