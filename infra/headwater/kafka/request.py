"""The snapshot request for documents and setup records."""

from collections.abc import Iterable, Iterator, Mapping, Sequence

from headwater.kafka.reader import SnapshotRequest
from headwater.model.nodes import SourceNode
from headwater.model.operators import (
    AddGlobalStore,
    AddReadOnlyStateStore,
    AddSource,
    GlobalTable,
    ReadStream,
    ReadTable,
)
from headwater.model.record import SetupRecord
from headwater.model.topology import Application, Protocol, TopologyDocument

_PREFIX_CONFIG = "__internal.override.topic.prefix__"


def snapshot_request(
    documents: Sequence[TopologyDocument], records: Mapping[str, SetupRecord]
) -> SnapshotRequest:
    """Return the request; `records` is application id → setup record.

    Requests source topics by name: the answer distinguishes a missing topic from a missing permission.
    """
    recorded = {topic.name: topic.topic_id for record in records.values() for topic in record.topics.values()}
    sinks = {sink.topic for document in documents for sink in document.sinks}
    sources = {topic for document in documents for topic in _sources(document)}
    applications = [document.application for document in documents]
    prefixes = tuple(sorted({prefix for application in applications for prefix in _prefixes(application)}))
    only_read = sources - sinks - recorded.keys()
    return SnapshotRequest(
        prefixes=prefixes,
        names=frozenset(sinks | sources | recorded.keys()),
        groups=tuple(sorted({application.id for application in applications} | records.keys())),
        streams_groups=frozenset(
            {application.id for application in applications if application.protocol is Protocol.STREAMS}
            | (records.keys() - {application.id for application in applications})
        ),
        with_features=any(application.protocol is Protocol.STREAMS for application in applications),
        recorded={name: id_ for name, id_ in sorted(recorded.items()) if id_},
        # The changelog of one application may be the source of another.
        sources=frozenset(topic for topic in only_read if not topic.startswith(prefixes)),
        acl_principals=frozenset(_principals(applications, records)),
    )


def _principals(applications: Iterable[Application], records: Mapping[str, SetupRecord]) -> Iterator[str]:
    """Yield the principals of the ACLs that documents declare or the stack recorded."""
    for application in applications:
        yield from application.acls.principals if application.acls else ()
    for record in records.values():
        yield from (acl.principal for acl in record.acls)


def _prefixes(application: Application) -> Iterable[str]:
    return {f"{application.id}-", f"{application.config.get(_PREFIX_CONFIG) or application.id}-"}


def _sources(document: TopologyDocument) -> Iterator[str]:
    """Yield the source topics; internal topics have no prefix in an imported text."""
    for step in document.steps:
        match step.operator:
            case ReadStream(topics=topics) | AddSource(topics=topics):
                yield from topics.names
            case (
                ReadTable(topic=topic)
                | GlobalTable(topic=topic)
                | AddGlobalStore(topic=topic)
                | AddReadOnlyStateStore(topic=topic)
            ):
                yield topic
    if document.observed is not None:
        yield from document.observed.sources
    if document.described is not None or document.exported is not None:
        from headwater.compiler import build_nodes  # noqa: PLC0415 - not needed for documents of calls

        # The text of a described topology does not say which topics are internal; its completion does.
        nodes = build_nodes(document)
        internal = {topic.name for topic in nodes.repartition_topics}
        for node in nodes.nodes:
            if isinstance(node, SourceNode):
                yield from set(node.topics) - internal
