"""The live cluster, read through the Kafka admin client and handed over as a `ClusterSnapshot`.

Belongs here: how to connect (`Connection`), what to ask (`SnapshotRequest`), the client that asks. Nothing
here decides.
"""

from infra.observe.connection import Connection
from infra.observe.kafka_reader import KafkaClusterReader
from infra.observe.reader import ClusterReader, SnapshotRequest
from infra.observe.request import snapshot_request

__all__ = ["ClusterReader", "Connection", "KafkaClusterReader", "SnapshotRequest", "snapshot_request"]
