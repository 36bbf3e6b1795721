"""Needed permissions, each with its reason."""

from collections.abc import Iterable, Sequence

import attrs

from headwater.model.acls import ANY_NAME, Acl, Operation, Pattern, Permission, ResourceKind


@attrs.frozen
class Need:
    """A permission and, in a few words, why it is needed."""

    permission: Permission
    reason: str


def least(needs: Iterable[Need]) -> tuple[Need, ...]:
    """Return the needs without those that others cover, in order: topics first, by name and operation.

    If a permission is needed twice, the first reason is kept.
    """
    first: dict[Permission, Need] = {}
    for need in needs:
        first.setdefault(need.permission, need)
    prefixes = [each for each in first if each.pattern is Pattern.PREFIXED or each.name == ANY_NAME]
    kept = [
        need
        for permission, need in first.items()
        if not any(
            other != permission and other.covers(permission)
            for other in (*prefixes, *_stronger(permission, first))
        )
    ]
    return tuple(sorted(kept, key=lambda need: _order(need.permission)))


def acls_of(needs: Iterable[Need], principals: Sequence[str], hosts: Sequence[str]) -> tuple[Acl, ...]:
    """Return an ACL for each principal, host and permission."""
    permissions = [need.permission for need in needs]
    return tuple(
        Acl(principal, host, permission)
        for principal in principals
        for host in hosts
        for permission in permissions
    )


def topic(name: str, *operations: Operation, reason: str) -> Iterable[Need]:
    """Yield needs for topics. A star at the end of `name` stands for all names with this prefix."""
    for operation in operations:
        yield Need(named(ResourceKind.TOPIC, name, operation), reason)


def named(kind: ResourceKind, name: str, operation: Operation) -> Permission:
    """Return the permission for `name`. A star at its end stands for all names with this prefix."""
    if name != ANY_NAME and name.endswith(ANY_NAME):
        return Permission(kind, name.removesuffix(ANY_NAME), operation, Pattern.PREFIXED)
    return Permission(kind, name, operation)


def _stronger(permission: Permission, among: dict[Permission, Need]) -> Iterable[Permission]:
    """Return the permissions to the same resource that imply this one."""
    implying = _IMPLYING.get(permission.operation, ())
    return (other for each in implying if (other := attrs.evolve(permission, operation=each)) in among)


_IMPLYING = {
    implied: [operation for operation in Operation if operation.implied is implied]
    for implied in (Operation.DESCRIBE, Operation.DESCRIBE_CONFIGS)
}
_KINDS = list(ResourceKind)
_OPERATIONS = list(Operation)


def _order(permission: Permission) -> tuple[int, str, str, int]:
    return (
        _KINDS.index(permission.kind),
        permission.name,
        permission.pattern,
        _OPERATIONS.index(permission.operation),
    )
