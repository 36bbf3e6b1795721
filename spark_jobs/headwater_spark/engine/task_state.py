"""The state of a task, and the protocol that persists a batch: the interface between engine and storage.

    state = LocalState(folder)                       # or MemoryState()
    if state.version < version: state.recover(version)    # False: restore from the changelog topics
    outputs = task.process(records, wall_clock_ms)
    state.prepare(version)                           # changes and metadata of the batch are durable
    ...                                              # one Kafka transaction: outputs, offsets, metadata
    state.commit(version)                            # changes are applied; state.version is version + 1

If the process dies before the transaction, the prepared batch is never applied, as the committed offset
metadata still has its version. If it dies after the transaction, `recover(version + 1)` applies the batch.
Another process may have committed the next version from other records meanwhile: each batch has a random id
(`BATCH_ID` in its metadata).
"""

from collections.abc import Mapping
from typing import Protocol

from headwater_spark.engine.stores.overlay import Changes, Overlay


class TaskState(Protocol):
    """Stores and clocks of one task."""

    @property
    def version(self) -> int:
        """The number of applied batches, which is also the number of the next batch."""
        ...

    def store(self, name: str) -> Overlay:
        """Return a store with the writes of the running batch; always the same object."""
        ...

    @property
    def metadata(self) -> dict[str, int]:
        """Clocks and schedules by name, as of the last applied batch; the task updates them. One object."""
        ...

    def changes(self) -> Changes: ...

    def prepare(self, batch: int) -> None:
        """Save the running batch durably, separate from the stores."""
        ...

    def commit(self, batch: int, offsets: Mapping[str, int] | None = None) -> None:
        """Apply the running batch to the stores, all or nothing.

        `offsets`: changelog topic → offset to restore from next.
        """
        ...

    def rollback(self) -> None:
        """Discard the writes of the running batch."""
        ...

    def recover(self, version: int, batch_id: int | None = None) -> bool:
        """Apply the prepared batch if this leads to `version`; False = restore from the changelog topics.

        `batch_id` is that of the batch that was committed as `version`; None = it has none.
        """
        ...

    def offsets(self) -> Mapping[str, int]:
        """Changelog topic → first offset that is not in the state yet."""
        ...

    def close(self) -> None: ...


def task_name_of(application: str, subtopology: str, task: int) -> str:
    """Return the name of a task: its transactional id, client id and the name of its lease file."""
    return f"{application}-{subtopology}-{task}"
