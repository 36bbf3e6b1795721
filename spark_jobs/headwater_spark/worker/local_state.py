"""The states of tasks (`TaskState`) on disk and in memory."""

from pathlib import Path

from headwater_spark.engine.stores.backend import BatchedState, MemoryBackend
from headwater_spark.worker.lmdb_backend import LmdbBackend


class LocalState(BatchedState):
    """State in a folder of the local disk: `<state.dir>/<application id>/<sub-topology>_<partition>`."""

    def __init__(self, folder: Path) -> None:
        self._lmdb = LmdbBackend(folder)
        super().__init__(self._lmdb)

    def release(self) -> None:
        """Release the folder to another process, without waiting for the disk."""
        self._lmdb.release()


class MemoryState(BatchedState):
    """State that ends with the process."""

    def __init__(self) -> None:
        super().__init__(MemoryBackend())
