"""Read the live cluster with the Kafka admin client into a `ClusterSnapshot`.

Contains the connection (`Connection`), what to read (`SnapshotRequest`), and the clients. Decides nothing.
"""

from headwater.kafka.connection import Connection
from headwater.kafka.kafka_reader import KafkaClusterReader
from headwater.kafka.reader import ClusterReader, SnapshotRequest, snapshot_request

__all__ = ["ClusterReader", "Connection", "KafkaClusterReader", "SnapshotRequest", "snapshot_request"]
