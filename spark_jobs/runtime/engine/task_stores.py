"""The stores of one task: opened when they are first asked for, flushed at the end of a batch."""

from collections.abc import Mapping

from infra.model.behaviors import RunProcessor, StreamAggregate
from infra.model.nodes import ProcessorNode, StateStore
from spark_jobs.runtime.engine.records import Value
from spark_jobs.runtime.engine.stores.opening import OpenStore, Restore, StoreServices, open_store

_CACHED_KINDS = frozenset({"keyValue", "timestampedKeyValue", "window", "timestampedWindow", "session"})


class TaskStores:
    """Looks up, opens and flushes.

    Args:
        services: The task.
        lent: Typed stores of global tables.
    """

    def __init__(self, services: StoreServices, lent: Mapping[str, Value]) -> None:
        self._services = services
        self._lent = lent
        self._kept = {store.name: store for store in services.program.stores}
        self._open: dict[str, OpenStore] = {}
        behaviors = [node.behavior for node in services.program.nodes if isinstance(node, ProcessorNode)]
        self._emit_on_close = frozenset(
            behavior.store
            for behavior in behaviors
            if isinstance(behavior, StreamAggregate) and behavior.emit_on_close
        )
        self._of_operators = frozenset(
            store
            for behavior in behaviors
            if not isinstance(behavior, RunProcessor)
            and isinstance(store := getattr(behavior, "store", None), str)
        )

    def typed(self, name: str) -> Value:
        """Raises KeyError for a store that the sub-topology does not know."""
        lent = self._lent.get(name)
        return lent if lent is not None else self._opened(name).typed

    def is_global(self, name: str) -> bool:
        return name in self._lent or (name in self._kept and self._kept[name].is_global)

    def all(self) -> Mapping[str, Value]:
        return {name: self._opened(name).typed for name in self._kept}

    def restore_of(self, topic: str) -> Restore:
        """Raises KeyError for a topic that no store is restored from."""
        for kept in self._kept.values():
            if topic in (self._services.program.changelog(kept.name), self._source_of(kept)):
                return self._opened(kept.name).restore
        raise KeyError(topic)

    def flush(self) -> None:
        """Caches in the order of the program's stores, which may fill later ones; then expiry and buffers."""
        for name in self._kept:
            opened = self._open.get(name)
            if opened is not None and opened.cached is not None:
                opened.cached.flush()
        for opened in self._open.values():
            for finish in opened.at_end:
                finish()

    def _opened(self, name: str) -> OpenStore:
        opened = self._open.get(name)
        if opened is None:
            kept = self._kept[name]
            opened = self._open[name] = open_store(
                kept,
                self._services,
                cache=self._is_cached(kept),
                emits_on_close=name in self._emit_on_close,
            )
        return opened

    def _is_cached(self, kept: StateStore) -> bool:
        """Operators' stores are unless they are told not to be, users' own only if they are told so."""
        keeps = kept.keeps
        if keeps is None or keeps.kind not in _CACHED_KINDS or kept.is_global:
            return False
        if self._services.program.settings.cache_max_bytes <= 0 or kept.name in self._emit_on_close:
            return False
        return keeps.caching is not False if kept.name in self._of_operators else keeps.caching is True

    def _source_of(self, kept: StateStore) -> str | None:
        """The source topic that serves as changelog, by its name on the cluster."""
        return self._services.program.source_changelog(kept.name)
