"""The least rights with which Kafka Streams (4.1) runs an application whose internal topics exist.

| what Kafka Streams does | class | needs |
|---|---|---|
| subscribes, fetches, commits | `StreamThread`, `RecordCollectorImpl` | Read on sources and group |
| reads all of a global table at start | `GlobalStateManagerImpl` | Read on its topic |
| writes and reads repartition topics | `RecordCollectorImpl`, `StreamThread` | Write, Read |
| deletes what it has read of them | `TaskManager#maybePurgeCommittedRecords` | Delete |
| writes changelogs, restores from them | `StoreChangelogReader` | Write, Read |
| looks whether they exist, where they end | `InternalTopicManager` | Describe, which Read implies |
| begins and commits transactions | `StreamsProducer` (exactly once) | Write on its transactional ids |

Nothing needs DescribeConfigs: the checks of settings in `InternalTopicManager#validate` are never called. An
idempotent producer needs no right of its own since brokers 3.0 (KIP-679): to write to some topic is enough.
Transactional ids are `<application.id>-<process id>-<thread>`.
"""

from collections.abc import Iterator

from infra.compiler import StreamsConfig
from infra.compiler.streams_config import Guarantee
from infra.model.acls import (
    ANY_NAME,
    AclDeclaration,
    InternalTopicAcls,
    Operation,
    Pattern,
    ResourceKind,
    Right,
)
from infra.model.compiled import CompiledApplication
from infra.model.problems import Problem, ProblemCode, Severity
from infra.planner.acls.needs import Need, least, topic
from infra.planner.acls.topics import (
    changelog_topics,
    internal_prefix,
    pattern_names,
    repartition_topics,
    sink_topics,
    source_topics,
)
from infra.planner.phrases import listed


def application_needs(
    compiled: CompiledApplication, declared: AclDeclaration | None = None
) -> tuple[Need, ...]:
    """Return what the application needs; partition counts need not be known."""
    return least(
        (
            *_sources(compiled),
            *_sinks(compiled),
            *_further(declared),
            *_internal_topics(compiled, declared.internal_topics if declared else InternalTopicAcls.LITERAL),
            *_coordination(compiled),
        )
    )


def incomplete_needs(compiled: CompiledApplication, declared: AclDeclaration) -> Iterator[Problem]:
    """Yield a warning for each thing that cannot be known and was not declared."""
    if not declared.writes:
        if compiled.is_observed:
            yield _unknown_topology(compiled, declared)
        if compiled.extractor_sinks:
            yield _unknown_sinks(compiled, declared)
    if not declared.reads:
        for pattern in compiled.source_patterns:
            if not pattern_names(pattern):
                yield _vague_pattern(pattern, compiled, declared)


def _sources(compiled: CompiledApplication) -> Iterator[Need]:
    for pattern in compiled.source_patterns:
        for name in pattern_names(pattern):
            yield from topic(name, Operation.READ, reason=f"source, by the pattern {pattern}")
    for name in source_topics(compiled):
        is_global = name in compiled.global_topics
        yield from topic(name, Operation.READ, reason="global table" if is_global else "source")


def _sinks(compiled: CompiledApplication) -> Iterator[Need]:
    for name in sink_topics(compiled):
        yield from topic(name, Operation.WRITE, reason="sink")


def _further(declared: AclDeclaration | None) -> Iterator[Need]:
    for name in declared.reads if declared else ():
        yield from topic(name, Operation.READ, reason="declared in `reads`")
    for name in declared.writes if declared else ():
        yield from topic(name, Operation.WRITE, reason="declared in `writes`")


def _internal_topics(compiled: CompiledApplication, named: InternalTopicAcls) -> Iterator[Need]:
    """Deletion is granted by full names only: with a prefix it would be that of changelogs, too."""
    repartition, changelogs = repartition_topics(compiled), changelog_topics(compiled)
    if named is InternalTopicAcls.PREFIXED and (repartition or changelogs):
        prefix = f"{internal_prefix(compiled)}{ANY_NAME}"
        yield from topic(prefix, Operation.READ, Operation.WRITE, reason="internal topics")
    for name in repartition:
        yield from topic(name, Operation.READ, Operation.WRITE, reason="repartition topic")
        yield from topic(name, Operation.DELETE, reason="deletes what it has read")
    for name in changelogs:
        yield from topic(name, Operation.READ, Operation.WRITE, reason="changelog")


def _coordination(compiled: CompiledApplication) -> Iterator[Need]:
    id_ = compiled.application.id
    if compiled.is_observed or any(not part.is_global for part in compiled.subtopologies):
        yield Need(Right(ResourceKind.GROUP, id_, Operation.READ), "consumer group")
    if StreamsConfig.of(compiled.application).guarantee is Guarantee.EXACTLY_ONCE_V2:
        right = Right(ResourceKind.TRANSACTIONAL_ID, f"{id_}-", Operation.WRITE, Pattern.PREFIXED)
        yield Need(right, "transactions (exactly once)")


def _unknown_topology(compiled: CompiledApplication, declared: AclDeclaration) -> Problem:
    return Problem(
        code=ProblemCode.ACLS_INCOMPLETE,
        summary=f"The topology of {compiled.application.id} is not known: nor is what it writes.",
        application=compiled.application.id,
        expected="`writes` in `acls`, or the text of Topology#describe()",
        found="topics that were found on a cluster",
        why="Without Write on its sink topics the application fails with a TopicAuthorizationException.",
        fix="List its sink topics in `writes` of `acls`, and the sources that `observed` lacks in `reads`.",
        location=declared.at,
        severity=Severity.WARNING,
    )


def _unknown_sinks(compiled: CompiledApplication, declared: AclDeclaration) -> Problem:
    return Problem(
        code=ProblemCode.ACLS_INCOMPLETE,
        summary="An extractor chooses the topics that are written: their ACLs cannot be known.",
        application=compiled.application.id,
        node=listed(compiled.extractor_sinks),
        expected="`writes` in `acls`: the topics that the extractor may choose",
        found="none",
        why="Without Write on a topic that it chooses the application fails with a "
        "TopicAuthorizationException.",
        fix="List the topics in `writes` of `acls`; a star at the end of a name stands for all names that "
        "begin so.",
        location=declared.at,
        severity=Severity.WARNING,
    )


def _vague_pattern(pattern: str, compiled: CompiledApplication, declared: AclDeclaration) -> Problem:
    return Problem(
        code=ProblemCode.ACLS_INCOMPLETE,
        summary=f"The source pattern {pattern} does not say how the names begin: only topics that match now "
        "get an ACL.",
        application=compiled.application.id,
        expected="a pattern that begins with text, or `reads` in `acls`",
        found=pattern,
        why="To the application a topic that it may not see does not exist: a new one that matches would "
        "silently not be read.",
        fix="Begin the pattern with text that all names share, or list the topics in `reads` of `acls`; a "
        "star at the end of a name stands for all names that begin so.",
        location=declared.at,
        severity=Severity.WARNING,
    )
