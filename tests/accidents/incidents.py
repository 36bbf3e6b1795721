"""Steps in a row that lead to the protections of a deletion: series of single steps seldom reach them."""

from collections.abc import Callable, Mapping

import attrs

from tests.accidents.continuation import settle
from tests.accidents.documents import Declared
from tests.accidents.engine import AFTER_PLAN, Clock
from tests.accidents.world import IDS, OTHER_SOURCE, SOURCE, STACKS, Choose, World

Incident = Callable[[World, str, Declared, Choose], Clock | None]
"""What happens between the two steps of retiring; it may return a clock, with what happens in the second."""
_MOST_CHANGES = 12


def _nothing(_world: World, _stack: str, _document: Declared, _choose: Choose) -> None:
    pass


def _re_created(world: World, _stack: str, document: Declared, choose: Choose) -> None:
    world.recreate(choose(sorted(document.internal)), "as Kafka Streams sets them")


def _old_state(world: World, stack: str, document: Declared, _choose: Choose) -> None:
    """The application is active again, and then the state is an old one."""
    world.save(stack)
    world.declare(stack, document)
    world.up(stack)
    world.restore(stack, len(world.saved) - 1)


def _old_state_of_a_killed_run(world: World, stack: str, document: Declared, choose: Choose) -> None:
    world.save(stack)
    world.declare(stack, document)
    world.up(stack, Clock(ends_at=choose(range(1, _MOST_CHANGES))))
    world.restore(stack, len(world.saved) - 1)


def _taken_over(world: World, stack: str, document: Declared, _choose: Choose) -> None:
    other = STACKS[1] if stack == STACKS[0] else STACKS[0]
    world.declare(other, attrs.evolve(document, setup=frozenset({"takeOver", "adopt"})))
    world.up(other)


def _copied_state(world: World, stack: str, document: Declared, _choose: Choose) -> None:
    """The other stack gets a copy of the state, and deletes the application that is active here."""
    world.declare(stack, document)
    world.up(stack)
    world.save(stack)
    other = STACKS[1] if stack == STACKS[0] else STACKS[0]
    world.restore(other, len(world.saved) - 1)
    world.documents[other].clear()
    world.declare(other, attrs.evolve(document, lifecycle="retired"))
    world.up(other)
    world.remove(other, document.id)
    world.up(other)


def _offsets(world: World, _stack: str, document: Declared, choose: Choose) -> None:
    world.commit("audit", choose(sorted(document.internal)))


def _member(world: World, _stack: str, document: Declared, choose: Choose) -> None:
    world.join("audit", choose(sorted(document.internal)))


def _unreadable_record(world: World, _stack: str, document: Declared, choose: Choose) -> None:
    """A hostile user replaces the record of the application, or of another one, or none."""
    keys = [key for key in sorted(world.cluster.ownership) if world.knows_record(key)]
    world.write_unreadable_record(choose((*keys, ("hostile", document.id), ("hostile", "another"))))


def _reading_document(world: World, stack: str, document: Declared, choose: Choose) -> None:
    reader = Declared(id="reader", source=OTHER_SOURCE, reads=frozenset({choose(sorted(document.internal))}))
    place = choose(STACKS)
    world.declare(place, reader)
    if place != stack:
        world.up(place)


def _others_during_the_second_step(world: World, _stack: str, document: Declared, choose: Choose) -> Clock:
    name, step = choose(sorted(document.internal)), choose(("re-create", "commit", "delete"))
    steps: Mapping[str, Callable[[], None]] = {
        "re-create": lambda: world.recreate(name, "as Kafka Streams sets them"),
        "commit": lambda: world.commit("audit", name),
        "delete": lambda: world.delete(name),
    }
    return Clock(others={choose((*[AFTER_PLAN] * 4, *range(4))): steps[step]})


def _killed(_world: World, _stack: str, _document: Declared, choose: Choose) -> Clock:
    return Clock(ends_at=choose(range(_MOST_CHANGES)))


INCIDENTS: tuple[Incident, ...] = (
    _nothing,
    _re_created,
    _old_state,
    _old_state_of_a_killed_run,
    _taken_over,
    _copied_state,
    _offsets,
    _member,
    _unreadable_record,
    _reading_document,
    _others_during_the_second_step,
    _others_during_the_second_step,
    _killed,
)


def retire(world: World, stack: str, choose: Choose) -> None:
    """Take both steps of retiring an application, with an incident in between; declare one before."""
    settle(world, stack)
    documents = world.documents[stack]
    id_ = choose(sorted(documents) or IDS)
    document = documents.get(
        id_, Declared(id=id_, source=SOURCE, stores=frozenset({"a", choose(("b", "eu-a"))}))
    )
    world.declare(stack, attrs.evolve(document, lifecycle="active"))
    world.up(stack)
    active = world.documents[stack][id_]
    world.declare(stack, attrs.evolve(active, lifecycle="retired"))
    world.up(stack)
    # Only the simulation knows when others act during a run.
    known = tuple(each for each in INCIDENTS if each is not _others_during_the_second_step)
    clock = choose(known if world.mirror is not None else INCIDENTS)(world, stack, active, choose)
    world.remove(stack, id_)
    world.up(stack, clock)


def release(world: World, stack: str, choose: Choose) -> None:
    """Release an application and remove its document, or destroy the stack while it is active."""
    settle(world, stack)
    for id_, document in sorted(world.documents[stack].items()):
        if choose((True, False)):
            world.unprotect(stack)
            world.destroy(stack)
        world.declare(stack, attrs.evolve(document, lifecycle="released"))
        world.up(stack)
        world.remove(stack, id_)
        world.up(stack)


def adopt(world: World, stack: str, choose: Choose) -> None:
    """Declare an application one of whose topics another client has created, with records."""
    id_ = choose(IDS)
    document = Declared(id=id_, source=SOURCE, sink=choose(("", "totals")))
    name = choose(sorted(document.topics))
    world.create(name, choose(("of a user", "as Kafka Streams sets them", "none")))
    world.write(name)
    world.declare(stack, document)
    world.up(stack)


def reconfigure(world: World, stack: str, choose: Choose) -> None:
    """Declare a sink with another retention."""
    id_ = choose(IDS)
    document = Declared(id=id_, source=SOURCE, sink="totals")
    for retention in (604_800_000, choose((3_600_000, -1))):
        world.declare(stack, attrs.evolve(document, retention=retention))
        world.up(stack)
        world.write("totals")


ALL: tuple[Callable[[World, str, Choose], None], ...] = (retire, retire, retire, release, adopt, reconfigure)
