"""Aggregations by key with a cache that no other node reads: totals stay values as long as there is room.

The totals of a batch are serialized once, when the store's cache is flushed. Their entries in the cache are
estimated, at least as large as they would be. When the estimate exceeds the bound, the totals become entries
of the store's cache; from then on until the batch ends, each record is processed with the store.
"""

from collections.abc import Callable, Iterable
from typing import Final

from infra.model.behaviors import AggregationKind, StreamAggregate
from infra.model.nodes import ProcessorNode
from spark_jobs.runtime.engine.key_counts import NO_KEY_OR_VALUE, CountPerKey
from spark_jobs.runtime.engine.operators.aggregation import functions_of
from spark_jobs.runtime.engine.operators.interface import OperatorContext, Process
from spark_jobs.runtime.engine.records import Context, Headers, InputRecord, Value
from spark_jobs.runtime.engine.stores.key_value import TimestampedKeyValueBytes
from spark_jobs.runtime.engine.stores.layers import (
    TIMESTAMP,
    Cached,
    cached_size,
    read_timestamp,
    with_timestamp,
)
from spark_jobs.runtime.engine.stores.record_cache import ENTRY_BYTES, header_bytes

_RECORD_TIMESTAMP: Final = 3
_HEADERS: Final = 6
_NUMBER = 32
"""The most bytes of a number of 64 bits, in any format."""
_INT_64 = 2**63
_WIDEST = "\U0001f600"
_LONGEST_TOPIC = 249
_LARGEST_CONTEXT = ENTRY_BYTES + _LONGEST_TOPIC + TIMESTAMP

Pending = tuple[Value, Value, int, int, Headers, InputRecord]
"""(key, total, timestamp of the total, timestamp of the latest record, headers, input record)"""


def can_cache_values(behavior: StreamAggregate, context: OperatorContext) -> bool:
    """Return whether the store has a cache, no other node uses it, and the first failure ends the batch.

    If failures are skipped, each total is serialized at once: the previous one is kept if that fails.
    """
    if context.task.program.settings.on_processing_error != "fail":
        return False
    typed = context.task.typed_store(behavior.store)
    users = [
        node
        for node in context.task.program.nodes
        if isinstance(node, ProcessorNode) and behavior.store in node.stores
    ]
    return type(typed) is TimestampedKeyValueBytes and isinstance(typed.below, Cached) and len(users) == 1


def cached_aggregate(behavior: StreamAggregate, context: OperatorContext, general: Process) -> Process:
    """Return a function that keeps the totals of a batch as values; `general` updates the store.

    They are forwarded and logged in the order of the keys' latest updates, as from the store's cache.
    """
    functions = functions_of(behavior.aggregation, context)
    totals = _Totals(behavior, context, functions.init)
    name, drop, current = context.node.name, context.task.drop, context.task.current
    serialize_key, pending, is_count = totals.serialize_key, totals.pending, totals.is_count
    reserved, first, add, bytes_of = totals.reserved, totals.first, functions.add, totals.bytes_at_most
    take = pending.pop

    def process(key: Value, value: Value, timestamp: int, headers: Headers) -> None:
        if totals.are_in_store:
            general(key, value, timestamp, headers)
            return
        if key is None or value is None:
            drop(name, NO_KEY_OR_VALUE)
            return
        key_bytes, record = serialize_key(key), current.record
        if (key_bytes not in reserved or headers) and not totals.reserve_first(key_bytes, headers):
            general(key, value, timestamp, headers)
            return
        known = take(key_bytes, None)
        if known is None or known[1] is None:
            total, time = first(key_bytes, known, timestamp)
        else:
            total, time = known[1], max(known[2], timestamp)
        total = add(key, value, total)
        pending[key_bytes] = (key, total, time, timestamp, headers, record)
        if not is_count:
            size = bytes_of(total)
            if reserved[key_bytes] < size:
                totals.grow(key_bytes, size)

    if is_count:
        context.task.on_key_counts(name, totals.count_per_key())
    return process


class _Totals:
    """The totals of a batch that are not in the store's cache, and the estimate of their entries.

    `are_in_store`: there was no room for the estimate, so the rest of the batch updates the store.
    """

    def __init__(
        self, behavior: StreamAggregate, context: OperatorContext, init: Callable[[], Value]
    ) -> None:
        typed = context.store(behavior.store, TimestampedKeyValueBytes)
        if not isinstance(typed.below, Cached):
            raise TypeError(f"{behavior.store} has no cache")
        self._cached = typed.below
        self._cache = typed.below.cache
        self._sends_old = behavior.sends_old
        self._forward = context.forward
        self._current = context.task.current
        self._serialize = typed.value_serde.serialize
        self._deserialize = typed.value_serde.deserialize
        self._read = typed.below.below.overlay.get
        self.serialize_key = typed.key_serde.serialize
        self.is_count = behavior.aggregation.kind is AggregationKind.COUNT
        self.pending: dict[bytes, Pending] = {}
        self._init = init
        self.reserved: dict[bytes, int] = {}
        """Key → the bytes of a total for which there is room."""
        self.bytes_at_most = _bytes_at_most(self._serialize)
        self.are_in_store = False
        self._estimate = 0
        self._next: tuple[bytes, int, int] | None = None
        """Key, bytes of the total, bytes of the entry: an entry that is reserved and not a total yet."""
        self._cache.settle_with(self._settle)
        self._cached.flush_with(self._flush)

    def first(self, key: bytes, known: Pending | None, timestamp: int) -> tuple[Value, int]:
        """Return the total of a key that has none in this batch, and its timestamp: stored or initial."""
        stored = self._read(key) if known is None else None
        if stored is None:
            return self._init(), timestamp
        return self._deserialize(stored[TIMESTAMP:]), max(read_timestamp(stored), timestamp)

    def count_per_key(self) -> CountPerKey:
        """Return how counts per key are added; the entries of all have been reserved."""
        serialize_key, pending, first = self.serialize_key, self.pending, self.first
        take = pending.pop

        def add(key: Value, number: int, latest: int, last: InputRecord) -> None:
            key_bytes = serialize_key(key)
            known = take(key_bytes, None)
            if known is None or known[1] is None:
                total, time = first(key_bytes, known, latest)
            else:
                total, time = known[1], max(known[2], latest)
            pending[key_bytes] = (key, total + number, time, last[_RECORD_TIMESTAMP], last[_HEADERS], last)

        return CountPerKey(add, self._reserve)

    def reserve_first(self, key: bytes, headers: Headers) -> bool:
        """Reserve the entry of a key that is read next; return False if the store has the totals now."""
        value = _NUMBER if self.is_count else max(_NUMBER, len(self._read(key) or b""))
        self.reserved[key] = value
        size = _LARGEST_CONTEXT + len(key) + value
        if headers:
            size += header_bytes(headers)
        cache = self._cache
        self._estimate += size
        cache.size += size
        if cache.size > cache.bound:
            self._next = key, value, size
            cache.make_room(self._cached.entries)
            self._next = None
        return not self.are_in_store

    def grow(self, key: bytes, size: int) -> None:
        """Reserve more for a total of `size` bytes, and as much again: it may grow with each record."""
        more = 2 * size - self.reserved[key]
        self.reserved[key] += more
        self._reserve(more)

    def _reserve(self, size: int) -> None:
        """Add `size` bytes to the estimate; make room if necessary."""
        cache = self._cache
        self._estimate += size
        cache.size += size
        if cache.size > cache.bound:
            cache.make_room(self._cached.entries)

    def _settle(self) -> None:
        """Replace the estimate by the size; keep the totals only if at least half of the cache is free."""
        if self.are_in_store or not self._estimate:
            return
        entries = self._entries()
        size = sum(size for _, _, size, _ in entries) + (self._next[2] if self._next else 0)
        others = self._cache.size - self._estimate
        if (size + others) * 2 <= self._cache.bound:
            self._cache.size, self._estimate = size + others, size
            self.reserved.clear()
            if self._next is not None:
                self.reserved[self._next[0]] = self._next[1]
        else:
            self._move_to_store(entries)

    def _move_to_store(self, entries: Iterable[tuple[bytes, bytes | None, int, Context]]) -> None:
        self.are_in_store = True
        self._cache.size -= self._estimate
        self._estimate = 0
        self.reserved.clear()
        self.pending.clear()
        for key, value, size, context in entries:
            self._cached.load(key, value, size, context)

    def _entries(self) -> list[tuple[bytes, bytes | None, int, Context]]:
        """Return key, value, bytes and context of each total, in the order of the updates."""
        return [
            (key, value, cached_size(key, value, at), at)
            for key, (_, total, time, timestamp, headers, record) in self.pending.items()
            for value, at in [(self._stored(total, time), (timestamp, headers, record))]
        ]

    def _stored(self, total: Value, time: int) -> bytes | None:
        return None if total is None else with_timestamp(self._serialize(total), time)

    def _flush(self) -> None:
        """Write the totals and forward them, before the store's cache is flushed at the end of a batch."""
        if len(self._cache.stores) == 1:
            self._write()
        elif self.pending:  # other stores fill their caches meanwhile: all entries count
            self._move_to_store(self._entries())
        self.are_in_store = False
        self._estimate = 0
        self.reserved.clear()

    def _write(self) -> None:
        put, read, serialize, deserialize = (
            self._cached.below.put,
            self._read,
            self._serialize,
            self._deserialize,
        )
        forward, current, sends_old = self._forward, self._current, self._sends_old
        totals = list(self.pending.items())
        self.pending.clear()
        for key_bytes, (key, total, time, timestamp, headers, record) in totals:
            stored = read(key_bytes) if sends_old or total is None else None
            if total is None and stored is None:
                continue
            current.record = record
            written = None if total is None else with_timestamp(serialize(total), time)
            put(key_bytes, written, (timestamp, headers, record))
            old = deserialize(stored[TIMESTAMP:]) if stored is not None and sends_old else None
            forward(key, (total, old, True), timestamp if total is None else time, headers)


def _bytes_at_most(serialize: Callable[[Value], bytes]) -> Callable[[Value], int]:
    """Return a function that returns at least the bytes of a total, without its serialization if possible."""
    per_character = _bytes_per_character(serialize)

    def bytes_at_most(total: Value) -> int:
        kind = type(total)
        if kind is str and per_character:
            return len(total) * per_character + 2
        if kind is float or kind is bool or (kind is int and -_INT_64 <= total < _INT_64):
            return _NUMBER
        return 0 if total is None else len(serialize(total))

    return bytes_at_most


def _bytes_per_character(serialize: Callable[[Value], bytes]) -> int:
    """Return the most bytes of a character in UTF-8 or JSON; 0 for other formats."""
    try:
        widest = serialize(_WIDEST)
    except Exception:  # noqa: BLE001 - formats of numbers raise anything
        return 0
    return {_WIDEST.encode(): 4, b'"\\ud83d\\ude00"': 12, f'"{_WIDEST}"'.encode(): 6}.get(widest, 0)
