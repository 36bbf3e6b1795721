"""Backends keep the state of a task between batches; `BatchedState` is the protocol of a batch over them."""

from collections.abc import Collection, Iterator, Mapping
from typing import Protocol

import attrs
from sortedcontainers import SortedDict  # type: ignore[import-untyped]

from headwater.model.offset_metadata import BATCH_ID
from headwater_spark.engine.stores.interfaces import Pair, SortedReads
from headwater_spark.engine.stores.overlay import Changes, Overlay
from headwater_spark.engine.stores.store_layouts import stores_to_restore


@attrs.frozen
class Batch:
    """What a backend has besides its stores. `version` is the number of applied batches."""

    version: int = 0
    metadata: Mapping[str, int] = attrs.field(factory=dict)
    offsets: Mapping[str, int] = attrs.field(factory=dict)


@attrs.frozen
class Prepared:
    """A batch that is processed, but perhaps not committed."""

    batch: int
    metadata: Mapping[str, int]
    changes: Changes


class Backend(Protocol):
    """Ordered stores that apply a batch all or nothing."""

    def open(self, store: str) -> SortedReads:
        """Return the store as of the latest batch; it remains valid after `apply`."""
        ...

    def latest(self) -> Batch: ...
    def apply(self, changes: Changes, batch: Batch) -> None:
        """Apply changes and `batch` together, all or nothing."""
        ...

    def save_prepared(self, prepared: Prepared) -> None:
        """Replace the prepared batch, all or nothing."""
        ...

    def prepared(self) -> Prepared | None: ...
    def clear(self) -> None:
        """Delete everything, so that the state can be restored from the changelog topics."""
        ...

    def layouts(self) -> Mapping[str, str]:
        """Return store → layout of its entries (`engine.stores.store_layouts`), as far as it is known."""
        ...

    def replace_layouts(self, layouts: Mapping[str, str], cleared: Collection[str], batch: Batch) -> None:
        """Clear stores, and replace the layouts and the latest batch, all or nothing."""
        ...

    def close(self) -> None: ...


class BatchedState:
    """Stores and clocks of a task on a backend: overlays have the writes of a batch until it is committed."""

    def __init__(self, backend: Backend) -> None:
        self._backend = backend
        self._overlays: dict[str, Overlay] = {}
        self.metadata: dict[str, int] = dict(backend.latest().metadata)
        """Clocks and schedules by name, as of the last applied batch; the task updates them. One object."""

    @property
    def version(self) -> int:
        """The number of applied batches, which is also the number of the next batch."""
        return self._backend.latest().version

    def store(self, name: str) -> Overlay:
        """Return a store with the writes of the running batch; always the same object."""
        if name not in self._overlays:
            self._overlays[name] = Overlay(self._backend.open(name))
        return self._overlays[name]

    def changes(self) -> Changes:
        return {name: overlay.written for name, overlay in self._overlays.items() if overlay.written}

    def prepare(self, batch: int) -> None:
        """Save the running batch durably, separate from the stores."""
        changes = {name: dict(entries) for name, entries in self.changes().items()}
        self._backend.save_prepared(Prepared(batch, dict(self.metadata), changes))

    def commit(self, batch: int, offsets: Mapping[str, int] | None = None) -> None:
        """Apply the running batch to the stores, all or nothing.

        `offsets`: changelog topic → offset to restore from next.
        """
        self._apply(self.changes(), batch, self.metadata, offsets or {})

    def recover(self, version: int, batch_id: int | None = None) -> bool:
        """Apply the prepared batch if this leads to `version`; False = restore from the changelog topics.

        `batch_id` is the id of the batch that was committed as `version`; None = it has none.
        """
        if self.version == version and self.metadata.get(BATCH_ID) == batch_id:
            return True
        prepared = self._backend.prepared()
        if prepared is None or prepared.batch + 1 != version or self.version != prepared.batch:
            return False
        if prepared.metadata.get(BATCH_ID) != batch_id:
            return False
        self._clear_overlays()
        self._apply(prepared.changes, prepared.batch, prepared.metadata, {})
        self.metadata.clear()
        self.metadata.update(prepared.metadata)
        return True

    def reset(self) -> None:
        """Delete all stores and go back to version 0, to restore from the changelog topics as one batch."""
        self._clear_overlays()
        self.metadata.clear()
        self._backend.clear()

    def offsets(self) -> Mapping[str, int]:
        """Changelog topic → first offset that is not in the state yet."""
        return self._backend.latest().offsets

    def has_layouts(self) -> bool:
        """Return whether the layouts of the entries are known; earlier versions did not record them."""
        return bool(self._backend.layouts())

    def adopt_layouts(self, layouts: Mapping[str, str], changelogs: Mapping[str, str]) -> tuple[str, ...]:
        """Clear the stores whose entries have another layout than in `layouts`; return their names.

        `changelogs` is store → topic that it is restored from. What is known of these topics is forgotten, so
        that they are read from their beginning.
        """
        known, latest = self._backend.layouts(), self._backend.latest()
        cleared = stores_to_restore(known, layouts)
        if {**known, **layouts} == known:
            return cleared
        self._clear_overlays()
        self.forget_clocks(cleared)
        forgotten = {changelogs[store] for store in cleared if store in changelogs}
        offsets = {topic: offset for topic, offset in latest.offsets.items() if topic not in forgotten}
        batch = Batch(latest.version, dict(self.metadata), offsets)
        self._backend.replace_layouts({**known, **layouts}, cleared, batch)
        return cleared

    def forget_clocks(self, stores: Collection[str]) -> None:
        """Forget the times of stores, which are restored with their entries."""
        for name in [name for name in self.metadata if name.rpartition("/")[0] in stores]:
            del self.metadata[name]

    def close(self) -> None:
        self._clear_overlays()
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
        self._clear_overlays()

    def _clear_overlays(self) -> None:
        for overlay in self._overlays.values():
            overlay.clear()


class MemoryBytes:
    """`SortedReads` of a sorted dictionary."""

    __slots__ = ("_entries", "get")

    def __init__(self) -> None:
        self._entries: SortedDict[bytes, bytes] = SortedDict()
        self.get = self._entries.get

    def put(self, key: bytes, value: bytes) -> None:
        self._entries[key] = value

    def delete(self, key: bytes) -> None:
        self._entries.pop(key, None)

    def clear(self) -> None:
        self._entries.clear()

    def range(self, start: bytes = b"", end: bytes | None = None) -> Iterator[Pair]:
        entries = self._entries
        return ((key, entries[key]) for key in entries.irange(start, end, (True, False)))

    def reverse_range(self, start: bytes = b"", end: bytes | None = None) -> Iterator[Pair]:
        entries = self._entries
        return ((key, entries[key]) for key in entries.irange(start, end, (True, False), reverse=True))


class MemoryBackend:
    """Keeps the state in memory. It may outlive a `BatchedState`, as a disk does."""

    def __init__(self) -> None:
        self._stores: dict[str, MemoryBytes] = {}
        self._batch = Batch()
        self._layouts: Mapping[str, str] = {}
        self._prepared: Prepared | None = None

    def open(self, store: str) -> SortedReads:
        return self._stores.setdefault(store, MemoryBytes())

    def latest(self) -> Batch:
        return self._batch

    def apply(self, changes: Mapping[str, Mapping[bytes, bytes | None]], batch: Batch) -> None:
        for store, entries in changes.items():
            entries_of_store = self._stores.setdefault(store, MemoryBytes())
            for key, value in entries.items():
                if value is None:
                    entries_of_store.delete(key)
                else:
                    entries_of_store.put(key, value)
        self._batch = batch

    def save_prepared(self, prepared: Prepared) -> None:
        self._prepared = prepared

    def prepared(self) -> Prepared | None:
        return self._prepared

    def clear(self) -> None:
        for store in self._stores.values():
            store.clear()
        self._batch = Batch()
        self._layouts = {}
        self._prepared = None

    def layouts(self) -> Mapping[str, str]:
        return self._layouts

    def replace_layouts(self, layouts: Mapping[str, str], cleared: Collection[str], batch: Batch) -> None:
        for store in self._stores.keys() & set(cleared):
            self._stores[store].clear()
        self._layouts, self._batch = layouts, batch

    def close(self) -> None:
        """Do nothing."""
