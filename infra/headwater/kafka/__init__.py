"""Read the live cluster with the Kafka admin client into a `ClusterSnapshot`.

Contains the connection (`Connection`), what to read (`SnapshotRequest`), and the clients. Decides nothing.
"""

from typing import TYPE_CHECKING

from headwater import names_on_use
from headwater.kafka.connection import Connection

if TYPE_CHECKING:
    from headwater.kafka.kafka_reader import KafkaClusterReader
    from headwater.kafka.reader import ClusterReader, SnapshotRequest, snapshot_request

__all__ = ["ClusterReader", "Connection", "KafkaClusterReader", "SnapshotRequest", "snapshot_request"]
_MODULES = {
    "ClusterReader": "reader",
    "KafkaClusterReader": "kafka_reader",
    "SnapshotRequest": "reader",
    "snapshot_request": "reader",
}

if not TYPE_CHECKING:  # options of commands need the connection only
    __getattr__, __dir__ = names_on_use(__name__, _MODULES)
