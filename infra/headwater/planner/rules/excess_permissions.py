"""A principal of an application with manual setup may create the internal topics itself."""

import shlex
from collections.abc import Iterator

from headwater.model.acls import ANY_NAME, Acl, LiveAcls, Operation, Permission, ResourceKind
from headwater.model.problems import Problem, ProblemCode, Severity
from headwater.planner.application import ActiveApplication
from headwater.planner.phrases import listed

_FEW = 3


def excess_permissions(application: ActiveApplication) -> Iterator[Problem]:
    """Yield a warning, only for applications that declare `acls`: of others, no principal is known.

    Kafka Streams creates a missing internal topic if it may, and continues without its data.
    """
    declared, live = application.compiled.application.acls, application.snapshot.acls
    if declared is None or live is None or not application.is_manual:
        return
    names = [state.name for state in application.topics if state.is_internal]
    found = {
        acl.text: acl
        for acl in sorted((*live.allowed, *live.unlimited), key=lambda acl: acl.text)
        if acl.principal in declared.principals and _creates(acl, names)
    }
    if not found:
        return
    principals = list(dict.fromkeys(acl.principal for acl in found.values()))
    shown = [*list(found)[:_FEW], *([f"{len(found) - _FEW} more"] if len(found) > _FEW else [])]
    command = _command(next(iter(found.values())), live)
    yield application.problem(
        ProblemCode.EXCESS_PERMISSIONS,
        f"{listed(principals)} may create internal topics of {application.id}.",
        expected="no Create on the cluster, or on its internal topics",
        found=listed(shown),
        why="A lost topic must stop an application with manual setup. With this permission, Kafka Streams "
        "creates it again and continues without its data.",
        fix=f"Revoke the listed ACLs. The first one is revoked by `{command}`.",
        severity=Severity.WARNING,
    )


def _creates(acl: Acl, names: list[str]) -> bool:
    """Return whether the ACL lets a client create one of these topics."""
    permission = acl.permission
    if permission.operation is not Operation.CREATE:
        return False
    if permission.kind is ResourceKind.CLUSTER:
        return bool(names)
    needed = (Permission(ResourceKind.TOPIC, name, Operation.CREATE) for name in names)
    return any(permission.covers(each) for each in needed)


def _command(acl: Acl, live: LiveAcls) -> str:
    """Return the command that removes the ACL: Kafka removes an ACL for `All` only as a whole."""
    permission = acl.permission
    operations = [name for name, acls in (("Create", live.allowed), ("All", live.unlimited)) if acl in acls]
    resource = ["--topic", permission.name, "--resource-pattern-type", permission.pattern.lower()]
    words = [
        *("kafka-acls.sh", "--bootstrap-server", "BROKER", "--remove", "--allow-principal", acl.principal),
        *([] if acl.host == ANY_NAME else ["--allow-host", acl.host]),
        *(word for name in operations for word in ("--operation", name)),
        *(["--cluster"] if permission.kind is ResourceKind.CLUSTER else resource),
    ]
    return shlex.join(words)
