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
from typing import Final

from headwater.model.nodes import StateStore
from headwater_spark.engine.records import Value
from headwater_spark.engine.stores.cached import Cached
from headwater_spark.engine.stores.opening import OpenStore, Restore, StoreServices, open_store
from headwater_spark.engine.stores.store_layouts import stores_emitted_on_close

_MAX_FLUSHES: Final = 1000
_REPEATS_WRITTEN: Final = 2
"""The flushes of a batch that write updates which do not change their store."""


def task_name_of(application: str, subtopology: str, task: int) -> str:
    """Return the name of a task: its transactional id, client id and the name of its lease file."""
    return f"{application}-{subtopology}-{task}"


class EndlessUpdatesError(Exception):
    """Record caches have updates however often they are flushed."""


class TaskStores:
    """Finds, opens and flushes stores. The global task owns the `global_stores`."""

    def __init__(self, services: StoreServices, global_stores: Mapping[str, Value]) -> None:
        self._services = services
        self._global = global_stores
        self._declared = {store.name: store for store in services.program.stores}
        self._open: dict[str, OpenStore] = {}
        self._emit_on_close = stores_emitted_on_close(services.program)

    def typed_store(self, name: str) -> Value:
        """Return the typed store; raise KeyError if the sub-topology has no such store."""
        global_store = self._global.get(name)
        return global_store if global_store is not None else self._opened(name).typed

    def is_global(self, name: str) -> bool:
        return name in self._global or (name in self._declared and self._declared[name].is_global)

    def all(self) -> Mapping[str, Value]:
        return {name: self._opened(name).typed for name in self._declared}

    def restore_of(self, topic: str) -> Restore:
        """Return the function that restores from a topic; raise KeyError if no store is restored from it."""
        for name in self._declared:
            program = self._services.program
            if topic in (program.changelog(name), program.source_changelog(name)):
                return self._opened(name).restore
        raise KeyError(topic)

    def flush(self) -> None:
        """Flush the caches until they have no update, then expire.

        Raises:
            EndlessUpdatesError: The updates cause new ones again and again.
        """
        self._flush_caches()
        for cached in self._caches().values():
            cached.clear()
        self._services.record_cache.clear()
        for opened in self._open.values():
            for finish in opened.at_end:
                finish()

    def _flush_caches(self) -> None:
        """Flush the caches in the order of the program's stores, as one may fill a later one.

        A processor may also write to an earlier one (`ProcessorStateManager#flushCache`). In Kafka Streams,
        this update waits for the next commit. Caches end with their batch, so here a second commit follows at
        once, and more of them as long as stores change.
        """
        flushed: list[str] = []
        for number in range(_MAX_FLUSHES):
            if number >= _REPEATS_WRITTEN:
                for cached in self._caches().values():
                    cached.drop_repeats()
            flushed = [name for name, cached in self._caches().items() if cached.flush()]
            if not flushed:
                return
        raise EndlessUpdatesError(
            f"the updates of {', '.join(flushed)} cause new ones without end; "
            "a processor that writes to the table that it reads must put a value only if it differs"
        )

    def _caches(self) -> dict[str, Cached]:
        """Return the caches in the order of the program's stores; a flush may open further ones."""
        found = {name: self._open[name].cached for name in self._declared if name in self._open}
        return {name: cached for name, cached in found.items() if cached is not None}

    def _opened(self, name: str) -> OpenStore:
        opened = self._open.get(name)
        if opened is None:
            store = self._declared[name]
            opened = self._open[name] = open_store(
                store,
                self._services,
                cache=self._is_cached(store),
                emits_on_close=name in self._emit_on_close,
            )
        return opened

    def _is_cached(self, store: StateStore) -> bool:
        """Return whether a store has a cache here: not if it is global, as no node receives its updates."""
        has_cache = self._services.program.settings.cache_max_bytes > 0
        return has_cache and store.keeps is not None and store.keeps.caching and not store.is_global
