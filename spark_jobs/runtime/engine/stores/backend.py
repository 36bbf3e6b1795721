"""Where a task's state lies between batches, and the protocol of a batch over it."""

from collections.abc import Mapping
from typing import Protocol

import attrs

from spark_jobs.runtime.engine.stores.interfaces import SortedReads
from spark_jobs.runtime.engine.stores.overlay import Overlay
from spark_jobs.runtime.engine.task_state import Changes


@attrs.frozen
class Batch:
    """What a backend holds besides its stores: everything up to and without batch `version`."""

    version: int = 0
    metadata: Mapping[str, int] = attrs.field(factory=dict)
    offsets: Mapping[str, int] = attrs.field(factory=dict)


@attrs.frozen
class Prepared:
    """A batch that is decided but not yet known to be committed."""

    batch: int
    metadata: Mapping[str, int]
    changes: Changes


class Backend(Protocol):
    """Ordered stores that take a batch all or nothing."""

    def open(self, store: str) -> SortedReads:
        """The store as of the latest batch; stays valid after `apply`."""
        ...

    def latest(self) -> Batch: ...
    def apply(self, changes: Changes, batch: Batch) -> None:
        """Changes and `batch` together, all or nothing."""
        ...

    def save_prepared(self, prepared: Prepared) -> None:
        """Takes the place of the one before; all or nothing."""
        ...

    def prepared(self) -> Prepared | None: ...
    def clear(self) -> None:
        """Forgets everything: a state that is wrong is restored from the changelogs."""
        ...

    def close(self) -> None: ...


class BatchedState:
    """`TaskState` over a backend: a batch's writes lie in overlays until they are committed."""

    def __init__(self, backend: Backend) -> None:
        self._backend = backend
        self._overlays: dict[str, Overlay] = {}
        self.metadata: dict[str, int] = dict(backend.latest().metadata)

    @property
    def version(self) -> int:
        return self._backend.latest().version

    def store(self, name: str) -> Overlay:
        if name not in self._overlays:
            self._overlays[name] = Overlay(self._backend.open(name))
        return self._overlays[name]

    def changes(self) -> Changes:
        return {name: overlay.written for name, overlay in self._overlays.items() if overlay.written}

    def prepare(self, batch: int) -> None:
        changes = {name: dict(entries) for name, entries in self.changes().items()}
        self._backend.save_prepared(Prepared(batch, dict(self.metadata), changes))

    def commit(self, batch: int, offsets: Mapping[str, int] | None = None) -> None:
        self._apply(self.changes(), batch, self.metadata, offsets or {})

    def rollback(self) -> None:
        self._forget()
        self.metadata.clear()
        self.metadata.update(self._backend.latest().metadata)

    def recover(self, version: int) -> bool:
        if self.version == version:
            return True
        prepared = self._backend.prepared()
        if prepared is None or prepared.batch + 1 != version or self.version != prepared.batch:
            return False
        self._forget()
        self._apply(prepared.changes, prepared.batch, prepared.metadata, {})
        self.metadata.clear()
        self.metadata.update(prepared.metadata)
        return True

    def reset(self) -> None:
        """Empty stores and version 0, to be restored from the changelogs as one batch."""
        self._forget()
        self.metadata.clear()
        self._backend.clear()

    def offsets(self) -> Mapping[str, int]:
        return self._backend.latest().offsets

    def close(self) -> None:
        self._forget()
        self._backend.close()

    def _apply(
        self,
        changes: Changes,
        batch: int,
        metadata: Mapping[str, int],
        offsets: Mapping[str, int],
    ) -> None:
        known = {**self.offsets(), **offsets}
        self._backend.apply(changes, Batch(batch + 1, dict(metadata), known))
        self._forget()

    def _forget(self) -> None:
        for overlay in self._overlays.values():
            overlay.clear()
