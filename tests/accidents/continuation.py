"""The next correct documents: a stack can always be continued by the advice of its problems."""

from collections.abc import Mapping
from typing import Any

import attrs

from headwater.model.problems import Problem, ProblemCode, errors
from headwater.model.records import OWNERSHIP_TOPIC
from tests.accidents.documents import Declared, changelog
from tests.accidents.world import STACKS, World

_MOST_RUNS = 14
_REPEATED = 3
_ENDING: Mapping[str, Any] = {
    "lifecycle": "released",
    "retire": frozenset(),
    "delete": frozenset(),
    "keep": frozenset(),
}
_SWITCHES: Mapping[ProblemCode, frozenset[str]] = {
    ProblemCode.INTERNAL_TOPICS_ALREADY_SETUP: frozenset({"adopt"}),
    ProblemCode.MISSING_INTERNAL_TOPICS: frozenset({"adopt", "reinitialize", "ifIncomplete"}),
    ProblemCode.MANAGED_BY_ANOTHER_STACK: frozenset({"takeOver"}),
}
"""The switches of `setup` that the fix of a problem names."""


def settle(world: World, stack: str) -> None:
    """Follow the advice of all problems until `up` finishes and a second one changes nothing.

    Raises:
        AccidentError: The stack cannot be continued.
    """
    world.log.append(f"settle {stack}")
    tried: list[tuple[str, ...]] = []
    while len(tried) < _MOST_RUNS:
        run = world.up(stack)
        tried.append(run.codes)
        if run.is_finished and _is_settled(world, stack):
            break
        if run.error is not None and not errors(run.problems):
            raise world.accident(f"{stack} cannot be continued: {run.error}")
        for problem in errors(run.problems):
            _follow(world, stack, problem)
        if tried[-_REPEATED:].count(run.codes) == _REPEATED and "ConflictingPartitions" in run.codes:
            _release_all(world, stack)
    else:
        raise world.accident(f"{stack} cannot be continued: {tried}")
    world.stacks[stack].is_careful = stack == STACKS[1] and world.has_policies
    for document in list(world.documents[stack].values()):
        world.declare(stack, attrs.evolve(document, setup=frozenset(), adopts=frozenset(), former=""))


def _is_settled(world: World, stack: str) -> bool:
    """Return whether a second run finds no error, and changes nothing."""
    documents = tuple(document for _, document in sorted(world.documents[stack].items()))
    again = world.stacks[stack].up(documents, is_preview=True)
    if again.error is not None or again.plan is None:
        return False
    if again.plan.has_changes and all(document.is_active for document in documents):
        raise world.accident(f"a second run of {stack} changes something: {again.plan.applications}")
    return True


def _follow(world: World, stack: str, problem: Problem) -> None:
    """Do what the fix of a problem says, with the choice that keeps topics."""
    id_ = problem.application or ""
    document = world.documents[stack].get(id_)
    if problem.code is ProblemCode.BLAST_RADIUS:
        world.log.append(f"accept settings that remove records in {stack}")
        world.stacks[stack].is_careful = False
    elif problem.code is ProblemCode.GROUP_ACTIVE:
        world.leave(id_)
    elif problem.code is ProblemCode.UNREADABLE_RECORD:
        world.delete(OWNERSHIP_TOPIC)
    elif document is not None:
        world.create(document.source, "none")
        world.declare(stack, _corrected(document, problem, world))
    elif problem.code is ProblemCode.CONFLICTING_PARTITIONS:
        _separate(world, stack, problem.topic or "")
    else:
        former = next((world.latest[s, id_] for s in (stack, *STACKS) if (s, id_) in world.latest), None)
        if former is not None:
            world.declare(stack, attrs.evolve(former, **_ENDING))


def _corrected(document: Declared, problem: Problem, world: World) -> Declared:
    changes: Mapping[str, Any] = {}
    match problem.code:
        case code if document.is_active and code in _SWITCHES:
            changes = {"setup": document.setup | _SWITCHES[code]}
        case ProblemCode.OWNER_NOT_PROVEN | ProblemCode.SETTING_REMOVES_DATA:
            changes = {"adopts": document.adopts | {problem.topic or ""}}
        case ProblemCode.DELETION_REFUSED if document.is_active:
            changes = {"retire": frozenset(), "delete": frozenset()}
        case ProblemCode.DELETION_REFUSED | ProblemCode.TOPIC_REPLACED | ProblemCode.MANAGED_BY_ANOTHER_STACK:
            changes = _ENDING
        case ProblemCode.MISCONFIGURED_INTERNAL_TOPIC:
            changes = {"is_manual": False}
        case ProblemCode.MISSING_SOURCE_TOPIC:
            changes = {"reads": document.reads & world.cluster.topics.keys()}
    return attrs.evolve(document, **changes)


def _separate(world: World, stack: str, topic: str) -> None:
    """Let no application have a topic that several want: they get other stores, and no sink."""
    documents = world.documents[stack]
    owners = [document for document in documents.values() if topic in document.topics]
    for document in owners[1:] or owners:
        stores = frozenset(s for s in document.stores if changelog(document.id, s) != topic)
        sink = "" if document.sink == topic else document.sink
        changed = attrs.evolve(document, stores=stores | {"a"}, sink=sink, keep=document.keep | {topic})
        world.declare(stack, changed)


def _release_all(world: World, stack: str) -> None:
    """Begin again with no application: what several applications want is released by all of them."""
    for document in list(world.documents[stack].values()):
        world.declare(stack, attrs.evolve(document, **_ENDING))
