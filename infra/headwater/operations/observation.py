"""Read a cluster, and compile documents for its partition counts.

Imports that need time are made while the cluster answers: a plan of a few documents takes less than a second.
"""

from collections.abc import Callable, Mapping, Sequence

import attrs

from headwater.kafka import snapshot_request
from headwater.kafka.evidence import with_evidence
from headwater.kafka.expansion_journal import with_agent_expansions
from headwater.kafka.kafka_reader import check_visible
from headwater.kafka.processor_state import with_processor_state
from headwater.kafka.reader import ClusterReader, SnapshotRequest
from headwater.model.cluster import ClusterSnapshot, EvidenceRequest
from headwater.model.cluster_profiles import recognize_profile
from headwater.model.compiled import CompiledApplication
from headwater.model.problems import APPLICATION, PLAN, Caller
from headwater.model.records import SetupRecord
from headwater.model.topology import TopologyDocument

Compiled = tuple[CompiledApplication, ...]
Questions = Callable[[Compiled, ClusterSnapshot, Mapping[str, SetupRecord] | None], EvidenceRequest]
"""Which topics have an owner in question: of these, groups and offsets are read, too."""


@attrs.frozen
class Observation:
    """Documents, compiled for the cluster of `snapshot`. `records` None = of no stack."""

    documents: Sequence[TopologyDocument]
    compiled: Compiled
    snapshot: ClusterSnapshot
    records: Mapping[str, SetupRecord] | None


def observe_cluster(
    reader: ClusterReader,
    documents: Sequence[TopologyDocument],
    records: Mapping[str, SetupRecord] | None,
    *,
    with_ownership: bool,
    with_topologies: bool = False,
    prepare: Callable[[], Questions | None] = lambda: None,
) -> Observation:
    """Compile `documents` for the cluster, and read what a plan of them depends on.

    `records` is application id → setup record. `with_ownership`: also the ownership records.
    `with_topologies`: also the topologies of all groups that have the streams protocol, whatever documents
    declare. `prepare` is called while the cluster answers: it imports what the caller needs afterwards, and
    returns its questions; None = the questions of a plan.

    Raises:
        ProblemsError: The cluster could not be read, or a topic is not visible.
    """
    request = snapshot_request(documents, records or {})
    if with_topologies:
        request = attrs.evolve(request, streams_groups=frozenset(request.groups), with_nodes=True)
    reading = reader.begin(attrs.evolve(request, with_ids=records is not None, with_ownership=with_ownership))
    from headwater.compiler import compile_documents  # noqa: PLC0415 - overlaps with requests
    from headwater.planner.evidence.topics import evidence_request  # noqa: PLC0415 - overlaps with requests

    questions = prepare()
    compiled = compile_documents(documents, reading.partitions)
    snapshot = reading.snapshot()
    if snapshot.partitions != reading.partitions:  # a topic became visible in between
        compiled = compile_documents(documents, snapshot.partitions)
    check_visible(reader, snapshot, compiled)
    documents, compiled = _compile_for_profile(documents, snapshot, compiled)
    snapshot = with_processor_state(reader, snapshot, compiled)
    if questions is None:  # only a plan says who has expanded a topic
        snapshot = with_agent_expansions(reader, snapshot, records or {})
    asked = (questions or evidence_request)(compiled, snapshot, records)
    return Observation(documents, compiled, with_evidence(reader, snapshot, asked), records)


def observe_application(
    reader: ClusterReader,
    document: TopologyDocument,
    record: SetupRecord | None = None,
    *,
    with_group: bool = False,
    purpose: str = "",
) -> Observation:
    """Compile `document` for the cluster, and read the topics that its application checks itself.

    `record` has the topics that the application has found before. `with_group`: also the consumer group.
    `purpose` is what the user is for, as `headwater acls --for` names it; empty = the application.

    Raises:
        ProblemsError: The cluster could not be read.
    """
    records = {} if record is None else {record.application_id: record}
    request = attrs.evolve(_request_own_topics(document, records), purpose=purpose)
    if not with_group:
        # A coordinator that starts answers late, and librdkafka (2.16) aborts the process then.
        request = attrs.evolve(request, groups=(), streams_groups=frozenset())
    snapshot = reader.read(request)
    from headwater.compiler import compile_documents  # noqa: PLC0415 - slow to import

    compiled = compile_documents([document], snapshot.partitions, APPLICATION)
    documents, compiled = _compile_for_profile([document], snapshot, compiled, APPLICATION)
    return Observation(documents, compiled, snapshot, records)


def _request_own_topics(document: TopologyDocument, records: Mapping[str, SetupRecord]) -> SnapshotRequest:
    """Request no settings of topics that the application only reads: it need not have permission for them."""
    request = snapshot_request([document], records)
    others = request.names - {sink.topic for sink in document.sinks}
    read = frozenset(name for name in others if not name.startswith(request.prefixes))
    return attrs.evolve(request, sources=read)


def _compile_for_profile(
    documents: Sequence[TopologyDocument],
    snapshot: ClusterSnapshot,
    compiled: Compiled,
    caller: Caller = PLAN,
) -> tuple[Sequence[TopologyDocument], Compiled]:
    """Return documents and topics for the kind of cluster that is recognized."""
    from headwater.compiler import compile_documents  # noqa: PLC0415 - slow to import
    from headwater.compiler.cluster_profiles import with_profile  # noqa: PLC0415 - slow to import

    recognized = with_profile(documents, recognize_profile(snapshot.cluster_id, snapshot.hosts))
    if recognized is documents:
        return documents, compiled
    return recognized, compile_documents(recognized, snapshot.partitions, caller)
