"""The least privileges with which Kafka Streams 4.1 runs an application whose internal topics exist.

| what Kafka Streams does | class | needs |
|---|---|---|
| subscribes, fetches, commits | `StreamThread`, `RecordCollectorImpl` | Read on sources and group |
| reads all of a global table at start | `GlobalStateManagerImpl` | Read on its topic |
| writes and reads repartition topics | `RecordCollectorImpl`, `StreamThread` | Write, Read |
| deletes the records that it has read | `TaskManager#maybePurgeCommittedRecords` | Delete |
| writes changelogs, restores from them | `StoreChangelogReader` | Write, Read |
| checks their existence and end offsets | `InternalTopicManager` | Describe, which Read implies |
| begins and commits transactions | `StreamsProducer` (exactly once) | Write on its transactional ids |

`headwater run` also adds partitions to changelog topics of applications with a number of processors: Alter.

Kafka Streams never needs DescribeConfigs: nothing calls the checks in `InternalTopicManager#validate`. The
library in `streams_library` checks configs and recorded ids if `internal.topics.setup` is set, and adds
partitions if autoscaling is on.
Since Kafka 3.0 an idempotent producer needs only Write on a topic (KIP-679).
Transactional ids are `<application.id>-<process id>-<thread>`.
"""

from collections.abc import Iterable, Iterator, Sequence

import attrs

from headwater.compiler import StreamsConfig
from headwater.compiler.java.patterns import JavaPattern, UntranslatablePatternError
from headwater.compiler.streams_config import has_library
from headwater.model.acls import (
    ANY_NAME,
    Acl,
    AclDeclaration,
    InternalTopicAcls,
    Operation,
    Pattern,
    Permission,
    ResourceKind,
)
from headwater.model.compiled import CompiledApplication, TopicKind
from headwater.model.problems import Problem, ProblemCode, Severity
from headwater.model.records import OWNERSHIP_TOPIC
from headwater.planner.evidence.names import internal_prefix
from headwater.planner.phrases import listed


@attrs.frozen
class Need:
    """A permission and, in a few words, why it is needed."""

    permission: Permission
    reason: str


def least_needs(needs: Iterable[Need]) -> tuple[Need, ...]:
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


def topic_needs(name: str, *operations: Operation, reason: str) -> Iterable[Need]:
    """Yield needs for topics. A star at the end of `name` stands for all names with this prefix."""
    for operation in operations:
        yield Need(named_permission(ResourceKind.TOPIC, name, operation), reason)


def named_permission(kind: ResourceKind, name: str, operation: Operation) -> Permission:
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
    """Return the names of the changelog topics."""
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


def application_needs(
    compiled: CompiledApplication, declared: AclDeclaration | None = None
) -> tuple[Need, ...]:
    """Return the needs of an application. Partition counts need not be known."""
    return least_needs(
        (
            *_source_needs(compiled),
            *_sink_needs(compiled),
            *_declared_needs(declared),
            *_internal_topics(compiled, declared.internal_topics if declared else InternalTopicAcls.LITERAL),
            *_library_needs(compiled),
            *_coordination_needs(compiled),
        )
    )


def incomplete_needs(compiled: CompiledApplication, declared: AclDeclaration) -> Iterator[Problem]:
    """Yield a warning for each need that the topology does not show and the document does not declare."""
    if not declared.writes:
        if compiled.is_observed:
            yield _unknown_topology(compiled, declared)
        if compiled.extractor_sinks:
            yield _unknown_sinks(compiled, declared)
    if not declared.reads:
        for pattern in compiled.source_patterns:
            if not pattern_names(pattern):
                yield _pattern_without_prefix(pattern, compiled, declared)


def _source_needs(compiled: CompiledApplication) -> Iterator[Need]:
    for pattern in compiled.source_patterns:
        for name in pattern_names(pattern):
            yield from topic_needs(name, Operation.READ, reason=f"source, by the pattern {pattern}")
    for name in source_topics(compiled):
        is_global = name in compiled.global_topics
        yield from topic_needs(name, Operation.READ, reason="global table" if is_global else "source")


def _sink_needs(compiled: CompiledApplication) -> Iterator[Need]:
    for name in sink_topics(compiled):
        yield from topic_needs(name, Operation.WRITE, reason="sink")


def _declared_needs(declared: AclDeclaration | None) -> Iterator[Need]:
    for name in declared.reads if declared else ():
        yield from topic_needs(name, Operation.READ, reason="declared in `reads`")
    for name in declared.writes if declared else ():
        yield from topic_needs(name, Operation.WRITE, reason="declared in `writes`")


def _internal_topics(compiled: CompiledApplication, named: InternalTopicAcls) -> Iterator[Need]:
    """Yield the needs. Delete is for full names only: a prefix would include changelog topics."""
    repartition, changelogs = repartition_topics(compiled), changelog_topics(compiled)
    if named is InternalTopicAcls.PREFIXED and (repartition or changelogs):
        prefix = f"{internal_prefix(compiled)}{ANY_NAME}"
        yield from topic_needs(prefix, Operation.READ, Operation.WRITE, reason="internal topics")
    for name in repartition:
        yield from topic_needs(name, Operation.READ, Operation.WRITE, reason="repartition topic")
        yield from topic_needs(name, Operation.DELETE, reason="deletes what it has read")
    for name in changelogs:
        yield from topic_needs(name, Operation.READ, Operation.WRITE, reason="changelog")
    for name in _expandable_changelogs(compiled):
        yield from topic_needs(name, Operation.ALTER, reason="headwater processors expand")


def _expandable_changelogs(compiled: CompiledApplication) -> frozenset[str]:
    """Return the changelog topics to which an application adds partitions when it gets more processors."""
    parts = [part for part in compiled.subtopologies if part.processors is not None]
    return frozenset(topic for part in parts for topic in part.changelog_topics)


def _library_needs(compiled: CompiledApplication) -> Iterator[Need]:
    """Yield what the client supplier of the library needs, if the application's config names it."""
    config = compiled.application.config
    if not has_library(config):
        return
    if "internal.topics.setup" in config:
        reason = "the client supplier compares the recorded ids of internal topics"
        yield from topic_needs(OWNERSHIP_TOPIC, Operation.READ, reason=reason)
    for name in (*repartition_topics(compiled), *changelog_topics(compiled)):
        if "internal.topics.setup" in config:
            yield from topic_needs(
                name, Operation.DESCRIBE_CONFIGS, reason="the client supplier checks configs"
            )
        if StreamsConfig.from_application(compiled.application).autoscaling:
            yield from topic_needs(name, Operation.ALTER, reason="the client supplier expands")


def _coordination_needs(compiled: CompiledApplication) -> Iterator[Need]:
    id_ = compiled.application.id
    if compiled.is_observed or any(not part.is_global for part in compiled.subtopologies):
        yield Need(Permission(ResourceKind.GROUP, id_, Operation.READ), "consumer group")
    if _may_shut_down_all_clients(compiled):
        permission = Permission(ResourceKind.GROUP, f"{id_}-shutdown", Operation.READ)
        yield Need(permission, "shutdown-application of headwater run")
    if StreamsConfig.from_application(compiled.application).guarantee.is_exactly_once:
        permission = Permission(ResourceKind.TRANSACTIONAL_ID, f"{id_}-", Operation.WRITE, Pattern.PREFIXED)
        yield Need(permission, "transactions (exactly once)")


def _may_shut_down_all_clients(compiled: CompiledApplication) -> bool:
    """Return whether a client of `headwater run` may request that all stop, in a group of its own."""
    handler = StreamsConfig.from_application(compiled.application).uncaught_exception_handler or ""
    return ":" in handler or handler.strip() == "shutdown-application"


def _unknown_topology(compiled: CompiledApplication, declared: AclDeclaration) -> Problem:
    return Problem(
        code=ProblemCode.ACLS_INCOMPLETE,
        summary=f"The topology of {compiled.application.id} is not known, so its sink topics are not known.",
        application=compiled.application.id,
        expected="`writes` in `acls`, or the text of Topology#describe()",
        found="topics observed on a cluster",
        why="Without Write on its sink topics the application fails with a TopicAuthorizationException.",
        fix="List its sink topics in `writes` of `acls`, and sources that are not in `observed` in `reads`.",
        location=declared.at,
        severity=Severity.WARNING,
    )


def _unknown_sinks(compiled: CompiledApplication, declared: AclDeclaration) -> Problem:
    return Problem(
        code=ProblemCode.ACLS_INCOMPLETE,
        summary="An extractor chooses the sink topics, so their ACLs are not known.",
        application=compiled.application.id,
        node=listed(compiled.extractor_sinks),
        expected="`writes` in `acls`: the topics that the extractor may choose",
        found="none",
        why="Without Write on a topic that it chooses the application fails with a "
        "TopicAuthorizationException.",
        fix="List the topics in `writes` of `acls`. A star at the end of a name stands for all names with "
        "this prefix.",
        location=declared.at,
        severity=Severity.WARNING,
    )


def _pattern_without_prefix(pattern: str, compiled: CompiledApplication, declared: AclDeclaration) -> Problem:
    return Problem(
        code=ProblemCode.ACLS_INCOMPLETE,
        summary=f"The source pattern {pattern} has no fixed prefix: only topics that match now get an ACL.",
        application=compiled.application.id,
        expected="a pattern with a fixed prefix, or `reads` in `acls`",
        found=pattern,
        why="Without permission the application does not see a topic: it would not read a new one that "
        "matches, without an error.",
        fix="Start the pattern with a prefix that all names share, or list the topics in `reads` of `acls`. "
        "A star at the end of a name stands for all names with this prefix.",
        location=declared.at,
        severity=Severity.WARNING,
    )
