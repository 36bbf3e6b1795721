"""ACLs that are declared and lack on the cluster."""

from collections.abc import Iterator

from infra.model.problems import Severity
from infra.planner.acls.action import AclActionKind
from infra.planner.drift.findings import Finding, FindingKind
from infra.planner.plans import ApplicationPlan

_LACKING = (AclActionKind.GRANT, AclActionKind.RESTORE)


def lacking_acls(part: ApplicationPlan) -> Iterator[Finding]:
    """Yield a finding for each; an error, in effect, of the application as soon as it runs."""
    for action in part.acls:
        if action.kind in _LACKING:
            was_held = action.kind is AclActionKind.RESTORE
            yield Finding(
                kind=FindingKind.ACL,
                severity=Severity.WARNING,
                application=part.application_id,
                what=f"{action.acl.text}: the ACL is declared and does not exist.",
                expected=f"{action.acl.text} ({action.reason})",
                found="revoked since it was granted" if was_held else "none",
                why="Unless another ACL allows the same, the application cannot do what it needs to, and "
                "stops.",
                fix="Find out who revoked it. Otherwise run `pulumi up`, which grants it again."
                if was_held
                else "Run `pulumi up`, which grants it.",
                location=part.compiled.application.at if part.compiled else None,
            )
