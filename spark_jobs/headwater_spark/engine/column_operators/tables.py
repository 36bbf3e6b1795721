"""Tables with a record cache over columns: one update per key, and joins of streams with their rows."""

from collections.abc import Callable, Iterable, Sequence

import numpy as np

from headwater.model.behaviors import StreamTableJoin
from headwater_spark.engine.column_operators.rows import (
    ColumnProcess,
    NotInColumnsError,
    Rows,
    SourceColumns,
    numbered_keys,
    read_column,
)
from headwater_spark.engine.key_counts import NULL_KEY
from headwater_spark.engine.partition_columns import NumberedBytes
from headwater_spark.engine.records import Context, CurrentRecord, InputRecord, Value
from headwater_spark.engine.serdes import reads_anything
from headwater_spark.engine.stores.cached import Cached
from headwater_spark.engine.stores.key_value import TimestampedKeyValueBytes
from headwater_spark.engine.stores.layers import TIMESTAMP, with_timestamp
from headwater_spark.engine.stores.record_cache import ENTRY_BYTES, header_bytes
from headwater_spark.engine.window_columns import Numbers

_BYTES_OF_INVALID_BYTE = 3
"""Invalid UTF-8 in a string is read as U+FFFD."""


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
        if len(columns.keys.different) * self.cached.cache.context_bytes > self.cached.cache.bound:
            raise NotInColumnsError
        columns.read_keys()
        self.dropped = int((columns.keys.codes == NULL_KEY).sum())
        lengths = self._value_lengths(columns)
        self._longest = int(lengths.max(initial=0))
        records = columns.records_at(columns.keys.last_positions())
        self._keys, self._stored, self._contexts = self._updates_of(columns, records)
        self.size = self._size_of_keys(columns, lengths) + columns.header_bytes()
        self.read(self._keys)

    def _updates_of(
        self, columns: SourceColumns, records: Iterable[InputRecord]
    ) -> tuple[list[bytes], list[bytes | None], list[Context]]:
        """Return keys, values and contexts of updates."""
        serialize, read = self.typed.value_serde.serialize, columns.value_serde.deserialize
        keys: list[bytes] = []
        stored: list[bytes | None] = []
        contexts: list[Context] = []
        for record in records:
            _, _, _, time, key, data, headers = record
            if key is not None:
                value = None if data is None else read(data)
                keys.append(key)
                stored.append(None if value is None else with_timestamp(serialize(value), time))
                contexts.append((time, headers, record))
        return keys, stored, contexts

    def _size_of_keys(self, columns: SourceColumns, lengths: Numbers) -> int:
        """Return at least the bytes of the entries of all keys, without headers."""
        longest = np.zeros(len(columns.keys.different) + 1, np.int64)
        np.maximum.at(longest, columns.keys.codes, lengths)  # null is the last one
        entry = self.cached.cache.context_bytes + TIMESTAMP
        return len(self._keys) * entry + sum(map(len, self._keys)) + int(longest[:-1].sum())

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
        keys, stored, contexts = self._updates_of(columns, columns.last_records(start, end))
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
        for record in columns.records_between(start, end):
            _, _, _, time, key, data, headers = record
            if key is not None:
                current.record = record
                get(key)
                value = None if data is None else read(data)
                stored = None if value is None else with_timestamp(serialize(value), time)
                put(key, stored, (time, headers, record))

    def decoded(self, stored: bytes | None) -> Value:
        return None if stored is None else self.typed.value_serde.deserialize(stored[TIMESTAMP:])

    def values_at(self, positions: Numbers) -> Sequence[Value]:
        """Return the values of some updates, as they are read from the store; the positions ascend."""
        if self.columns is None:
            return ()
        serde = self.typed.value_serde
        if serde is self.columns.value_serde and reads_anything(serde):
            return read_column(serde, self.columns.value_bytes.take(positions))
        write, read, values = serde.serialize, serde.deserialize, self.columns.values
        found = (values[at] for at in positions.tolist())
        return [None if value is None else read(write(value)) for value in found]

    def _value_lengths(self, columns: SourceColumns) -> Numbers:
        """Return at least the bytes of the value of each record, without its timestamp."""
        serde = self.typed.value_serde
        if serde is columns.value_serde and reads_anything(serde):
            return _BYTES_OF_INVALID_BYTE * columns.value_bytes.lengths()
        write = serde.serialize
        found = [0 if value is None else len(write(value)) for value in columns.values]
        return np.array(found, np.int64)


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
        kept = rows.without_nulls(keys=not is_left)
        drop(len(rows.keys) - len(kept.keys))
        rights = _right_values(table, numbered_keys(kept, table.typed.key_serde), kept.order)
        if not is_left and None in rights:
            kept = kept.where([right is not None for right in rights])
            rights = [right for right in rights if right is not None]
        forward(kept.with_values(list(map(joined, kept.values, rights, kept.keys))))

    return process


def _right_values(table: TableUpdates, keys: NumberedBytes, order: Numbers) -> list[Value]:
    """Return the value of the table for each key, as of the position in the processing order."""
    present = keys.codes[keys.last_positions()]
    table.read([keys.different[code] for code in present.tolist()])
    positions = _latest_updates(table.columns, keys, order)
    are_updated = positions >= 0
    read_positions, at = np.unique(positions[are_updated], return_inverse=True)
    values = list(table.values_at(read_positions))
    codes = keys.codes[~are_updated]
    stored = [None] * (len(keys.different) + 1)
    read, decoded = table.cached.read_old, table.decoded
    for code in np.unique(codes[codes != NULL_KEY]).tolist():
        stored[code] = decoded(read(keys.different[code]))
    sources = np.where(codes == NULL_KEY, len(keys.different), codes) + len(values)
    found = np.empty(len(order), np.int64)
    found[are_updated], found[~are_updated] = at, sources
    values += stored
    return [values[at] for at in found.tolist()]


def _latest_updates(updates: SourceColumns | None, keys: NumberedBytes, order: Numbers) -> Numbers:
    """Return the position of the latest update of each key before the row; -1 = there is none."""
    if updates is None:
        return np.full(len(order), -1)
    numbers = {key: number for number, key in enumerate(updates.keys.different)}
    unknown = len(numbers)
    of_keys = np.array([*(numbers.get(key, unknown) for key in keys.different), unknown])
    codes = of_keys[keys.codes]
    # Updates by key, then by position; and for each row, where its key and position would be.
    by_key = np.argsort(updates.keys.codes, kind="stable")
    width = len(updates) + 1
    places = updates.keys.codes[by_key] * width + by_key
    before = np.searchsorted(places, codes * width + np.searchsorted(updates.order, order)) - 1
    latest = by_key[before]
    found: Numbers = np.where((before >= 0) & (updates.keys.codes[latest] == codes), latest, -1)
    return found
