"""What a task needs of its state, and what persists a batch: the seam between the engine and its storage.

    state = LocalState.open(folder, stores)          # or MemoryState(stores)
    if state.version < batch: state.recover(batch)   # else from the changelogs: see `restoring`
    outputs = task.process(records, wall_clock_ms)
    state.prepare(batch)                             # durable: changes and metadata of the batch
    ...                                              # one transaction: outputs, offsets, metadata
    state.commit(batch)                              # applied; version = batch + 1

Killed before the transaction: the prepared batch is thrown away by `discard`, which `open` does not do by
itself, since only the committed marker tells. Killed after it: `recover(batch + 1)` applies it.
"""

from collections.abc import Mapping
from typing import Protocol

from spark_jobs.runtime.engine.stores.overlay import Overlay

Changes = Mapping[str, Mapping[bytes, bytes | None]]
"""Store → key → value, None = deleted: what a batch wrote, each key once."""


class TaskState(Protocol):
    """Stores and clocks of one task."""

    @property
    def version(self) -> int:
        """Batches that are in: the next one has this number."""
        ...

    def store(self, name: str) -> Overlay:
        """A store with what the running batch wrote; the object stays the same from batch to batch."""
        ...

    @property
    def metadata(self) -> dict[str, int]:
        """Clocks and schedules by name, as of the last batch that is in; the task puts them here."""
        ...

    def changes(self) -> Changes: ...

    def prepare(self, batch: int) -> None:
        """Keeps the running batch durably, apart from the stores."""
        ...

    def commit(self, batch: int, offsets: Mapping[str, int] | None = None) -> None:
        """Puts the running batch into the stores, all or nothing.

        `offsets`: changelog topic → next offset.
        """
        ...

    def rollback(self) -> None:
        """Forgets what the running batch wrote."""
        ...

    def recover(self, version: int) -> bool:
        """Applies the prepared batch if that makes the state `version`; False = restore from changelogs."""
        ...

    def offsets(self) -> Mapping[str, int]:
        """Changelog topic → next offset that the state does not hold yet."""
        ...

    def close(self) -> None: ...
