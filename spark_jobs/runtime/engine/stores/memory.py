"""Ordered bytes in memory."""

from collections.abc import Iterable, Iterator, Mapping

from sortedcontainers import SortedDict  # type: ignore[import-untyped]

from spark_jobs.runtime.engine.stores.backend import Batch, Prepared
from spark_jobs.runtime.engine.stores.interfaces import Pair, SortedReads


class MemoryBytes:
    """`OrderedBytes` in a sorted dictionary."""

    __slots__ = ("_entries", "get")

    def __init__(self, entries: Iterable[Pair] = ()) -> None:
        self._entries: SortedDict[bytes, bytes] = SortedDict(entries)
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
    """A task's state that ends with the process; it may outlive a `BatchedState`, as a disk would."""

    def __init__(self) -> None:
        self._stores: dict[str, MemoryBytes] = {}
        self._batch = Batch()
        self._prepared: Prepared | None = None

    def open(self, store: str) -> SortedReads:
        return self._stores.setdefault(store, MemoryBytes())

    def latest(self) -> Batch:
        return self._batch

    def apply(self, changes: Mapping[str, Mapping[bytes, bytes | None]], batch: Batch) -> None:
        for store, entries in changes.items():
            kept = self._stores.setdefault(store, MemoryBytes())
            for key, value in entries.items():
                if value is None:
                    kept.delete(key)
                else:
                    kept.put(key, value)
        self._batch = batch

    def save_prepared(self, prepared: Prepared) -> None:
        self._prepared = prepared

    def prepared(self) -> Prepared | None:
        return self._prepared

    def clear(self) -> None:
        for store in self._stores.values():
            store.clear()
        self._batch = Batch()
        self._prepared = None

    def close(self) -> None:
        """Nothing to do."""
