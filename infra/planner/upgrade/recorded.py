"""The applications as the last run compiled them: for the version of Kafka Streams in the setup record."""

from collections.abc import Mapping, Sequence

import attrs

from infra.compiler import compile_documents
from infra.model.compiled import CompiledApplication
from infra.model.record import SetupRecord
from infra.model.topology import TopologyDocument
from infra.model.versions import KafkaStreamsVersion, read_version


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
        if document.described is None and document.observed is None
        if (recorded := _recorded(records.get(document.application.id))) is not None
        if recorded != document.application.kafka_streams
    }
    if not changed:
        return {}
    compiled = compile_documents([_with(document, changed) for document in documents], partitions)
    return {each.application.id: each for each in compiled if each.application.id in changed}


def _recorded(record: SetupRecord | None) -> KafkaStreamsVersion | None:
    return read_version(record.kafka_streams) if record is not None else None


def _with(document: TopologyDocument, versions: Mapping[str, KafkaStreamsVersion]) -> TopologyDocument:
    application = document.application
    version = versions.get(application.id, application.kafka_streams)
    return attrs.evolve(document, application=attrs.evolve(application, kafka_streams=version))
