"""An application is running while its topics are to be re-initialized or deleted."""

from collections.abc import Callable, Iterator

from headwater.model.cluster import LiveGroup
from headwater.model.problems import Problem, ProblemCode, Severity
from headwater.planner.run import Run


def group_active(run: Run) -> Iterator[Problem]:
    """Yield a problem for each: a running application would use lost state, or create the topics again.

    Whether a group of the streams protocol has members is not visible if the user may not describe a topic of
    its topology. Deletion then waits until the group is deleted, which Kafka allows without members only.
    Re-initializing needs the group's offsets, so it continues with a warning. Without a coordinator, both
    wait.
    """
    for application in run.active:
        is_requested = application.is_manual and application.setup.reinitialize
        group = run.snapshot.groups.get(application.id)
        if is_requested and application.has_losses and group is not None and group.is_active:
            yield _found(group, "re-initialized", _unknown)
    for record in run.retired:
        group = run.snapshot.groups.get(record.application_id)
        if group is not None and group.is_active:
            yield _found(group, "retired", _undeleted)


def _found(group: LiveGroup, what: str, hidden: Callable[[LiveGroup, str], Problem]) -> Problem:
    """Return the problem; `hidden` creates it for a group whose members are not visible."""
    if not group.is_available:
        return _unavailable(group, what)
    return hidden(group, what) if group.members is None else _active(group, what)


def _active(group: LiveGroup, what: str) -> Problem:
    return Problem(
        code=ProblemCode.GROUP_ACTIVE,
        summary=f"{group.id} is to be {what} while it is running.",
        application=group.id,
        expected="a consumer group without members",
        found=f"state {group.state}, {group.members} members",
        why=_WHY,
        fix="Stop all instances of the application and wait until its consumer group is empty. Then run "
        "`pulumi up` again.",
    )


def _unknown(group: LiveGroup, what: str) -> Problem:
    return Problem(
        code=ProblemCode.GROUP_ACTIVE,
        summary=f"{group.id} is to be {what}, but Headwater cannot see whether it is running.",
        application=group.id,
        expected="a group without members",
        found="a group of the streams protocol",
        why=_WHY,
        fix=f"Make sure that no instance is running: `kafka-streams-groups.sh --describe --group {group.id} "
        "--members`.",
        severity=Severity.WARNING,
    )


def _undeleted(group: LiveGroup, what: str) -> Problem:
    return Problem(
        code=ProblemCode.GROUP_ACTIVE,
        summary=f"{group.id} is to be {what}, but Headwater cannot see whether it is running.",
        application=group.id,
        expected="no group",
        found="a group of the streams protocol",
        why=_WHY,
        fix="Stop all instances and delete the group. Kafka allows that only without members: "
        f"`kafka-streams-groups.sh --bootstrap-server BROKER --delete --group {group.id}`.",
    )


def _unavailable(group: LiveGroup, what: str) -> Problem:
    return Problem(
        code=ProblemCode.GROUP_ACTIVE,
        summary=f"{group.id} is to be {what}, but Headwater cannot see whether it is running.",
        application=group.id,
        expected="a consumer group without members",
        found="no answer of the coordinator of the group",
        why=_WHY,
        fix="Start the brokers that are stopped, and run again. A group has a coordinator only while a "
        "replica of its partition of `__consumer_offsets` is in sync.",
    )


_WHY = "A running application would continue with a part of its state, fail, or create the topics again."
