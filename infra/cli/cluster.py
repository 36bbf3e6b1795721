"""The cluster that a command line names."""

from collections.abc import Mapping, Sequence

import attrs

from infra.model.cluster import ClusterSnapshot
from infra.model.record import SetupRecord
from infra.model.topology import TopologyDocument
from infra.observe import Connection, KafkaClusterReader, snapshot_request


def read(
    documents: Sequence[TopologyDocument],
    records: Mapping[str, SetupRecord],
    connected: Connection,
    *,
    protocol_is_known: bool = True,
) -> ClusterSnapshot:
    """Return a snapshot of the topics and groups of the documents and records.

    Without `protocol_is_known`, groups are also searched among those of the streams protocol.

    Raises:
        ProblemsError: The cluster could not be read.
    """
    request = snapshot_request(documents, records)
    if not protocol_is_known:
        request = attrs.evolve(request, streams_groups=frozenset(request.groups))
    return KafkaClusterReader(connected).read(request)
