"""Rights that are revoked from an application while it runs."""

from collections.abc import Iterator, Mapping, Sequence

from infra.model.problems import Problem, ProblemCode, Severity
from infra.planner.acls.action import AclAction, AclActionKind
from infra.planner.run import Run
from infra.planner.wording import counted, listed


def revoked_while_running(run: Run, actions: Mapping[str, Sequence[AclAction]]) -> Iterator[Problem]:
    """A warning: the version that runs may still use what the one that is declared does not."""
    for application in run.active:
        group = run.snapshot.groups.get(application.id)
        revoked = [
            action.acl for action in actions.get(application.id, ()) if action.kind is AclActionKind.REVOKE
        ]
        if revoked and group is not None and group.is_active:
            yield Problem(
                code=ProblemCode.GROUP_ACTIVE,
                summary=f"{counted(len(revoked), 'ACL')} of {application.id} are revoked while it runs."
                if len(revoked) > 1
                else f"An ACL of {application.id} is revoked while it runs.",
                application=application.id,
                expected="a consumer group without members, or one that does without them",
                found=listed(acl.right.text for acl in revoked),
                why="Instances of an earlier version that still use these rights fail with a "
                "TopicAuthorizationException.",
                fix="If such instances run, put the topics into `reads` and `writes` of `acls`, run "
                "`pulumi up`, replace the instances, and take them out again.",
                location=application.compiled.application.at,
                severity=Severity.WARNING,
            )
