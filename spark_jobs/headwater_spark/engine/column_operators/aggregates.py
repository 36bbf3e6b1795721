"""Aggregations by key with a record cache over columns: one total per key reaches the store."""

from collections.abc import Mapping, Sequence
from itertools import repeat

from headwater_spark.engine.column_operators.rows import NotInColumnsError, Rows, encoded_keys
from headwater_spark.engine.operators.cached_aggregate import ENTRY, NUMBER, Pending, Totals
from headwater_spark.engine.records import Value
from headwater_spark.engine.stores.layers import TIMESTAMP, read_timestamp

_INT_64 = 2**63
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
        kept = rows
        if None in rows.keys or None in rows.values:
            kept = rows.where(
                [
                    key is not None and value is not None
                    for key, value in zip(rows.keys, rows.values, strict=True)
                ]
            )
        self.dropped = len(rows.keys) - len(kept.keys)
        rows = kept
        keys = encoded_keys(rows, self._totals.key_serde)
        different: set[bytes] = set(keys)  # type: ignore[arg-type]  # none is null
        if len(different) * self._totals.cache.context_bytes > self._totals.cache.bound:
            raise NotInColumnsError
        stored = {key: self._totals.read(key) for key in different}
        found, longest = self._add(rows, keys, stored)  # type: ignore[arg-type]
        self._set_updates(rows, keys, stored, found)  # type: ignore[arg-type]
        room = max(ENTRY, TIMESTAMP + longest, max(map(len, filter(None, stored.values())), default=0))
        self.size = len(found) * (self._totals.cache.context_bytes + room)
        self.size += sum(map(len, found)) + rows.source.header_bytes()

    def apply(self) -> None:
        """Put the totals into the cache, which must have room for `size` bytes."""
        self._totals.put_all(self._updates, self.size)

    def _add(
        self, rows: Rows, keys: Sequence[bytes], stored: Mapping[bytes, bytes | None]
    ) -> tuple[Mapping[bytes, Value], int]:
        """Return key → total, and the most bytes of a total."""
        functions, first = self._totals.functions, self._totals.first
        add_again, add = functions.add_again, functions.add
        totals: dict[bytes, Value] = {}
        known = totals.get
        longest = self._totals.characters
        for key_bytes, key, value in zip(keys, rows.keys, rows.values, strict=True):
            total = known(key_bytes, _UNKNOWN)
            if total is _UNKNOWN:
                total = add(key, value, first(stored[key_bytes], 0)[0])
            else:
                total = add_again(key, value, total)
            totals[key_bytes] = total
            if type(total) is not str:
                if not _is_number(total):
                    raise NotInColumnsError
            elif len(total) > longest:
                longest = len(total)
                if not self._totals.per_character:
                    raise NotInColumnsError
        return (
            totals,
            longest * self._totals.per_character + 2 if longest > self._totals.characters else NUMBER,
        )

    def _set_updates(
        self,
        rows: Rows,
        keys: Sequence[bytes],
        stored: Mapping[bytes, bytes | None],
        totals: Mapping[bytes, Value],
    ) -> None:
        last = dict(zip(keys, range(len(keys)), strict=True))
        latest = list(dict.fromkeys(reversed(keys)))
        latest.reverse()
        times = _largest_times(keys, rows.times, last)
        for key in latest:
            at, before = last[key], stored[key]
            time = times[key] if before is None else max(times[key], read_timestamp(before))
            self._updates[key] = (
                rows.keys[at],
                totals[key],
                time,
                rows.times[at],
                rows.headers[at],
                rows.source.record(rows.positions[at]),
            )


def _is_number(total: Value) -> bool:
    return type(total) in _NUMBERS and (type(total) is not int or -_INT_64 <= total < _INT_64)


def _largest_times(
    keys: Sequence[bytes], times: Sequence[int], last: Mapping[bytes, int]
) -> Mapping[bytes, int]:
    """Return key → the largest time of its rows."""
    if all(map(int.__le__, times, times[1:])):
        return {key: times[at] for key, at in last.items()}
    largest: dict[bytes, int] = dict(zip(keys, repeat(-1)))
    for key, time in zip(keys, times, strict=True):
        largest[key] = max(largest[key], time)
    return largest
