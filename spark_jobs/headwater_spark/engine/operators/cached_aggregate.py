"""Aggregations with a cache that no other node reads: totals stay values as long as there is room.

The key of a total is a record key, or one window of it (`add_to_cached_windows`).

The totals of a batch are serialized once, when the store's cache is flushed. Until the record cache counts
its entries, the bytes of their entries are estimated, at least as large as they would be. Then the totals
become entries of the store's cache; from then on until the batch ends, each record is processed with the
store.
"""

from collections.abc import Callable, Iterator, Mapping
from typing import Final

from headwater.model.behaviors import AggregationKind, StreamAggregate
from headwater_spark.engine.key_counts import NO_KEY_OR_VALUE, CountPerKey
from headwater_spark.engine.operators.aggregation import AddToWindow, Functions, functions_of
from headwater_spark.engine.operators.interface import OperatorContext, Process
from headwater_spark.engine.operators.stored_totals import INT_64, StoredTotals
from headwater_spark.engine.records import Context, Headers, InputRecord, Value, Windowed
from headwater_spark.engine.stores.cached import Cached
from headwater_spark.engine.stores.key_value import TimestampedKeyValueBytes
from headwater_spark.engine.stores.layers import TIMESTAMP, read_timestamp, with_timestamp
from headwater_spark.engine.stores.record_cache import header_bytes
from headwater_spark.engine.stores.windows import TimestampedWindowBytes, window_end

_RECORD_TIMESTAMP: Final = 3
_HEADERS: Final = 6
NUMBER: Final = 32
"""The most bytes of a number of 64 bits, in any format; each total has room for as many."""
ENTRY: Final = TIMESTAMP + NUMBER

TimestampedStore = TimestampedKeyValueBytes | TimestampedWindowBytes
Pending = tuple[Value, Value, int, int, Headers, InputRecord]
"""(key to forward, total, timestamp of the total, timestamp of the latest record, headers, input record)"""


def cached_aggregate(behavior: StreamAggregate, context: OperatorContext, general: Process) -> Process:
    """Return a function that keeps the totals of a batch as values; `general` updates the store.

    They are forwarded and logged in the order of the keys' latest updates, as from the store's cache.
    """
    functions = functions_of(behavior.aggregation, context)
    totals = Totals(context.store(behavior.store, TimestampedKeyValueBytes), behavior, context, functions)
    context.task.column_totals[context.node.name] = totals
    if behavior.aggregation.kind is AggregationKind.COUNT and totals.are_whole_numbers:
        context.task.add_counts[context.node.name] = totals.count_per_key()
        return _count_records(totals, context, general)
    return _aggregate_records(totals, context, general)


def _count_records(totals: "Totals", context: OperatorContext, general: Process) -> Process:
    name, drop, current = context.node.name, context.task.drop, context.task.current
    cache, serialize_key, pending = totals.cache, totals.serialize_key, totals.pending
    take, start = pending.pop, totals.start_function()

    def process(key: Value, value: Value, timestamp: int, headers: Headers) -> None:
        if cache.limit < 0 or (headers and not totals.reserve(header_bytes(headers))):
            general(key, value, timestamp, headers)
            return
        if key is None or value is None:
            drop(name, NO_KEY_OR_VALUE)
            return
        key_bytes = serialize_key(key)
        known = take(key_bytes, None)
        if known is None:
            started = start(key_bytes, timestamp)
            if started is None:
                general(key, value, timestamp, headers)
                return
            total, time = started
        else:
            total, time = known[1], max(known[2], timestamp)
        pending[key_bytes] = (key, total + 1, time, timestamp, headers, current.record)

    return process


def _aggregate_records(totals: "Totals", context: OperatorContext, general: Process) -> Process:
    functions = totals.functions
    name, drop, current = context.node.name, context.task.drop, context.task.current
    cache, serialize_key, pending = totals.cache, totals.serialize_key, totals.pending
    take, start, init, add = pending.pop, totals.start_function(), functions.init, functions.add
    add_again, longest, grow = functions.add_again, totals.characters, totals.grow

    def process(key: Value, value: Value, timestamp: int, headers: Headers) -> None:
        if cache.limit < 0 or (headers and not totals.reserve(header_bytes(headers))):
            general(key, value, timestamp, headers)
            return
        if key is None or value is None:
            drop(name, NO_KEY_OR_VALUE)
            return
        key_bytes = serialize_key(key)
        known = take(key_bytes, None)
        if known is None:
            started = start(key_bytes, timestamp)
            if started is None:
                general(key, value, timestamp, headers)
                return
            total, time = add(key, value, started[0]), started[1]
        elif known[1] is None:
            total, time = add(key, value, init()), timestamp
        else:
            total, time = add_again(key, value, known[1]), max(known[2], timestamp)
        pending[key_bytes] = (key, total, time, timestamp, headers, current.record)
        if type(total) is not str or len(total) > longest:
            grow(key_bytes, total)

    return process


class Totals:
    """The totals of a batch that are not in the store's cache.

    Attributes:
        pending: Key in the store → total, in the order of the updates.
        characters: The number of characters for which each total has room.
        per_character: The most bytes of a character of a total; 0 = totals are not texts.
        are_whole_numbers: Whether whole numbers are read as such; a `double` is read with a fraction.
        functions: The functions of the aggregation; their results are totals as the store returns them.
        size_of: At least the bytes of a total, as written.
    """

    def __init__(
        self,
        typed: TimestampedStore,
        behavior: StreamAggregate,
        context: OperatorContext,
        functions: Functions,
    ) -> None:
        if not isinstance(typed.below, Cached):
            raise TypeError(f"{behavior.store} has no cache")
        self._cached = typed.below
        self.cache = typed.below.cache
        self._sends_old = behavior.sends_old
        self._forward = context.forward
        self._current = context.task.current
        self._stored = StoredTotals(typed.value_serde)
        self._serialize = typed.value_serde.serialize
        self._deserialize = typed.value_serde.deserialize
        self.read = typed.below.read_old
        self.serialize_key = typed.key_serde.serialize
        self.key_serde = typed.key_serde
        self.pending: dict[bytes, Pending] = {}
        self.functions = self._stored.reading_functions(functions)
        self._init = functions.init
        self._room: dict[bytes, int] = {}
        """Key → the bytes of a total for which there is room, if more than for a number."""
        self.per_character = self._stored.per_character
        self.are_whole_numbers = self._stored.are_whole_numbers
        self.size_of = self._stored.size_of
        self.characters = (NUMBER - 2) // self.per_character if self.per_character else -1
        self.cache.uncounted.append(self)
        self._cached.flush_with(self._flush)

    def start_function(self) -> Callable[[bytes, int], tuple[Value, int] | None]:
        """Return a function of (key, timestamp): it starts a total, and returns it and its timestamp.

        It is the stored or the initial total; None = there is no room, so totals do not stay values.
        """
        cache, read, reserve = self.cache, self.read, self._reserve_first
        init, deserialize = self._init, self._deserialize

        def start(key: bytes, timestamp: int) -> tuple[Value, int] | None:
            stored = read(key)
            size = cache.estimate + cache.context_bytes + len(key) + ENTRY
            if size <= cache.limit and (stored is None or len(stored) <= ENTRY):
                cache.estimate = size
            elif not reserve(key, stored):
                return None
            if stored is None:
                return init(), timestamp
            return deserialize(stored[TIMESTAMP:]), max(read_timestamp(stored), timestamp)

        return start

    def first(self, stored: bytes | None, timestamp: int) -> tuple[Value, int]:
        if stored is None:
            return self._init(), timestamp
        return self._deserialize(stored[TIMESTAMP:]), max(read_timestamp(stored), timestamp)

    def count_per_key(self) -> CountPerKey:
        """Return how counts per key are added; the entries of all have been reserved."""
        serialize_key, pending, first = self.serialize_key, self.pending, self.first
        take, read = pending.pop, self.read

        def add(key: Value, number: int, latest: int, last: InputRecord) -> None:
            key_bytes = serialize_key(key)
            known = take(key_bytes, None)
            if known is None:
                total, time = first(read(key_bytes), latest)
            else:
                total, time = known[1], max(known[2], latest)
            pending[key_bytes] = (key, total + number, time, last[_RECORD_TIMESTAMP], last[_HEADERS], last)

        def reserve(size: int) -> None:
            self.reserve(size)

        return CountPerKey(add, reserve)

    def put_all(self, updates: Mapping[bytes, Pending], size: int) -> None:
        """Put the totals of different keys, which need at most `size` bytes; there are no others yet."""
        self.pending.update(updates)
        self.cache.estimate += size
        if self.cache.estimate > self.cache.limit:
            self.cache.settle()

    def reserve(self, size: int) -> bool:
        """Add `size` bytes to the estimate; return whether totals stay values."""
        self.cache.estimate += size
        if self.cache.estimate > self.cache.limit:
            self.cache.settle(size)
        return self.cache.limit >= 0

    def _reserve_first(self, key: bytes, stored: bytes | None) -> bool:
        """Reserve the entry of a key without a total; return whether totals stay values."""
        room = max(ENTRY, len(stored or b""))
        if not self.reserve(self.cache.context_bytes + len(key) + room):
            return False
        if room > ENTRY:
            self._room[key] = room - TIMESTAMP
        return True

    def grow(self, key: bytes, total: Value) -> None:
        """Reserve more for a large total, and as much again: it may grow with each record."""
        if total is None or type(total) in (bool, float):
            return
        if type(total) is int and -INT_64 <= total < INT_64:
            return
        size = self.size_of(total)
        room = self._room.get(key, NUMBER)
        if size <= room:
            return
        self._room[key] = 2 * size
        self.cache.estimate += 2 * size - room
        if self.cache.estimate > self.cache.limit:
            self.cache.settle()
            if self.cache.limit < 0 and self.cache.size > self.cache.bound:
                self.cache.make_room(self._cached.entries)

    def bytes_at_most(self) -> int:
        """Return at least the bytes of the entries, until a total grows."""
        self._room.clear()
        size = 0
        for key, value, (_, headers, _) in self._entries():
            room = max(ENTRY, len(value or b""))
            if room > ENTRY:
                self._room[key] = room - TIMESTAMP
            size += self.cache.context_bytes + len(key) + room + header_bytes(headers)
        return size

    def count(self) -> None:
        """Move the totals to the store's cache, which counts its entries."""
        entries = list(self._entries())
        self._room.clear()
        self.pending.clear()
        for key, value, context in entries:
            self._cached.load(key, value, context)

    def _entries(self) -> Iterator[tuple[bytes, bytes | None, Context]]:
        """Yield key, value and context of each total, in the order of the updates."""
        for key, (_, total, time, timestamp, headers, record) in self.pending.items():
            value = None if total is None else with_timestamp(self._serialize(total), time)
            yield key, value, (timestamp, headers, record)

    def _flush(self) -> bool:
        """Write the totals and forward them, before the store's cache is flushed at the end of a batch.

        Return whether there were any. If other stores fill their caches meanwhile, all entries count: then
        the totals are moved to the store's cache, which writes them.
        """
        wrote = False
        if self.pending:
            wrote = len(self.cache.stores) == 1
            if wrote:
                self._write()
            else:
                self.count()
        self._room.clear()
        return wrote

    def _write(self) -> None:
        put, read, serialize, deserialize = (
            self._cached.put_below,
            self.read,
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


def add_to_cached_windows(
    behavior: StreamAggregate,
    size: int,
    functions: Functions,
    context: OperatorContext,
    general: AddToWindow,
) -> AddToWindow:
    """Return a function that keeps the totals of a batch as values; `general` updates the store."""
    store = context.store(behavior.store, TimestampedWindowBytes)
    totals = Totals(store, behavior, context, functions)
    entry_key_of, current = store.entry_key, context.task.current
    cache, pending, reserve = totals.cache, totals.pending, totals.reserve
    functions = totals.functions
    take, begin, init, add = pending.pop, totals.start_function(), functions.init, functions.add
    add_again, longest, grow = functions.add_again, totals.characters, totals.grow
    has_fixed_size = behavior.aggregation.kind is AggregationKind.COUNT

    def add_to_window(  # noqa: PLR0917 - called for each record and window
        key: Value, key_bytes: bytes, value: Value, start: int, timestamp: int, headers: Headers
    ) -> None:
        if cache.limit < 0 or (headers and not reserve(header_bytes(headers))):
            general(key, key_bytes, value, start, timestamp, headers)
            return
        entry_key = entry_key_of(key_bytes, start)
        known = take(entry_key, None)
        if known is None:
            started = begin(entry_key, timestamp)
            if started is None:
                general(key, key_bytes, value, start, timestamp, headers)
                return
            window = Windowed(key, start, window_end(start, size))
            total, time = add(key, value, started[0]), started[1]
        elif known[1] is None:
            window, total, time = known[0], add(key, value, init()), timestamp
        else:
            window, total, time = known[0], add_again(key, value, known[1]), max(known[2], timestamp)
        pending[entry_key] = (window, total, time, timestamp, headers, current.record)
        if not has_fixed_size and (type(total) is not str or len(total) > longest):
            grow(entry_key, total)

    return add_to_window
