"""The version of Kafka Streams in the setup record: that of the last run."""

from collections.abc import Mapping, Sequence

import attrs

from headwater.compiler import compile_documents
from headwater.model.compiled import CompiledApplication
from headwater.model.records import SetupRecord
from headwater.model.topology import Application, TopologyDocument
from headwater.model.versions import BEFORE_VERSIONS, KafkaStreamsVersion, read_any_version, read_version


def with_recorded_versions(
    documents: Sequence[TopologyDocument], records: Mapping[str, SetupRecord]
) -> tuple[TopologyDocument, ...]:
    """Return the documents; one that names no version has that of its setup record.

    So a later default does not change the topics of an application that is set up.
    """
    return tuple(_with(document, _version(document.application, records)) for document in documents)


def _version(application: Application, records: Mapping[str, SetupRecord]) -> KafkaStreamsVersion:
    record = records.get(application.id) or records.get(application.renamed_from or "")
    if application.names_version or record is None or record.unfinished:
        return application.kafka_streams
    if not record.kafka_streams:
        return BEFORE_VERSIONS
    recorded = read_any_version(record.kafka_streams)
    return application.kafka_streams if recorded is None or recorded.is_newer else recorded


def compile_recorded(
    documents: Sequence[TopologyDocument],
    records: Mapping[str, SetupRecord],
    partitions: Mapping[str, int],
) -> Mapping[str, CompiledApplication]:
    """Return application id → the application compiled for the recorded version, where that is another one.

    Applications without calls are omitted: a text of one version does not show what another one builds.
    `partitions`: topic → partition count on the cluster.
    """
    changed = {
        document.application.id: recorded
        for document in documents
        if document.has_calls
        if (recorded := _recorded(records.get(document.application.id))) is not None
        if recorded != document.application.kafka_streams
    }
    if not changed:
        return {}
    compiled = compile_documents(
        [
            _with(document, changed.get(document.application.id, document.application.kafka_streams))
            for document in documents
        ],
        partitions,
    )
    return {each.application.id: each for each in compiled if each.application.id in changed}


def _recorded(record: SetupRecord | None) -> KafkaStreamsVersion | None:
    return read_version(record.kafka_streams) if record is not None else None


def _with(document: TopologyDocument, version: KafkaStreamsVersion) -> TopologyDocument:
    return attrs.evolve(document, application=attrs.evolve(document.application, kafka_streams=version))
