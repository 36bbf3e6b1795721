"""The least privileges that Headwater itself needs, by purpose."""

from collections.abc import Iterator, Sequence
from enum import StrEnum

from headwater.compiler import StreamsConfig
from headwater.model.acls import ANY_NAME, CLUSTER_NAME, Operation, Permission, ResourceKind
from headwater.model.compiled import CompiledApplication
from headwater.model.expansions import AGENT_PREFIX
from headwater.model.records import OWNERSHIP_TOPIC
from headwater.planner.acls.application import (
    Need,
    changelog_topics,
    least_needs,
    named_permission,
    pattern_names,
    repartition_topics,
    sink_topics,
    source_topics,
    topic_needs,
)
from headwater.planner.evidence.names import internal_prefix


class Purpose(StrEnum):
    """PLAN reads (`plan`, `drift`, previews), UP also changes, RETIRE also deletes; AGENT expands topics.

    RESHARD moves state (`reshard`, `state copy`).
    """

    PLAN = "plan"
    UP = "up"
    RETIRE = "retire"
    AGENT = "agent"
    RESHARD = "reshard"


def headwater_needs(purpose: Purpose, compiled: Sequence[CompiledApplication] = ()) -> tuple[Need, ...]:
    """Return the needs of Headwater for these applications; without any, for all of a cluster."""
    needs: list[Need] = []
    for application in compiled or (None,):
        managed = _managed_topics(application)
        needs += _needs_to_see(application, managed)
        if purpose is Purpose.AGENT:
            needs += _needs_to_expand(managed)
        else:
            needs += _needs_to_compare(application, managed)
        if purpose in (Purpose.UP, Purpose.RETIRE):
            needs += _needs_to_change(application, managed)
        if purpose is Purpose.RETIRE:
            needs += _needs_to_delete(managed[0])
        if purpose is Purpose.RESHARD:
            needs += _needs_to_move(application, managed[0])
    if purpose is Purpose.AGENT:
        needs += _coordination_needs()
    elif purpose is not Purpose.RESHARD:
        needs += _ownership_needs(purpose)
    return least_needs(needs)


def _managed_topics(application: CompiledApplication | None) -> Sequence[str]:
    """Return the topics that Headwater manages: internal ones first, then managed sinks."""
    if application is None:
        return [ANY_NAME]
    return [f"{internal_prefix(application)}{ANY_NAME}", *(sink.topic for sink in application.sinks)]


def _needs_to_see(application: CompiledApplication | None, managed: Sequence[str]) -> Iterator[Need]:
    for name in _source_topics_or_any(application):
        yield from topic_needs(name, Operation.DESCRIBE, reason="count the partitions of source topics")
    for name in managed:
        yield from topic_needs(name, Operation.DESCRIBE, reason="see which topics exist, and their counts")
    group = application.application.id if application else ANY_NAME
    yield Need(
        Permission(ResourceKind.GROUP, group, Operation.DESCRIBE), "see whether the application is running"
    )


def _needs_to_compare(application: CompiledApplication | None, managed: Sequence[str]) -> Iterator[Need]:
    for name in managed:
        yield from topic_needs(name, Operation.DESCRIBE_CONFIGS, reason="compare settings")
    for name in sorted(sink_topics(application) - set(managed)) if application else ():
        yield from topic_needs(name, Operation.DESCRIBE, reason="see whether the sink topic exists")
    if application is None or application.application.acls is not None:
        yield _cluster_need(Operation.DESCRIBE, "see which ACLs exist")
    if application is None or _leaves_replicas_to_brokers(application):
        yield _cluster_need(Operation.DESCRIBE_CONFIGS, "read the brokers' default replication factor")


def _needs_to_expand(managed: Sequence[str]) -> Iterator[Need]:
    for name in managed:
        yield from topic_needs(name, Operation.ALTER, reason="add partitions")


def _needs_to_change(application: CompiledApplication | None, managed: Sequence[str]) -> Iterator[Need]:
    for name in managed:
        yield from topic_needs(name, Operation.CREATE, reason="create topics")
        yield from topic_needs(name, Operation.ALTER_CONFIGS, reason="change settings")
    yield from _needs_to_expand(managed)
    if application is None or application.application.acls is not None:
        yield _cluster_need(Operation.ALTER, "grant and revoke ACLs")


def _needs_to_delete(internal: str) -> Iterator[Need]:
    yield from topic_needs(internal, Operation.DELETE, reason="delete topics of retired applications")
    yield Need(
        Permission(ResourceKind.GROUP, ANY_NAME, Operation.DESCRIBE), "see whether other clients read a topic"
    )
    yield from topic_needs(
        OWNERSHIP_TOPIC, Operation.DESCRIBE_CONFIGS, reason="see whether the topic can lose records"
    )


def _needs_to_move(application: CompiledApplication | None, internal: str) -> Iterator[Need]:
    yield from topic_needs(
        internal, Operation.READ, Operation.WRITE, reason="move entries and unprocessed records"
    )
    yield from topic_needs(internal, Operation.ALTER, reason="add partitions")
    yield from topic_needs(internal, Operation.CREATE, reason="create topics of renamed stores")
    for name in _source_topics_or_any(application):
        yield from topic_needs(name, Operation.READ, reason="check unprocessed records")
        yield from topic_needs(name, Operation.ALTER, reason="add partitions")
    group = application.application.id if application else ANY_NAME
    yield Need(Permission(ResourceKind.GROUP, group, Operation.READ), "commit offsets")
    ids = f"{application.application.id}-headwater-{ANY_NAME}" if application else ANY_NAME
    yield Need(named_permission(ResourceKind.TRANSACTIONAL_ID, ids, Operation.WRITE), "write in transactions")


def _source_topics_or_any(application: CompiledApplication | None) -> Sequence[str]:
    """Return the source topics. A pattern without a fixed prefix needs Describe on all topics."""
    if application is None:
        return [ANY_NAME]
    patterns = [pattern_names(pattern) or [ANY_NAME] for pattern in application.source_patterns]
    return [*source_topics(application), *(name for names in patterns for name in names)]


def _leaves_replicas_to_brokers(application: CompiledApplication) -> bool:
    internal = repartition_topics(application) | changelog_topics(application)
    is_open = StreamsConfig.from_application(application.application).replication_factor < 1
    return (bool(internal) and is_open) or any(sink.replication_factor is None for sink in application.sinks)


def _coordination_needs() -> Iterator[Need]:
    own = f"{AGENT_PREFIX}{ANY_NAME}"
    yield from topic_needs(
        own, Operation.READ, Operation.WRITE, Operation.CREATE, reason="elect a leader, remember expansions"
    )
    yield from topic_needs(
        own, Operation.ALTER_CONFIGS, reason="protect these records by settings of the topic"
    )
    yield Need(named_permission(ResourceKind.GROUP, own, Operation.READ), "elect a leader")


def _ownership_needs(purpose: Purpose) -> Iterator[Need]:
    yield from topic_needs(OWNERSHIP_TOPIC, Operation.READ, reason="see which stack manages an application")
    yield Need(
        named_permission(ResourceKind.GROUP, OWNERSHIP_TOPIC, Operation.DESCRIBE), "read these records"
    )
    if purpose is not Purpose.PLAN:
        yield from topic_needs(
            OWNERSHIP_TOPIC, Operation.WRITE, Operation.CREATE, reason="record which stack manages it"
        )
        yield from topic_needs(
            OWNERSHIP_TOPIC, Operation.ALTER_CONFIGS, reason="protect these records by settings of the topic"
        )


def _cluster_need(operation: Operation, reason: str) -> Need:
    return Need(Permission(ResourceKind.CLUSTER, CLUSTER_NAME, operation), reason)
