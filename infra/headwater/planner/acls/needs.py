"""What an application needs permission for, as values, and the names of its topics."""

from collections.abc import Iterable, Sequence

import attrs

from headwater.compiler import StreamsConfig
from headwater.compiler.java.patterns import JavaPattern, UntranslatablePatternError
from headwater.model.acls import ANY_NAME, Acl, Operation, Pattern, Permission, ResourceKind
from headwater.model.compiled import CompiledApplication, TopicKind


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
            for other in (*prefixes, *_stronger_permissions(permission, first))
        )
    ]
    return tuple(sorted(kept, key=lambda need: _order_of(need.permission)))


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


def _stronger_permissions(permission: Permission, among: dict[Permission, Need]) -> Iterable[Permission]:
    """Return the permissions to the same resource that imply this one."""
    implying = _IMPLYING.get(permission.operation, ())
    return (other for each in implying if (other := attrs.evolve(permission, operation=each)) in among)


_IMPLYING = {
    implied: [operation for operation in Operation if operation.implied is implied]
    for implied in (Operation.DESCRIBE, Operation.DESCRIBE_CONFIGS)
}
_KINDS = list(ResourceKind)
_OPERATIONS = list(Operation)


def _order_of(permission: Permission) -> tuple[int, str, str, int]:
    return (
        _KINDS.index(permission.kind),
        permission.name,
        permission.pattern,
        _OPERATIONS.index(permission.operation),
    )


def internal_prefix(compiled: CompiledApplication) -> str:
    """Return the prefix of the names of all internal topics."""
    return f"{StreamsConfig.of(compiled.application).topic_prefix or compiled.application.id}-"


def source_topics(compiled: CompiledApplication) -> frozenset[str]:
    """Return the user topics that are read, whether or not they exist."""
    read = {topic for part in compiled.subtopologies for topic in part.sources}
    read |= {*compiled.external_sources, *compiled.missing_sources}
    return frozenset(read - repartition_topics(compiled))


def sink_topics(compiled: CompiledApplication) -> frozenset[str]:
    """Return the user topics that are written, as far as they are known."""
    written = {topic for part in compiled.subtopologies for topic in part.sinks}
    written |= {sink.topic for sink in compiled.sinks}
    return frozenset(written - repartition_topics(compiled))


def repartition_topics(compiled: CompiledApplication) -> frozenset[str]:
    """Return the internal topics that are written, read and purged, including topics of foreign-key joins."""
    named = {topic for part in compiled.subtopologies for topic in part.repartition_topics}
    counted = {topic.name for topic in compiled.internal_topics if topic.kind is not TopicKind.CHANGELOG}
    return frozenset(named | counted)


def changelog_topics(compiled: CompiledApplication) -> frozenset[str]:
    named = {topic for part in compiled.subtopologies for topic in part.changelog_topics}
    counted = {topic.name for topic in compiled.internal_topics if topic.kind is TopicKind.CHANGELOG}
    return frozenset(named | counted)


def pattern_names(pattern: str) -> Sequence[str]:
    """Return the names that match a pattern source. A star at the end stands for all names with this prefix.

    They may cover more than the pattern matches. Empty if the pattern has no fixed prefix.
    """
    try:
        found = JavaPattern(pattern).prefixes()
    except UntranslatablePatternError:
        return []
    names = [name if is_whole else f"{name}{ANY_NAME}" for name, is_whole in found]
    return [] if ANY_NAME in names else [name for name in names if name]
