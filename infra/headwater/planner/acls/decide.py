"""What a run does about each ACL, and a warning when it revokes an ACL that may be in use."""

from collections.abc import Iterator, Mapping, Sequence

from headwater.model.acls import Acl, LiveAcls
from headwater.model.problems import Problem, ProblemCode, Severity
from headwater.model.records import SetupRecord
from headwater.planner.acls.application import acls_of, application_needs
from headwater.planner.phrases import counted, listed
from headwater.planner.plans import AclAction, AclActionKind
from headwater.planner.run import Run


def acl_actions(run: Run) -> Mapping[str, tuple[AclAction, ...]]:
    """Return application id → actions. An ACL that several applications need is managed by one of them.

    That is the application which has it already, so that nothing changes; else the first that needs it.
    """
    holders = {acl: record.application_id for record in run.records.values() for acl in record.acls}
    owners: dict[Acl, tuple[str, str]] = {}
    for id_, acl, reason in _needed_acls(run):
        if acl not in owners or holders.get(acl) == id_:
            owners[acl] = (id_, reason)
    actions: dict[str, list[AclAction]] = {}
    for acl, (id_, reason) in owners.items():
        kind = _kind_of(acl, run.snapshot.acls, is_held=acl in holders)
        if kind is not None:
            actions.setdefault(id_, []).append(AclAction(kind, acl, reason))
    for record, kind in _unneeded_acls(run):
        left = sorted(record.acls - owners.keys(), key=lambda acl: acl.text)
        actions.setdefault(record.application_id, []).extend(AclAction(kind, acl) for acl in left)
    return {id_: tuple(part) for id_, part in actions.items()}


def acls_after(actions: Sequence[AclAction]) -> frozenset[Acl]:
    """Return the ACLs that the stack manages for an application after the run."""
    gone = (AclActionKind.REVOKE, AclActionKind.RELEASE)
    return frozenset(action.acl for action in actions if action.kind not in gone)


def revoked_while_running(run: Run, actions: Mapping[str, Sequence[AclAction]]) -> Iterator[Problem]:
    """Yield a warning for each running application that loses ACLs: that version may still use them."""
    for application in run.active:
        group = run.snapshot.groups.get(application.id)
        revoked = [
            action.acl for action in actions.get(application.id, ()) if action.kind is AclActionKind.REVOKE
        ]
        if revoked and group is not None and group.is_active:
            yield Problem(
                code=ProblemCode.GROUP_ACTIVE,
                summary=f"{counted(len(revoked), 'ACL')} of {application.id} are revoked while it is running."
                if len(revoked) > 1
                else f"An ACL of {application.id} is revoked while it is running.",
                application=application.id,
                expected="a consumer group without members, or a version that does not use them",
                found=listed(acl.permission.text for acl in revoked),
                why="Instances of an earlier version that still use these ACLs fail with a "
                "TopicAuthorizationException.",
                fix="If such instances are running, add the topics to `reads` and `writes` of `acls`, run "
                "`pulumi up`, replace the instances, and remove the topics again.",
                location=application.compiled.application.at,
                severity=Severity.WARNING,
            )


def _needed_acls(run: Run) -> Iterator[tuple[str, Acl, str]]:
    for application in run.active:
        declared = application.compiled.application.acls
        if declared is not None:
            needs = application_needs(application.compiled, declared)
            reasons = {need.permission: need.reason for need in needs}
            for acl in acls_of(needs, declared.principals, declared.hosts):
                yield application.id, acl, reasons[acl.permission]


def _kind_of(acl: Acl, live: LiveAcls | None, *, is_held: bool) -> AclActionKind | None:
    """Without an authorizer no ACL can be granted; ACLs that were granted before stay as they are."""
    if live is None or not live.has_authorizer:
        unheld = AclActionKind.GRANT if live is None else None
        return AclActionKind.KEEP if is_held else unheld
    if acl in live.allowed:
        return AclActionKind.KEEP if is_held else AclActionKind.ADOPT
    return AclActionKind.RESTORE if is_held else AclActionKind.GRANT


def _unneeded_acls(run: Run) -> Iterator[tuple[SetupRecord, AclActionKind]]:
    live = run.snapshot.acls
    revoke = AclActionKind.REVOKE if live is None or live.has_authorizer else AclActionKind.KEEP
    for application in run.active:
        if application.record is not None:
            yield application.record, revoke
    for record in run.released:
        yield record, AclActionKind.RELEASE
    for record in run.retiring:
        yield record, AclActionKind.KEEP
    for record in run.deleted:
        yield record, revoke
