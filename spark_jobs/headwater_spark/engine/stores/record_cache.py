"""The bound of a task's record caches: which entries are cached, and when they leave.

Follows `ThreadCache` and `NamedCache`. A write or a read makes an entry the latest of its store. While the
entries of all stores need more bytes than the bound, the store that was just written or read loses its oldest
entry. If that has an update that was not flushed yet, all such updates of the store are flushed, the oldest
entry's first.

Until the cache is half full, entries are not counted: an upper limit of their bytes is kept
(`uncounted.UncountedEntries`). Then the order and the sizes of the entries are computed from what the batch
did, and each further read and write counts. The values of the entries are in `cached.Cached`. Entries are
forgotten when a batch ends.
"""

from collections import OrderedDict
from collections.abc import Callable, Iterable, Sequence
from typing import Final, Protocol

from headwater_spark.engine.records import Context, Headers

ENTRY_BYTES = 45
"""What an entry needs besides its key, value, topic and headers: `LRUNode` 24, timestamp and offset 16,
partition 4, the mark of an update 1."""

_COUNTS: Final = -1
"""The limit of an estimate: none."""

Update = tuple[bytes, Context]
"""A key whose latest value is to be flushed, and the context of that value."""

Flush = Callable[[Sequence[Update]], Iterable[bytes]]
"""Writes and forwards updates; returns the keys that were deleted."""


def bytes_per_thread(total: int, threads: int, *, has_global_thread: bool) -> int:
    """Return the bound of a stream thread's cache, in bytes (`KafkaStreams#cacheSizePerThread`).

    `total` is `statestore.cache.max.bytes`. Of the threads, only those that are alive count.
    """
    return total // (threads + has_global_thread) if threads else total


def cached_size(key: bytes, value: bytes | None, context: Context) -> int:
    """Return the bytes of an update in a record cache."""
    _, headers, record = context
    size = ENTRY_BYTES + len(key) + len(value or b"") + len(record[0])
    return size + header_bytes(headers) if headers else size


def header_bytes(headers: Headers) -> int:
    """Return what headers add to an entry (`ProcessorRecordContext#residentMemorySizeEstimate`)."""
    return sum(len(name) + len(value or b"") for name, value in headers)


class Uncounted(Protocol):
    """Entries of one store that are not counted."""

    def bytes_at_most(self) -> int:
        """Return at least the bytes of the entries; forget what later entries have replaced."""
        ...

    def count(self) -> None:
        """Move the entries to the store's `StoreEntries`."""
        ...


class RecordCache:
    """The entries of all cached stores of a task (`ThreadCache`).

    All attributes are public, as the hot path uses them. `bound` is in bytes. Entries are counted if `limit`
    is negative: `size` is the number of their bytes. Otherwise `estimate` is at least the number of their
    bytes; code that raises it above `limit` calls `settle`. `context_bytes` is an upper bound of an entry's
    bytes without key, value and headers.
    """

    __slots__ = ("bound", "context_bytes", "estimate", "limit", "size", "stores", "uncounted")

    def __init__(self, bound: int) -> None:
        self.bound = self.limit = bound
        self.size = self.estimate = 0
        self.context_bytes = ENTRY_BYTES
        self.stores: list[StoreEntries] = []
        self.uncounted: list[Uncounted] = []

    def store(self, flush: Flush) -> "StoreEntries":
        """Add a store; `flush` is called with its updates."""
        entries = StoreEntries(self, flush)
        self.stores.append(entries)
        return entries

    def resize(self, bound: int) -> None:
        """Set the bound, between two batches."""
        self.bound = self.limit = bound

    def add_topic(self, topic: str) -> None:
        """Prepare for records of a topic."""
        more = ENTRY_BYTES + len(topic) - self.context_bytes
        if more > 0:
            self.context_bytes += more
            if self.limit >= 0 and self.estimate:
                self.settle()

    def settle(self, more: int = 0) -> None:
        """Estimate the entries again, and `more` bytes; count them if that is above half of the bound."""
        if self.limit < 0:
            return
        estimate = sum(entries.bytes_at_most() for entries in self.uncounted) + more
        if estimate * 2 <= self.bound:
            self.estimate = estimate
        else:
            self.limit = _COUNTS
            for entries in self.uncounted:
                entries.count()

    def make_room(self, store: "StoreEntries") -> None:
        """Let the oldest entries of `store` leave until all entries are within the bound, or it is empty."""
        while self.size > self.bound and store.sizes:
            store.evict_oldest()

    def clear(self) -> None:
        """Forget the entries."""
        self.limit = self.bound
        self.size = self.estimate = 0
        for store in self.stores:
            store.clear()


class StoreEntries:
    """The entries of one store (`NamedCache`). Both dicts are public: the hot path writes them.

    `sizes` has the bytes of each entry, the least recently used in front; a plain dict would search its first
    entry among all that left it before. `updates` has the contexts of the updates that were not flushed yet,
    in the order of the writes.
    """

    __slots__ = ("_cache", "_flush", "sizes", "updates")

    def __init__(self, cache: RecordCache, flush: Flush) -> None:
        self._cache = cache
        self._flush = flush
        self.sizes: OrderedDict[bytes, int] = OrderedDict()
        self.updates: dict[bytes, Context] = {}

    def put(self, key: bytes, size: int, context: Context) -> None:
        """Add or replace an entry with an update."""
        cache, sizes, updates = self._cache, self.sizes, self.updates
        if key in sizes:
            updates.pop(key, None)
            cache.size -= sizes[key]
            sizes.move_to_end(key)
        updates[key] = context
        sizes[key] = size
        cache.size += size
        if cache.size > cache.bound:
            cache.make_room(self)

    def load(self, key: bytes, size: int, context: Context) -> None:
        """Add the latest entry, with an update, and make no room for it."""
        self.updates[key] = context
        self.sizes[key] = size
        self._cache.size += size

    def add_entry(self, key: bytes, size: int) -> None:
        """Make an entry the latest one, with `size` bytes; make room if necessary."""
        cache, sizes = self._cache, self.sizes
        cache.size += size - sizes.get(key, 0)
        sizes[key] = size
        sizes.move_to_end(key)
        if cache.size > cache.bound:
            cache.make_room(self)

    def touch(self, key: bytes) -> bool:
        """Make an entry the latest one; return whether there is one."""
        if key not in self.sizes:
            return False
        self.sizes.move_to_end(key)
        return True

    def evict_oldest(self) -> None:
        """Remove the oldest entry. Its bytes are free only after its update has been flushed."""
        key, size = self.sizes.popitem(last=False)
        context = self.updates.pop(key, None)
        if context is not None:
            self._flush_updates([(key, context)])
        self._cache.size -= size

    def flush(self) -> bool:
        """Flush all updates, but not updates that this causes; return whether there were any."""
        if not self.updates:
            return False
        self._flush_updates([])
        return True

    def clear(self) -> None:
        self.sizes.clear()
        self.updates.clear()

    def _flush_updates(self, evicted: list[Update]) -> None:
        """Flush `evicted` and all other updates. Entries of deleted keys are removed."""
        others = list(self.updates.items())
        self.updates.clear()
        deleted = self._flush([*evicted, *others])
        gone = {key for key, _ in evicted}
        self.remove(key for key in deleted if key not in gone)

    def remove(self, deleted: Iterable[bytes]) -> None:
        """Remove entries whose deletion was flushed."""
        for key in deleted:
            self._cache.size -= self.sizes.pop(key, 0)
            self.updates.pop(key, None)
