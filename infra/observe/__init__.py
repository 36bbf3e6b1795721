"""Read the live cluster with the Kafka admin client into a `ClusterSnapshot`.

Contains the connection (`Connection`), what to read (`SnapshotRequest`), and the clients. Decides nothing.
"""

from infra.observe.connection import Connection
from infra.observe.kafka_reader import KafkaClusterReader
from infra.observe.reader import ClusterReader, SnapshotRequest
from infra.observe.request import snapshot_request

__all__ = ["ClusterReader", "Connection", "KafkaClusterReader", "SnapshotRequest", "snapshot_request"]
