"""Refuse a run with resources in the stack's state that Headwater has not registered and Pulumi would delete.

They are there after `pulumi import`, or because an earlier program declared them. The hook that refuses
deletions is not in them, and most of them are not protected.
"""

from collections.abc import Collection, Iterator

from headwater.model.problems import Problem, ProblemCode, Severity
from headwater.planner import AclActionKind, ActionKind, Plan
from headwater.pulumi.stack_state import OtherResource

_ENDED = (ActionKind.DELETE, ActionKind.RELEASE)
_ENDED_ACLS = (AclActionKind.REVOKE, AclActionKind.RELEASE)


def relevant_resources(
    others: Collection[OtherResource], plan: Plan, *, is_only_program: bool
) -> list[OtherResource]:
    """Return the resources that Pulumi deletes, or whose topic or ACL the plan manages, too.

    `others` are the resources in the state that Headwater has not registered. Without `is_only_program`,
    other code may declare resources itself, so only resources of topics and ACLs of the plan are relevant.
    """
    managed = {action.name for action in plan.actions if action.kind not in _ENDED}
    acls = {
        action.acl for part in plan.applications for action in part.acls if action.kind not in _ENDED_ACLS
    }
    return [
        other
        for other in sorted(others, key=lambda each: each.urn)
        if other.is_deleted is not False
        and (is_only_program or other.topic in managed or (other.acl is not None and other.acl in acls))
    ]


def other_resources(
    others: Collection[OtherResource], plan: Plan, *, is_only_program: bool
) -> Iterator[Problem]:
    """Yield a problem for each of `relevant_resources` with which Pulumi would delete something."""
    for other in relevant_resources(others, plan, is_only_program=is_only_program):
        if other.may_be_deleted:
            if other.topic is not None:
                yield _topic_problem(other, is_only_program=is_only_program)
            else:
                yield _unregistered(other) if is_only_program else _second_acl(other)


_ONLY_OWN = "only resources that Headwater has registered"
_OF_ONLY_PROGRAM = (
    "Headwater adopts internal topics without `pulumi import`. If the program of the stack declares the "
    "topic, keep the resource, and call `deploy` in the program instead of `run_program`."
)


def _topic_problem(other: OtherResource, *, is_only_program: bool) -> Problem:
    return Problem(
        code=ProblemCode.DELETION_REFUSED,
        summary=f"The state of the stack has a resource of topic {other.topic} that Headwater has not "
        "registered.",
        topic=other.topic,
        expected=_ONLY_OWN
        if is_only_program
        else "one resource of the topic, which Headwater has registered",
        found=other.urn,
        why="Pulumi deletes a topic with its records if the program no longer declares its resource."
        + ("" if is_only_program else " If it does, two resources change the same topic."),
        fix=f"Remove the resource from the state: `pulumi state delete --force '{other.urn}'`. The topic "
        "stays. If Pulumi lists resources that depend on it, remove them from the state first. "
        "Do not run `pulumi state unprotect`: the next `pulumi up` would delete the topic. "
        + (_OF_ONLY_PROGRAM if is_only_program else "Remove it from your program, too."),
    )


def _unregistered(other: OtherResource) -> Problem:
    return Problem(
        code=ProblemCode.DELETION_REFUSED,
        summary=f"The state of the stack has a resource of type {other.type} that Headwater has not "
        "registered.",
        expected=_ONLY_OWN,
        found=other.urn,
        why="The program of the stack declares nothing else, so Pulumi would delete what the resource "
        "describes.",
        fix=f"To keep it, remove the resource from the state: `pulumi state delete --force '{other.urn}'`. "
        f"To delete it, run `pulumi state unprotect '{other.urn}'` and `pulumi destroy --target "
        f"'{other.urn}'`. If the program of the stack declares it, call `deploy` in the program instead of "
        "`run_program`.",
    )


def _second_acl(other: OtherResource) -> Problem:
    return Problem(
        code=ProblemCode.DELETION_REFUSED,
        summary="The state of the stack has a resource of an ACL that Headwater manages, too.",
        expected="one resource of the ACL, which Headwater has registered",
        found=other.urn,
        why="Pulumi revokes the ACL if the program no longer declares its resource; the next `pulumi up` "
        "grants it again.",
        fix=f"Remove the resource from the state with `pulumi state delete --force '{other.urn}'` and from "
        "your program. The ACL stays.",
        severity=Severity.WARNING,
    )
