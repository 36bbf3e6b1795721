"""A principal of an application with manual setup may create the internal topics itself."""

from collections.abc import Iterator

from headwater.model.acls import Acl, Operation, Permission, ResourceKind
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
    option = _option(next(iter(found.values())))
    yield application.problem(
        ProblemCode.EXCESS_PERMISSIONS,
        f"{listed(principals)} may create internal topics of {application.id}.",
        expected="no Create on the cluster, or on its internal topics",
        found=listed(shown),
        why="A lost topic must stop an application with manual setup. With this permission, Kafka Streams "
        "creates it again and continues without its data.",
        fix=f"Revoke Create, and All, for {listed(principals)}: `kafka-acls.sh --bootstrap-server BROKER "
        f"--remove --allow-principal {principals[0]} --operation Create {option}`.",
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


def _option(acl: Acl) -> str:
    permission = acl.permission
    if permission.kind is ResourceKind.CLUSTER:
        return "--cluster"
    return f"--topic {permission.name} --resource-pattern-type {permission.pattern.lower()}"
