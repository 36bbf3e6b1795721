"""What `headwater import` adds to a description: details of the cluster, unknown details, differences."""

from collections.abc import Iterable, Iterator, Sequence

import attrs

from headwater.cli.imported_documents import DescribedApplication, group_sentence, store_options
from headwater.cli.inputs import NEED_A_CLUSTER, read_snapshot
from headwater.compiler import compile_documents
from headwater.compiler.described import (
    compare_with_cluster,
    complete_from_cluster,
    find_unknown,
    has_run,
    live_naming,
)
from headwater.kafka import Connection, KafkaClusterReader
from headwater.kafka.evidence import with_evidence
from headwater.model.cluster import ClusterSnapshot, EvidenceRequest
from headwater.model.compiled import CompiledApplication
from headwater.model.problems import Problem, ProblemCode, errors
from headwater.model.topology import (
    Application,
    DescribedTopology,
    Protocol,
    TopologyDocument,
    UnknownDetails,
)
from headwater.planner.evidence.names import internal_to
from headwater.planner.evidence.topics import Evidence
from headwater.spec import load_text
from headwater.spec.topic_configs import is_valid

_DETAILS = ("kind", "retention", "logging", "overrides")


def complete_description(
    imported: DescribedApplication, connection: Connection | None, file: str, *, assume_defaults: bool
) -> tuple[DescribedApplication, tuple[Problem, ...]]:
    """Add the details that the live topics have, list the unknown ones; return the problems that remain.

    `connection` None = no cluster is read. `file` is the location of problems. Raises `ProblemsError` if the
    cluster could not be read.
    """
    loaded = load_text(imported.document(), file)
    if not loaded.documents:
        return imported, loaded.problems
    snapshot = None
    if connection is not None:
        snapshot = read_snapshot(loaded.documents, connection, protocol_is_known=False)
        imported = with_cluster_details(imported, loaded.documents[0], snapshot)
        loaded = load_text(imported.document(), file)
    if loaded.documents:
        imported = with_unknown_details(
            imported, loaded.documents[0], snapshot, assume_defaults=assume_defaults
        )
        loaded = load_text(imported.document(), file)
    compiled = compile_documents(loaded.documents, {} if snapshot is None else snapshot.partitions)
    found = [problem for each in compiled for problem in each.problems]
    if snapshot is None:
        found = [problem for problem in found if problem.code not in NEED_A_CLUSTER]
    else:
        found += differences_from_cluster(
            compiled, loaded.documents, with_owners(compiled, loaded.documents, snapshot, connection)
        )
    return imported, (*loaded.problems, *found)


def missing_details(problems: Sequence[Problem]) -> list[str]:
    """Return a sentence for each detail that a document needs and does not have."""
    return [
        f"{problem.summary} {problem.fix}"
        for problem in errors(problems)
        if problem.code is ProblemCode.MISSING_DETAIL
    ]


def with_cluster_details(
    imported: DescribedApplication, document: TopologyDocument, snapshot: ClusterSnapshot
) -> DescribedApplication:
    """Return `imported` with the details that the topics and the group of the cluster show."""
    if document.described is None:
        return imported
    application = _with_protocol(document.application, snapshot)
    described = complete_from_cluster(document.described, application, snapshot)
    configs = [item for detail in described.stores.values() for item in detail.overrides.items()]
    return attrs.evolve(
        imported,
        uses_streams_protocol=application.protocol is Protocol.STREAMS,
        observed=group_sentence(imported.application_id, snapshot),
        repartitions=described.repartition_partitions,
        stores={name: store_options(detail) for name, detail in described.stores.items()},
        copartitioned=described.copartitioned,
        created_by=described.created_by,
        broker_configs=sorted({name for name, value in configs if not is_valid(name, value)}),
    )


def _with_protocol(application: Application, snapshot: ClusterSnapshot) -> Application:
    group = snapshot.groups.get(application.id)
    if group is None or not group.is_streams:
        return application
    return attrs.evolve(application, protocol=Protocol.STREAMS)


def with_unknown_details(
    imported: DescribedApplication,
    document: TopologyDocument,
    snapshot: ClusterSnapshot | None,
    *,
    assume_defaults: bool,
) -> DescribedApplication:
    """Return `imported` with a list of what neither the text, the options nor the cluster shows.

    The topics of an application that has run show its settings and counts, its group shows the protocol.
    `assume_defaults`: only the version, for which Kafka Streams has no default, is listed.
    """
    if document.described is None:
        return imported
    naming = live_naming(document.described, document.application)
    live: Iterable[str] = () if snapshot is None else snapshot.topics
    has_topics = snapshot is not None and has_run(document.described, document.application, snapshot)
    known = {
        store: _DETAILS if has_topics and _is_read(naming.changelog(store), snapshot) else options.keys()
        for store, options in imported.stores.items()
    }
    unknown = (
        UnknownDetails() if assume_defaults else find_unknown(document.described, document.application, known)
    )
    has_group = snapshot is not None and imported.application_id in snapshot.groups
    shown = {"kafkaStreams": imported.names_version, "protocol": has_group, "config": has_topics}
    return attrs.evolve(
        imported,
        unknown=attrs.evolve(
            unknown,
            repartitions=tuple(
                topic for topic in unknown.repartitions if f"{naming.prefix}-{topic}" not in live
            ),
            application=tuple(each for each in ("kafkaStreams", *unknown.application) if not shown[each]),
        ),
    )


def _is_read(changelog: str, snapshot: ClusterSnapshot | None) -> bool:
    """Return whether the cluster shows the changelog with its settings, or that it does not exist."""
    return snapshot is not None and (changelog not in snapshot.topics or changelog in snapshot.described)


def differences_from_cluster(
    compiled: Sequence[CompiledApplication], documents: Iterable[TopologyDocument], snapshot: ClusterSnapshot
) -> Iterator[Problem]:
    """Yield each difference between the documents and the cluster that they were imported from.

    `snapshot` has the evidence for the owners of the topics in `undeclared_topics`.
    """
    evidence = Evidence(compiled, snapshot, {})
    for application, document in zip(compiled, documents, strict=True):
        described = _described_topology(document)
        if described is not None:
            own = [
                name
                for name in undeclared_topics(application, document, snapshot)
                if evidence.about_topic(application.application.id, snapshot.topics[name]).is_proven
            ]
            yield from compare_with_cluster(
                application, described, snapshot, own, is_exported=document.exported is not None
            )


def _described_topology(document: TopologyDocument) -> DescribedTopology | None:
    """Return the nodes of the document without details, which a comparison does not need."""
    if document.exported is not None:
        return DescribedTopology(document.exported.nodes, document.exported.at)
    return document.described


def undeclared_topics(
    compiled: CompiledApplication, document: TopologyDocument, snapshot: ClusterSnapshot
) -> frozenset[str]:
    """Return the topics that are named like internal topics of the application, and that it does not have."""
    described = _described_topology(document)
    if described is None:
        return frozenset()
    prefix = live_naming(described, compiled.application).prefix
    return internal_to(prefix, snapshot.topics) - {topic.name for topic in compiled.internal_topics}


def with_owners(
    compiled: Sequence[CompiledApplication],
    documents: Sequence[TopologyDocument],
    snapshot: ClusterSnapshot,
    connection: Connection | None,
) -> ClusterSnapshot:
    """Return the snapshot with the groups that may own topics which no document has, if there are any."""
    named = (undeclared_topics(*each, snapshot) for each in zip(compiled, documents, strict=True))
    topics = frozenset().union(*named)
    if connection is None or not topics:
        return snapshot
    return with_evidence(KafkaClusterReader(connection), snapshot, EvidenceRequest(topics=topics))
