"""Find the topics whose owner is in question: only for them a plan reads groups, offsets and records."""

from collections.abc import Collection, Iterator, Mapping, Sequence

from headwater.model.cluster import ClusterSnapshot, EvidenceRequest
from headwater.model.compiled import CompiledApplication
from headwater.model.records import SetupRecord
from headwater.model.topology import Lifecycle
from headwater.planner.evidence.names import beginnings, is_created_by_streams


def evidence_request(
    compiled: Sequence[CompiledApplication],
    snapshot: ClusterSnapshot,
    records: Mapping[str, SetupRecord] | None,
    in_question: Collection[str] = (),
) -> EvidenceRequest:
    """Return what a plan must read about topics that exist, and that it would adopt or delete.

    `in_question` are further topics, any of whose readers matter. A topic is adopted on its settings. Without
    them, the group of the application must read it. A plan without a stack (`records` None) shows all topics
    as adopted: it asks only about those without such settings.
    """
    is_known = records is not None
    records = records or {}
    adopted = frozenset(_adopted(compiled, records)) & snapshot.topics.keys()
    deleted = frozenset((*_deleted(compiled, records), *in_question)) & snapshot.topics.keys()
    unproven = [name for name in adopted if not is_created_by_streams(snapshot.topics[name])]
    return EvidenceRequest(
        topics=(adopted if is_known else frozenset(unproven)) | deleted,
        offsets_of=None if deleted else frozenset(id_ for name in unproven for id_ in beginnings(name)),
        with_ownership=bool(deleted),
        with_ownership_policy=any(_is_deleted(record, compiled) for record in records.values()),
    )


def _adopted(compiled: Sequence[CompiledApplication], records: Mapping[str, SetupRecord]) -> Iterator[str]:
    for each in compiled:
        record = records.get(each.application.id)
        if each.application.lifecycle is Lifecycle.ACTIVE and not (record and record.unfinished):
            recorded = record.topics if record else {}
            yield from (topic.name for topic in each.internal_topics if topic.name not in recorded)


def _deleted(compiled: Sequence[CompiledApplication], records: Mapping[str, SetupRecord]) -> Iterator[str]:
    documents = {each.application.id: each.application for each in compiled}
    for application in documents.values():
        if application.lifecycle is Lifecycle.ACTIVE:
            yield from (*application.leftovers.retire, *application.leftovers.delete)
    for id_, record in records.items():
        document = documents.get(id_)
        is_ending = record.retired if document is None else document.lifecycle is Lifecycle.RETIRED
        if is_ending:
            yield from (topic.name for topic in record.topics.values() if not topic.is_sink)


def _is_deleted(record: SetupRecord, compiled: Sequence[CompiledApplication]) -> bool:
    """Whether the run deletes topics of a record, instead of preparing it."""
    documents = {each.application.id: each.application for each in compiled}
    document = documents.get(record.application_id)
    if document is None:
        return record.retired
    return any(topic.is_retired for topic in record.topics.values())
