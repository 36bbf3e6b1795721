"""Tables with a record cache over columns: one update per key, and joins of streams with their rows."""

from collections.abc import Callable, Iterator, Sequence
from itertools import repeat

from headwater.model.behaviors import StreamTableJoin
from headwater_spark.engine.column_operators.rows import (
    ColumnProcess,
    NotInColumnsError,
    Rows,
    SourceColumns,
    encoded_keys,
)
from headwater_spark.engine.records import Context, CurrentRecord, Value
from headwater_spark.engine.serdes import reads_anything
from headwater_spark.engine.stores.cached import Cached
from headwater_spark.engine.stores.key_value import TimestampedKeyValueBytes
from headwater_spark.engine.stores.layers import TIMESTAMP, with_timestamp
from headwater_spark.engine.stores.record_cache import ENTRY_BYTES, header_bytes

_BYTES_OF_INVALID_BYTE = 3
"""Invalid UTF-8 in a string is read as U+FFFD."""
_NO_UPDATE = float("inf")
_UNREAD = object()


class TableUpdates:
    """The updates of a table in a batch: only the last one of each key reaches its cache."""

    def __init__(self, node: str, typed: TimestampedKeyValueBytes, cached: Cached) -> None:
        self.node = node
        self.typed = typed
        self.cached = cached
        self.columns: SourceColumns | None = None
        self.dropped = 0
        self.size = 0
        """At least the bytes of the entries in the record cache, at any time of the batch."""
        self._keys: list[bytes] = []
        self._stored: list[bytes | None] = []
        self._contexts: list[Context] = []
        self._read: set[bytes] = set()
        self._longest = 0
        self._applied = 0

    def clear(self) -> None:
        """Forget the batch."""
        self.columns = None
        self.dropped = self.size = 0
        self._keys, self._stored, self._contexts = [], [], []
        self._read = set()
        self._longest = self._applied = 0

    def prepare(self, columns: SourceColumns) -> None:
        """Compute the updates, without a change of the store."""
        self.columns = columns
        if len(set(columns.key_bytes)) * self.cached.cache.context_bytes > self.cached.cache.bound:
            raise NotInColumnsError
        columns.read_keys()
        self.dropped = columns.key_bytes.count(None)
        self._longest = self._longest_value()
        self._keys, self._stored, self._contexts = self._updates_of(columns, 0, len(columns))
        self.size = self._size_of(self._keys) + columns.header_bytes()
        self.read(self._keys)

    def _updates_of(
        self, columns: SourceColumns, start: int, end: int
    ) -> tuple[list[bytes], list[bytes | None], list[Context]]:
        """Return keys, values and contexts of the last updates of each key among some of the records."""
        serialize, read = self.typed.value_serde.serialize, columns.value_serde.deserialize
        values, times, headers, record = columns.value_bytes, columns.times, columns.headers, columns.record
        positions = columns.last_positions(start, end)
        stored: list[bytes | None] = []
        contexts: list[Context] = []
        for at in positions.values():
            data, time = values[at], times[at]
            value = None if data is None else read(data)
            stored.append(None if value is None else with_timestamp(serialize(value), time))
            contexts.append((time, headers[at], record(at)))
        return list(positions), stored, contexts

    def _size_of(self, keys: Sequence[bytes]) -> int:
        """Return at least the bytes of the entries of some keys, without headers."""
        entry = self.cached.cache.context_bytes + TIMESTAMP + self._longest
        return len(keys) * entry + sum(map(len, keys))

    def read(self, keys: Sequence[bytes] | set[bytes]) -> None:
        """Note that rows are read: they become entries, too."""
        read = self.cached.read_old
        for key in keys:
            if key not in self._read:
                self._read.add(key)
                stored = read(key)
                if stored is not None:
                    self.size += ENTRY_BYTES + len(key) + len(stored)

    def apply(self) -> None:
        """Put the updates into the cache, which must have room for `size` bytes."""
        self.cached.put_all(self._keys, self._stored, self._contexts, self.size)

    def apply_until(self, end: int, current: CurrentRecord) -> None:
        """Put the updates of the first `end` records that have not been put yet, into any cache."""
        columns, start = self.columns, self._applied
        if columns is None or end <= start:
            return
        self._applied = end
        keys, stored, contexts = self._updates_of(columns, start, end)
        written, read, cache = self.cached.overlay.written, self.cached.read_old, self.cached.cache
        size = self._size_of(keys) + sum(map(header_bytes, filter(None, columns.headers[start:end])))
        for key in keys:
            before = None if key in written else read(key)
            if before is not None:
                size += ENTRY_BYTES + len(key) + len(before)
        if cache.limit >= 0 and cache.estimate + size > cache.limit:
            cache.settle()
        if cache.limit >= 0 and cache.estimate + size <= cache.limit:
            self.cached.put_all(keys, stored, contexts, size)
        else:
            self._put_each(columns, start, end, current)

    def _put_each(self, columns: SourceColumns, start: int, end: int, current: CurrentRecord) -> None:
        """Put single updates: entries may leave the cache between two of them."""
        get, put = self.cached.get_before_put, self.cached.put
        serialize, read = self.typed.value_serde.serialize, columns.value_serde.deserialize
        for at in range(start, end):
            key, data, time = columns.key_bytes[at], columns.value_bytes[at], columns.times[at]
            if key is not None:
                current.record = record = columns.record(at)
                get(key)
                value = None if data is None else read(data)
                stored = None if value is None else with_timestamp(serialize(value), time)
                put(key, stored, (time, columns.headers[at], record))

    def decoded(self, stored: bytes | None) -> Value:
        return None if stored is None else self.typed.value_serde.deserialize(stored[TIMESTAMP:])

    @property
    def values(self) -> Sequence[Value]:
        """The values of all updates, as they are read from the store."""
        if self.columns is None:
            return ()
        values, serde = self.columns.values, self.typed.value_serde
        if serde is self.columns.value_serde and reads_anything(serde):
            return values
        write, read = serde.serialize, serde.deserialize
        return [None if value is None else read(write(value)) for value in values]

    def _longest_value(self) -> int:
        if self.columns is None:
            return 0
        serde = self.typed.value_serde
        if serde is self.columns.value_serde and reads_anything(serde):
            longest = max((len(data) for data in self.columns.value_bytes if data), default=0)
            return _BYTES_OF_INVALID_BYTE * longest
        values = [value for value in self.columns.values if value is not None]
        return max(map(len, map(serde.serialize, values)), default=0)


def column_join(
    behavior: StreamTableJoin,
    table: TableUpdates,
    joined: Callable[[Value, Value, Value], Value],
    forward: ColumnProcess,
    drop: Callable[[int], None],
) -> ColumnProcess:
    """Join each row with the table as it is then: updates of the batch that come before it are visible."""
    is_left = behavior.kind == "left"

    def process(rows: Rows) -> None:
        kept = rows.where(
            [
                value is not None and (is_left or key is not None)
                for key, value in zip(rows.keys, rows.values, strict=True)
            ]
        )
        drop(len(rows.keys) - len(kept.keys))
        keys = encoded_keys(kept, table.typed.key_serde)
        rights = _rights(table, keys, kept.order)
        if not is_left:
            has_right = [right is not None for right in rights]
            if not all(has_right):
                kept = kept.where(has_right)
                rights = [right for right in rights if right is not None]
        forward(kept.with_values(list(map(joined, kept.values, rights, kept.keys))))

    return process


def _rights(table: TableUpdates, keys: Sequence[bytes | None], order: Sequence[int]) -> list[Value]:
    """Return the value of the table for each key, as of the position in the processing order."""
    table.read({key for key in keys if key is not None})
    current: dict[bytes | None, Value] = {None: None}
    updates = _updates(table)
    at, key, value = next(updates)
    read, decoded = table.cached.read_old, table.decoded
    rights: list[Value] = []
    add = rights.append
    for position, wanted in zip(order, keys, strict=True):
        while at < position:
            if key is not None:
                current[key] = value
            at, key, value = next(updates)
        right = current.get(wanted, _UNREAD)
        if right is _UNREAD:
            right = current[wanted] = decoded(read(wanted)) if wanted is not None else None
        add(right)
    return rights


def _updates(table: TableUpdates) -> Iterator[tuple[float, bytes | None, Value]]:
    """Yield (position, key, value) of each update, and then an update that never comes."""
    columns = table.columns
    if columns is not None:
        yield from zip(columns.order, columns.key_bytes, table.values, strict=True)
    yield from repeat((_NO_UPDATE, None, None))
