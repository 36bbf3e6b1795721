"""Another stack records an application or its topics."""

from collections.abc import Iterator

from headwater.model.problems import Problem, ProblemCode, Severity
from headwater.planner.ownership import Conflict, Ownership
from headwater.planner.phrases import counted, listed
from headwater.planner.run import Run


def managed_elsewhere(run: Run) -> Iterator[Problem]:
    """Yield a problem for each ownership record of another stack that the run would ignore.

    An active or retired application may take over what another stack records (`setup.takeOver`). A released
    one changes nothing.
    """
    ownership = run.ownership
    if ownership is None:
        return
    for application in run.active:
        names = [state.name for state in application.topics]
        yield from _problems(run, ownership, application.id, names)
    for record in run.retired:
        names = [topic.name for topic in record.topics.values() if not topic.is_sink]
        yield from _problems(run, ownership, record.application_id, names)


def _problems(run: Run, ownership: Ownership, id_: str, topics: list[str]) -> Iterator[Problem]:
    setups = {c.application.id: c.application.setup for c in run.compiled}
    takes_over = id_ in setups and setups[id_].take_over
    conflicts = tuple(ownership.conflicts(id_, topics))
    for conflict in conflicts:
        if takes_over:
            yield _taken_over(conflict)
        else:
            yield refusal(conflict, ownership, is_recorded=id_ in run.records)
    if takes_over and not conflicts and id_ in run.records:
        yield _unnecessary(id_)


def refusal(conflict: Conflict, ownership: Ownership, *, is_recorded: bool = False) -> Problem:
    """Return the problem; `is_recorded`: this stack has set up the application, too."""
    stack = conflict.record.stack
    has_same_name = stack.has_same_name(ownership.stack)
    if has_same_name:
        fix = f"If the state of this stack was lost, or restored from elsewhere, {_TAKE_OVER} {_SAME_NAME}"
    elif stack.id == ownership.stack.id and conflict.is_same_application:
        fix = (
            f"If stack {stack.name} was renamed to this one, {_TAKE_OVER} If this state is a copy of its "
            "state, set `lifecycle: released` here: the topics stay."
        )
    elif not conflict.is_same_application:
        fix = (
            "Declare it in one document only; the other application may still write to it. To move it here, "
            f"remove it from application {conflict.record.application_id}, and {_TAKE_OVER}"
        )
    elif is_recorded:
        fix = f"If it moved to stack {stack.name}, set `lifecycle: released` here: its topics stay. {_KEEP}"
    else:
        fix = (
            f"Declare it in one stack only. To move it here, run `pulumi up` with `lifecycle: released` in "
            f"stack {stack.name} first. If that stack or its state no longer exists, {_TAKE_OVER}"
        )
    return Problem(
        code=ProblemCode.MANAGED_BY_ANOTHER_STACK,
        summary=f"{_subject(conflict)} managed by another stack.",
        application=conflict.application_id,
        topic=_topic(conflict),
        expected="one stack for each application and topic",
        found=f"{_owner(conflict)}{', the same name with another state' if has_same_name else ''}",
        why="Both stacks would change the topics. Retiring the application in one of them would delete the "
        "topics of the other.",
        fix=fix,
    )


def _taken_over(conflict: Conflict) -> Problem:
    return Problem(
        code=ProblemCode.MANAGED_BY_ANOTHER_STACK,
        summary=f"{_subject(conflict)} taken over from another stack.",
        application=conflict.application_id,
        topic=_topic(conflict),
        expected="one stack for each application and topic",
        found=_owner(conflict),
        why="`setup.takeOver` is set. The other stack is refused from now on.",
        fix="In the other stack, if it still exists, set `lifecycle: released` or remove the topic from the "
        "document. Then remove `setup.takeOver`.",
        severity=Severity.WARNING,
    )


def _unnecessary(id_: str) -> Problem:
    return Problem(
        code=ProblemCode.CONFIG_HAS_NO_EFFECT,
        summary=f"{id_} has `setup.takeOver: true`, but no other stack manages it.",
        application=id_,
        expected="`setup.takeOver` only for the `pulumi up` that needs it",
        found="no other stack",
        why="If another stack takes over the application, this stack would take it back without an error.",
        fix="Remove `setup.takeOver`.",
        severity=Severity.WARNING,
    )


def _subject(conflict: Conflict) -> str:
    if conflict.is_same_application:
        return f"Application {conflict.application_id} is"
    if len(conflict.topics) == 1:
        return f"Topic {conflict.topics[0]} of application {conflict.application_id} is"
    return f"{counted(len(conflict.topics), 'topic')} of application {conflict.application_id} are"


def _owner(conflict: Conflict) -> str:
    record = conflict.record
    if conflict.is_same_application:
        return f"stack {record.stack.name}, {counted(len(record.topics), 'topic')}"
    return f"stack {record.stack.name}, application {record.application_id}: {listed(conflict.topics)}"


def _topic(conflict: Conflict) -> str | None:
    is_one = not conflict.is_same_application and len(conflict.topics) == 1
    return conflict.topics[0] if is_one else None


_TAKE_OVER = "set `setup.takeOver: true` for one `pulumi up`."
_SAME_NAME = "Otherwise another backend has a stack with this name: release the application there first."
_KEEP = f"To take it back, {_TAKE_OVER}"
