"""Inner joins of two streams over columns: a search finds all pairs of a batch, then all records are put.

A record is joined with the records of the other side that the task has processed before, as far as they are
visible in that side's store then. So the later record of a pair has the result. What earlier batches have put
is read once for each key, and only for the times that the batch searches for.
"""

from collections.abc import Callable, Iterable, Sequence
from typing import Final

import attrs
import numpy as np

from headwater_spark.engine.column_operators.rows import (
    ColumnProcess,
    NotInColumnsError,
    Rows,
    numbered_keys,
    read_column,
    write_column,
)
from headwater_spark.engine.key_counts import NULL_KEY
from headwater_spark.engine.records import UNSET, Headers, Value
from headwater_spark.engine.stores.interfaces import Pair
from headwater_spark.engine.stores.windows import TIME_AND_SEQUENCE, WindowBytes
from headwater_spark.engine.window_columns import Numbers

_LARGEST: Final = 2**62
"""Longer windows have the same records: times are smaller."""
_BEFORE_BATCH: Final = -_LARGEST
_MOST_PAIRS: Final = 500_000
_PAIRS_PER_RECORD: Final = 8
"""With more pairs than both, single records need less memory."""
_SUFFIX: Final = np.dtype([("time", ">i8"), ("sequence", ">i4")])

Join = Callable[[Value, Value, Value], Value]
"""(own value, other value, key) → joined value"""


@attrs.frozen(eq=False)
class JoinSide:
    """A side of a join. `store` has its records, and `node` joins them.

    A record is joined with records of the other side from `before_ms` before it to `after_ms` after it.
    """

    node: str
    source: str
    store: WindowBytes
    before_ms: int
    after_ms: int
    join: Join


@attrs.frozen(eq=False)
class _Records:
    """The records of a side in a batch: all rows that have a key. `codes` are the numbers of their keys.

    `stored` are the values for the store. None = null: such a record is put, and has no partner. The others
    are at the positions `joinable`.
    """

    rows: Rows
    codes: Numbers
    times: Numbers
    order: Numbers
    key_bytes: Sequence[bytes]
    stored: Sequence[bytes | None]
    joinable: Numbers

    @classmethod
    def from_rows(
        cls, rows: Rows, codes: Numbers, different: Sequence[bytes], store: WindowBytes
    ) -> "_Records":
        if NULL_KEY in codes:
            has_key = codes != NULL_KEY
            rows, codes = rows.where(has_key.tolist()), codes[has_key]
        keys = list(map(different.__getitem__, codes.tolist()))
        stored = write_column(store.value_serde, rows.values)
        joinable = np.arange(len(stored))
        if None in stored:
            joinable = joinable[[value is not None for value in stored]]
        return cls(rows, codes, np.array(rows.times, np.int64), rows.order, keys, stored, joinable)


@attrs.frozen(eq=False)
class _Entries:
    """Records of a side that the other side finds, sorted by key, time and sequence number.

    `order` is the position of a record in the processing order. Records of earlier batches come first.
    """

    codes: Numbers
    times: Numbers
    order: Numbers
    values: Sequence[bytes]

    def find_between(self, codes: Numbers, first: Numbers, last: Numbers) -> tuple[Numbers, Numbers]:
        """Return for each search where its entries begin and end: of a key, with a time from first to last.

        Raises:
            NotInColumnsError: Keys and times are too many for one number.
        """
        if not len(self.times):
            return np.zeros(len(codes), np.int64), np.zeros(len(codes), np.int64)
        start, end = int(self.times.min()), int(self.times.max())
        width = end - start + 3
        if (int(max(self.codes.max(), codes.max(initial=0))) + 1) * width > _LARGEST:
            raise NotInColumnsError
        places = self.codes * width + (self.times - start + 1)

        def place_of(times: Numbers) -> Numbers:
            found: Numbers = codes * width + np.clip(times - start + 1, 0, width - 1)
            return found

        begin = np.searchsorted(places, place_of(first), "left")
        return begin, np.maximum(np.searchsorted(places, place_of(last), "right"), begin)


@attrs.frozen(eq=False)
class _Results:
    """The results of one side: columns, and the positions of their records in the processing order."""

    order: Numbers
    keys: Sequence[Value]
    values: Sequence[Value]
    times: Numbers
    headers: Sequence[Headers]


class StreamJoin:
    """An inner join of two streams. `join` changes nothing; `apply` puts the records of both sides."""

    def __init__(self, forward: ColumnProcess, drop: Callable[[str, int], None]) -> None:
        self._forward = forward
        self._drop = drop
        self._sides: list[JoinSide] = []
        self._rows: dict[str, Rows] = {}
        self._records: dict[str, _Records] = {}

    @property
    def sources(self) -> set[str]:
        """The sources of the sides that are known."""
        return {side.source for side in self._sides}

    def add_side(self, side: JoinSide) -> ColumnProcess:
        """Add a side; return the function that gets its rows of a batch.

        Raises:
            NotInColumnsError: The sides write the same key in different ways.
        """
        if any(side.store.key_serde is not other.store.key_serde for other in self._sides):
            raise NotInColumnsError
        self._sides.append(side)

        def collect(rows: Rows) -> None:
            self._rows[side.node] = rows

        return collect

    def clear(self) -> None:
        """Forget the batch."""
        self._rows.clear()
        self._records.clear()

    def join(self) -> None:
        """Forward the results of the batch, without a change of the stores."""
        different = self._number_records()
        results: list[_Results] = []
        left, right = self._sides
        for side, other in ((left, right), (right, left)):
            records = self._records.get(side.node)
            if records is not None:
                self._drop(side.node, len(self._rows[side.node].keys) - len(records.joinable))
                theirs = self._records.get(other.node)
                results.append(_join_side(side, records, other.store, theirs, different))
        if not results:
            return
        order = np.argsort(np.concatenate([each.order for each in results]), kind="stable").tolist()

        def merged(columns: Iterable[Sequence[Value]]) -> list[Value]:
            every = [value for column in columns for value in column]
            return list(map(every.__getitem__, order))

        self._forward(
            Rows(
                None,
                np.array(order, np.int64),
                merged(each.keys for each in results),
                merged(each.values for each in results),
                merged(each.times.tolist() for each in results),
                merged(each.headers for each in results),
                has_keys_of_source=False,
            )
        )

    def apply(self) -> None:
        """Put the records of the batch into the stores of their sides."""
        for side in self._sides:
            records = self._records.get(side.node)
            if records is not None:
                side.store.put_duplicates(
                    records.key_bytes, records.stored, records.rows.times, records.rows.headers
                )

    def _number_records(self) -> list[bytes]:
        """Number the keys of both sides together; return the different ones."""
        numbers: dict[bytes, int] = {}
        numbered = {}
        for side in self._sides:
            rows = self._rows.get(side.node)
            if rows is not None:
                keys = numbered_keys(rows, side.store.key_serde)
                known = [numbers.setdefault(key, len(numbers)) for key in keys.different]
                numbered[side.node] = np.array([*known, NULL_KEY])[keys.codes]
        different = list(numbers)
        for side in self._sides:
            if side.node in numbered:
                rows, codes = self._rows[side.node], numbered[side.node]
                self._records[side.node] = _Records.from_rows(rows, codes, different, side.store)
        return different


def _join_side(
    side: JoinSide,
    records: _Records,
    store: WindowBytes,
    theirs: _Records | None,
    different: Sequence[bytes],
) -> _Results:
    """Join the records of a side; `store` is the store of the other side, and `theirs` are its records."""
    joinable = records.joinable
    codes, times, order = (column[joinable] for column in (records.codes, records.times, records.order))
    oldest = _observed_times(store, theirs, order) - min(store.visible_ms, _LARGEST)
    first = np.maximum(np.maximum(times - min(side.before_ms, _LARGEST), oldest), 0)
    last = np.maximum(times + min(max(side.after_ms, -_LARGEST), _LARGEST), 0)
    entries = _collect_entries(store, theirs, _read_stored(store, codes, first, last, different))
    own, found = _find_earlier(entries, order, *entries.find_between(codes, first, last))
    at = joinable[own].tolist()
    keys = list(map(records.rows.keys.__getitem__, at))
    read, index = np.unique(found, return_inverse=True)
    others = read_column(store.value_serde, list(map(entries.values.__getitem__, read.tolist())))
    own_values = map(records.rows.values.__getitem__, at)
    return _Results(
        order[own],
        keys,
        list(map(side.join, own_values, map(others.__getitem__, index.tolist()), keys)),
        np.maximum(times[own], entries.times[found]),
        list(map(records.rows.headers.__getitem__, at)),
    )


def _find_earlier(entries: _Entries, order: Numbers, begin: Numbers, end: Numbers) -> tuple[Numbers, Numbers]:
    """Return the pairs of a search and an entry that is processed before it, by search, then by entry.

    Raises:
        NotInColumnsError: There are too many.
    """
    number = end - begin
    total = int(number.sum())
    if total > max(_MOST_PAIRS, _PAIRS_PER_RECORD * len(order)):
        raise NotInColumnsError
    searches = np.repeat(np.arange(len(order)), number)
    found = np.arange(total) + np.repeat(begin - np.cumsum(number) + number, number)
    is_earlier = entries.order[found] < order[searches]
    return searches[is_earlier], found[is_earlier]


def _observed_times(store: WindowBytes, records: _Records | None, order: Numbers) -> Numbers:
    """Return the largest time that the store has observed before each position of the processing order."""
    before = store.observed.now
    if records is None:
        return np.full(len(order), before)
    moving = np.arange(len(records.times)) if store.nulls_move_time else records.joinable
    observed = np.maximum.accumulate(np.concatenate([[before], records.times[moving]]))
    found: Numbers = observed[np.searchsorted(records.order[moving], order)]
    return found


def _read_stored(
    store: WindowBytes, codes: Numbers, first: Numbers, last: Numbers, different: Sequence[bytes]
) -> list[tuple[int, Sequence[Pair]]]:
    """Return the entries of earlier batches that the searches may find: (number of the key, entries)."""
    earliest, latest = np.full(len(different), _LARGEST), np.full(len(different), UNSET)
    np.minimum.at(earliest, codes, first)
    np.maximum.at(latest, codes, last)
    latest = np.minimum(latest, store.observed.now)
    wanted = np.flatnonzero(earliest <= latest)
    read = store.stored_between
    return [
        (code, read(different[code], start, end))
        for code, start, end in zip(
            wanted.tolist(), earliest[wanted].tolist(), latest[wanted].tolist(), strict=True
        )
    ]


def _collect_entries(
    store: WindowBytes, records: _Records | None, stored: Sequence[tuple[int, Sequence[Pair]]]
) -> _Entries:
    pairs = [pair for _, found in stored for pair in found]
    suffixes = np.frombuffer(b"".join(key[-TIME_AND_SEQUENCE:] for key, _ in pairs), _SUFFIX)
    codes = np.repeat(
        np.array([code for code, _ in stored], np.int64), np.array([len(found) for _, found in stored], int)
    )
    times, sequences = suffixes["time"].astype(np.int64), suffixes["sequence"].astype(np.int64)
    order = np.full(len(pairs), _BEFORE_BATCH)
    values: list[bytes | None] = [value for _, value in pairs]
    if records is not None:
        joinable = records.joinable
        codes = np.concatenate([codes, records.codes[joinable]])
        times = np.concatenate([times, records.times[joinable]])
        numbers = store.next_sequences(len(records.times))
        sequences = np.concatenate([sequences, np.array(numbers, np.int64)[joinable]])
        order = np.concatenate([order, records.order[joinable]])
        values += [value for value in records.stored if value is not None]
    by_key = np.lexsort((sequences, times, codes))
    return _Entries(
        codes[by_key],
        times[by_key],
        order[by_key],
        list(map(values.__getitem__, by_key.tolist())),  # type: ignore[arg-type]  # none is null
    )
