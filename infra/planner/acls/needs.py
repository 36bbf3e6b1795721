"""Needed rights, each with its reason."""

from collections.abc import Iterable, Sequence

import attrs

from infra.model.acls import ANY_NAME, Acl, Operation, Pattern, ResourceKind, Right


@attrs.frozen
class Need:
    """A right and, in a few words, why it is needed."""

    right: Right
    reason: str


def least(needs: Iterable[Need]) -> tuple[Need, ...]:
    """Return the needs without those that others cover, in order: topics first, by name and operation.

    If a right is needed twice, the first reason is kept.
    """
    first: dict[Right, Need] = {}
    for need in needs:
        first.setdefault(need.right, need)
    prefixes = [right for right in first if right.pattern is Pattern.PREFIXED or right.name == ANY_NAME]
    kept = [
        need
        for right, need in first.items()
        if not any(other != right and other.covers(right) for other in (*prefixes, *_stronger(right, first)))
    ]
    return tuple(sorted(kept, key=lambda need: _order(need.right)))


def acls_of(needs: Iterable[Need], principals: Sequence[str], hosts: Sequence[str]) -> tuple[Acl, ...]:
    """Return an ACL for each principal, host and right."""
    rights = [need.right for need in needs]
    return tuple(
        Acl(principal, host, right) for principal in principals for host in hosts for right in rights
    )


def topic(name: str, *operations: Operation, reason: str) -> Iterable[Need]:
    """Yield needs for topics. A star at the end of `name` stands for all names with this prefix."""
    for operation in operations:
        yield Need(named(ResourceKind.TOPIC, name, operation), reason)


def named(kind: ResourceKind, name: str, operation: Operation) -> Right:
    """Return the right to `name`. A star at its end stands for all names with this prefix."""
    if name != ANY_NAME and name.endswith(ANY_NAME):
        return Right(kind, name.removesuffix(ANY_NAME), operation, Pattern.PREFIXED)
    return Right(kind, name, operation)


def _stronger(right: Right, among: dict[Right, Need]) -> Iterable[Right]:
    """Return the rights to the same resource that imply this one."""
    implying = _IMPLYING.get(right.operation, ())
    return (other for each in implying if (other := attrs.evolve(right, operation=each)) in among)


_IMPLYING = {
    implied: [operation for operation in Operation if operation.implied is implied]
    for implied in (Operation.DESCRIBE, Operation.DESCRIBE_CONFIGS)
}
_KINDS = list(ResourceKind)
_OPERATIONS = list(Operation)


def _order(right: Right) -> tuple[int, str, str, int]:
    return _KINDS.index(right.kind), right.name, right.pattern, _OPERATIONS.index(right.operation)
