"""Aggregations by key with a record cache over columns: one total per key reaches the store."""

from collections.abc import Sequence

import numpy as np

from headwater_spark.engine.column_operators.rows import NotInColumnsError, Rows, numbered_keys
from headwater_spark.engine.operators.cached_aggregate import ENTRY, NUMBER, Pending, Totals
from headwater_spark.engine.operators.stored_totals import CONTAINERS, INT_64
from headwater_spark.engine.partition_columns import NumberedBytes
from headwater_spark.engine.records import Value
from headwater_spark.engine.stores.layers import TIMESTAMP, read_timestamp
from headwater_spark.engine.window_columns import Numbers

_NUMBERS = frozenset((int, float, bool))
_UNKNOWN = object()


class KeyTotals:
    """The totals of an aggregation in a batch. `size` is at least the bytes of their entries at any time."""

    def __init__(self, node: str, totals: Totals) -> None:
        self.node = node
        self.size = 0
        self.dropped = 0
        self._totals = totals
        self._updates: dict[bytes, Pending] = {}

    def clear(self) -> None:
        """Forget the batch."""
        self.size = self.dropped = 0
        self._updates = {}

    def add(self, rows: Rows) -> None:
        """Compute the totals, without a change of the store."""
        kept = rows.without_nulls(keys=True)
        self.dropped = len(rows.keys) - len(kept.keys)
        rows = kept
        keys = numbered_keys(rows, self._totals.key_serde)
        last = keys.last_positions()
        if len(last) * self._totals.cache.context_bytes > self._totals.cache.bound:
            raise NotInColumnsError
        stored: list[bytes | None] = [None] * len(keys.different)
        codes = keys.codes[last].tolist()
        for code in codes:
            stored[code] = self._totals.read(keys.different[code])
        found, room = self._add(rows, keys, stored)
        self._set_updates(rows, keys, last, stored, found)
        room = max(ENTRY, TIMESTAMP + room, max(map(len, filter(None, stored)), default=0))
        self.size = len(codes) * (self._totals.cache.context_bytes + room)
        self.size += sum(len(keys.different[code]) for code in codes) + rows.single_source.header_bytes()

    def apply(self) -> None:
        """Put the totals into the cache, which must have room for `size` bytes."""
        self._totals.put_all(self._updates, self.size)

    def _add(
        self, rows: Rows, keys: NumberedBytes, stored: Sequence[bytes | None]
    ) -> tuple[Sequence[Value], int]:
        """Return the total of each different key, and at least the bytes that any total has needed."""
        functions, first, size_of = self._totals.functions, self._totals.first, self._totals.size_of
        add_again, add = functions.add_again, functions.add
        totals: list[Value] = [_UNKNOWN] * len(keys.different)
        characters, room = self._totals.characters, NUMBER
        for code, key, value in zip(keys.codes.tolist(), rows.keys, rows.values, strict=True):
            total = totals[code]
            if total is _UNKNOWN:
                total = add(key, value, first(stored[code], 0)[0])
            else:
                total = add_again(key, value, total)
            totals[code] = total
            kind = type(total)
            if kind is str:
                if len(total) > characters:
                    if not self._totals.per_character:
                        raise NotInColumnsError
                    characters, room = len(total), max(room, size_of(total))
            elif kind in CONTAINERS:
                room = max(room, size_of(total))
            elif not _is_number(total):
                raise NotInColumnsError
        return totals, room

    def _set_updates(
        self,
        rows: Rows,
        keys: NumberedBytes,
        last: Numbers,
        stored: Sequence[bytes | None],
        totals: Sequence[Value],
    ) -> None:
        times = np.array(rows.times, np.int64)
        latest = np.full(len(keys.different), -1)
        np.maximum.at(latest, keys.codes, times)
        records = rows.single_source.records_at(rows.positions[last])
        for at, code, record in zip(last.tolist(), keys.codes[last].tolist(), records, strict=True):
            before, time = stored[code], int(latest[code])
            self._updates[keys.different[code]] = (
                rows.keys[at],
                totals[code],
                time if before is None else max(time, read_timestamp(before)),
                rows.times[at],
                rows.headers[at],
                record,
            )


def _is_number(total: Value) -> bool:
    return type(total) in _NUMBERS and (type(total) is not int or -INT_64 <= total < INT_64)
