"""Read the live cluster with the Kafka admin client into a `ClusterSnapshot`.

Contains the connection (`Connection`), what to read (`SnapshotRequest`), and the clients. Decides nothing.
"""

from importlib import import_module
from typing import TYPE_CHECKING

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


if not TYPE_CHECKING:  # type checkers would accept every name of a module with this function

    def __getattr__(name: str) -> object:
        """Import what reads a cluster when it is first used: options of commands need the connection only."""
        if name not in _MODULES:
            raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
        return getattr(import_module(f"{__name__}.{_MODULES[name]}"), name)


def __dir__() -> list[str]:
    """Return the names of the package, also names that were not used yet."""
    return sorted({*globals(), *__all__})
