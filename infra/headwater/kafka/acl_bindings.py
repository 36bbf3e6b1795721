"""Convert ACLs between our values and values of the admin client."""

from collections.abc import Iterable, Iterator
from enum import Enum
from typing import Any, cast

from confluent_kafka.admin import (  # type: ignore[attr-defined]  # public, but not exported explicitly
    AclBinding,
    AclBindingFilter,
    AclOperation,
    AclPermissionType,
    ResourcePatternType,
    ResourceType,
)

from headwater.model.acls import Acl, Operation, Pattern, Permission, ResourceKind

_KINDS = {
    ResourceKind.TOPIC: ResourceType.TOPIC,
    ResourceKind.GROUP: ResourceType.GROUP,
    ResourceKind.TRANSACTIONAL_ID: ResourceType.TRANSACTIONAL_ID,
    ResourceKind.CLUSTER: ResourceType.BROKER,  # librdkafka's name for the cluster
}
_PATTERNS = {
    Pattern.LITERAL: ResourcePatternType.LITERAL,
    Pattern.PREFIXED: ResourcePatternType.PREFIXED,
}
_OPERATIONS = {
    Operation.READ: AclOperation.READ,
    Operation.WRITE: AclOperation.WRITE,
    Operation.CREATE: AclOperation.CREATE,
    Operation.DELETE: AclOperation.DELETE,
    Operation.ALTER: AclOperation.ALTER,
    Operation.DESCRIBE: AclOperation.DESCRIBE,
    Operation.ALTER_CONFIGS: AclOperation.ALTER_CONFIGS,
    Operation.DESCRIBE_CONFIGS: AclOperation.DESCRIBE_CONFIGS,
}
_OUR_KINDS = {theirs: ours for ours, theirs in _KINDS.items()}
_OUR_PATTERNS = {theirs: ours for ours, theirs in _PATTERNS.items()}
_OUR_OPERATIONS = {theirs: ours for ours, theirs in _OPERATIONS.items()}


def acl_binding(acl: Acl) -> AclBinding:
    """Return the ACL as the admin client takes it."""
    permission = acl.permission
    return AclBinding(
        _KINDS[permission.kind],
        permission.name,
        _PATTERNS[permission.pattern],
        acl.principal,
        acl.host,
        _OPERATIONS[permission.operation],
        AclPermissionType.ALLOW,
    )


def acl_of(binding: AclBinding) -> Acl | None:
    """Return what a binding allows, None if it denies or is of a kind that Headwater does not grant."""
    # The library annotates the names and numbers that it accepts as well as the enums that it returns.
    kind = _OUR_KINDS.get(cast("ResourceType", binding.restype))
    pattern = _OUR_PATTERNS.get(cast("ResourcePatternType", binding.resource_pattern_type))
    operation = _OUR_OPERATIONS.get(cast("AclOperation", binding.operation))
    if kind is None or pattern is None or operation is None:
        return None
    if binding.permission_type is not AclPermissionType.ALLOW:
        return None
    return Acl(binding.principal, binding.host, Permission(kind, binding.name, operation, pattern))


def unlimited_acls(binding: AclBinding) -> Iterator[Acl]:
    """Yield an ACL for each operation that a binding for all operations allows."""
    if binding.operation is AclOperation.ALL:
        for operation in _OPERATIONS.values():
            fields = (binding.restype, binding.name, binding.resource_pattern_type)
            who = (binding.principal, binding.host)
            single = acl_of(AclBinding(*fields, *who, operation, binding.permission_type))
            if single is not None:
                yield single


def operations_of(operations: Iterable[Enum]) -> frozenset[Operation]:
    """Return the operations that Headwater uses."""
    allowed = set(operations)
    return frozenset(ours for ours, theirs in _OPERATIONS.items() if theirs in allowed)


def filter_for(principal: str | None) -> AclBindingFilter:
    """Return the filter for all ACLs of a principal, None for the ACLs of all principals."""
    any_: Any = None  # the library annotates a text
    return AclBindingFilter(
        ResourceType.ANY,
        any_,
        ResourcePatternType.ANY,
        principal or any_,
        any_,
        AclOperation.ANY,
        AclPermissionType.ANY,
    )
