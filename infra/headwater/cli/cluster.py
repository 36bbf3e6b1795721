"""Reading the cluster that a command line names."""

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING

import attrs

from headwater.cli.console import ProblemsExit
from headwater.kafka import Connection
from headwater.kafka.command_line import NamedCluster
from headwater.model.problems import ProblemCode, ProblemsError
from headwater.model.topology import TopologyDocument

if TYPE_CHECKING:
    from headwater.model.cluster import ClusterSnapshot

NEED_A_CLUSTER = frozenset({ProblemCode.MISSING_SOURCE_TOPIC, ProblemCode.UNDECIDABLE_PARTITIONS})
"""Problems of documents that are compiled without the partition counts of a cluster."""


def read_counts(documents: Sequence[TopologyDocument], cluster: NamedCluster) -> Mapping[str, int]:
    """Return topic → partition count for the documents, empty if the command line names no cluster.

    Raises:
        ProblemsExit: The connection settings are invalid, or the cluster could not be read.
    """
    try:
        connection = cluster.named_connection()
        return read_snapshot(documents, connection).partitions if connection else {}
    except ProblemsError as error:
        raise ProblemsExit(error) from None


def read_snapshot(
    documents: Sequence[TopologyDocument], connection: Connection, *, protocol_is_known: bool = True
) -> "ClusterSnapshot":
    """Return a snapshot of the topics and groups of the documents.

    Without `protocol_is_known`, groups are also searched among groups of the streams protocol.

    Raises:
        ProblemsError: The cluster could not be read.
    """
    from headwater.kafka import KafkaClusterReader, snapshot_request  # noqa: PLC0415 - only for a cluster

    request = snapshot_request(documents, {})
    if not protocol_is_known:
        request = attrs.evolve(request, streams_groups=frozenset(request.groups))
    return KafkaClusterReader(connection).read(request)
