"""Rows in columns, as operators pass them on, and the columns of a source."""

from collections.abc import Callable, Iterator, Sequence
from itertools import compress

import attrs
import numpy as np

from headwater_spark.engine.partition_columns import (
    ByteColumn,
    MergedBytes,
    NumberedBytes,
    PartitionColumns,
    number_bytes,
)
from headwater_spark.engine.program_interface import Serde
from headwater_spark.engine.records import Headers, InputRecord, Value
from headwater_spark.engine.serdes.plain import PLAIN
from headwater_spark.engine.stores.record_cache import header_bytes
from headwater_spark.engine.window_columns import Numbers

_MANY_RECORDS = 256
"""From here on, numpy takes less time than a loop over the records."""


class NotInColumnsError(Exception):
    """A batch cannot be processed in columns, or an operator failed: its records are processed one by one."""


@attrs.frozen(eq=False)
class Rows:
    """Rows in the order of their processing; `positions` are the positions of their records in the source.

    `source` None = each row is the result of a join of two records; only sinks, and operators without a store
    process such rows. `has_keys_of_source` is false once an operator has changed the keys of the input.
    """

    source: "SourceColumns | None"
    positions: Numbers
    keys: Sequence[Value]
    values: Sequence[Value]
    times: Sequence[int]
    headers: Sequence[Headers]
    has_keys_of_source: bool = True

    def with_values(self, values: Sequence[Value]) -> "Rows":
        return attrs.evolve(self, values=values)

    def with_keys(self, keys: Sequence[Value]) -> "Rows":
        return attrs.evolve(self, keys=keys, has_keys_of_source=False)

    def where(self, wanted: Sequence[bool]) -> "Rows":
        """Return the rows for which `wanted` is true."""
        if all(wanted):
            return self

        def kept(column: Sequence[Value]) -> Sequence[Value]:
            return list(compress(column, wanted))

        return Rows(
            self.source,
            self.positions[np.array(wanted, bool)],
            kept(self.keys),
            kept(self.values),
            kept(self.times),
            kept(self.headers),
            self.has_keys_of_source,
        )

    def without_nulls(self, *, keys: bool) -> "Rows":
        """Return the rows that have a value, and a key if `keys`."""
        rows = self
        if None in rows.values:
            rows = rows.where([value is not None for value in rows.values])
        if keys and None in rows.keys:
            rows = rows.where([key is not None for key in rows.keys])
        return rows

    @property
    def order(self) -> Numbers:
        """Numbers of the rows: in their order, a task processes the rows of all its sources.

        Raises:
            NotInColumnsError: The rows are results of a join.
        """
        return self.single_source.order[self.positions]

    @property
    def single_source(self) -> "SourceColumns":
        """The source of the rows. Raises `NotInColumnsError` if the rows are results of a join."""
        if self.source is None:
            raise NotInColumnsError
        return self.source


ColumnProcess = Callable[[Rows], None]
"""Processes the rows of a batch. It changes no state: `ColumnPlan` does, when all rows are processed."""


class SourceColumns:
    """The records of a source in a batch, in the order of their processing."""

    def __init__(
        self,
        partitions: Sequence[PartitionColumns],
        orders: Sequence[Numbers],
        key_serde: Serde,
        value_serde: Serde,
    ) -> None:
        self.key_serde, self.value_serde = key_serde, value_serde
        self.order = orders[0] if orders else np.empty(0, np.int64)
        self._partitions = partitions
        self._at: Sequence[tuple[int, int]] | None = None
        """Partition and position of each record; None = there is one partition."""
        self.times: Numbers
        self._keys: ByteColumn
        self.value_bytes: ByteColumn
        self.headers: Sequence[Headers]
        self._has_headers = any(part.headers is not None for part in partitions)
        if len(partitions) == 1:
            (part,) = partitions
            self.times, self._keys, self.value_bytes = part.times, part.keys, part.values
            self.headers = part.headers or ((),) * len(part)
        else:
            order = np.concatenate(orders)
            by_order = np.argsort(order, kind="stable")
            self.order = order[by_order]
            self.times = np.concatenate([part.times for part in partitions])[by_order]
            self._keys = MergedBytes([part.keys for part in partitions], by_order)
            self.value_bytes = MergedBytes([part.values for part in partitions], by_order)
            at_all = [(number, at) for number, part in enumerate(partitions) for at in range(len(part))]
            self._at = [at_all[at] for at in by_order.tolist()]
            self.headers = [
                () if (headers := partitions[number].headers) is None else headers[at]
                for number, at in self._at
            ]
        self.keys = self._keys.number_values()
        self._key_bytes: Sequence[bytes | None] | None = None
        self._values: Sequence[Value] | None = None

    def __len__(self) -> int:
        return len(self.times)

    def record(self, at: int) -> InputRecord:
        if self._at is None:
            return self._partitions[0].record(at)
        number, position = self._at[at]
        return self._partitions[number].record(position)

    def records_at(self, positions: Numbers) -> Iterator[InputRecord]:
        """Return some records; the positions ascend."""
        if self._at is None:
            return self._partitions[0].records_at(positions)
        self.value_bytes.to_list()
        return map(self.record, positions.tolist())

    def records_between(self, start: int, end: int) -> Iterator[InputRecord]:
        self.value_bytes.to_list()
        return map(self.record, range(start, end))

    def last_records(self, start: int, end: int) -> Iterator[InputRecord]:
        """Return the last record of each key from `start` to `end`, in their order."""
        if end - start >= _MANY_RECORDS:
            _, first = np.unique(self.keys.codes[start:end][::-1], return_index=True)
            return self.records_at(np.sort(end - 1 - first))
        self.value_bytes.to_list()
        last = {self.key_bytes[at]: at for at in range(start, end)}
        return map(self.record, sorted(last.values()))

    @property
    def key_bytes(self) -> Sequence[bytes | None]:
        """The keys as they are written, one for each record."""
        if self._key_bytes is None:
            self._key_bytes = self.keys.to_list()
        return self._key_bytes

    @property
    def values(self) -> Sequence[Value]:
        """The values, read when they are needed."""
        if self._values is None:
            self._values = read_column(self.value_serde, self.value_bytes.to_list())
        return self._values

    def read_keys(self) -> Sequence[Value]:
        """Return the values of the different keys.

        Raises:
            NotInColumnsError: A key is not written as it was read.
        """
        read, write = self.key_serde.deserialize, self.key_serde.serialize
        found = [read(key) for key in self.keys.different]
        if None in found or [write(value) for value in found] != self.keys.different:
            raise NotInColumnsError
        return found

    def rows(self) -> Rows:
        """Return the rows with read keys and values."""
        keys = [*self.read_keys(), None]
        return Rows(
            self,
            np.arange(len(self)),
            [keys[code] for code in self.keys.codes.tolist()],
            self.values,
            self.times.tolist(),
            self.headers,
        )

    def header_bytes(self) -> int:
        return sum(map(header_bytes, filter(None, self.headers))) if self._has_headers else 0


def numbered_keys(rows: Rows, serde: Serde) -> NumberedBytes:
    """Return the keys in a format, as numbers; some of the different keys may have no row."""
    source = rows.source
    if source is not None and rows.has_keys_of_source and source.key_serde is serde:
        return NumberedBytes(source.keys.codes[rows.positions], source.keys.different)
    return number_bytes(encoded_keys(rows, serde))


def encoded_keys(rows: Rows, serde: Serde) -> Sequence[bytes | None]:
    source = rows.source
    if source is not None and rows.has_keys_of_source and source.key_serde is serde:
        keys = source.key_bytes
        return keys if len(keys) == len(rows.keys) else [keys[at] for at in rows.positions.tolist()]
    return write_column(serde, rows.keys)


def read_column(serde: Serde, column: Sequence[bytes | None]) -> Sequence[Value]:
    """Return the values of a column, for strings without a call per value.

    Raises:
        ValueError: A value is not valid in the format.
    """
    if serde is PLAIN["bytes"]:
        return column
    has_nulls = None in column
    if serde is PLAIN["string"] and not has_nulls:
        try:
            return list(map(bytes.decode, column))  # type: ignore[arg-type]  # none is null
        except UnicodeDecodeError:
            pass
    read = serde.deserialize
    return [None if data is None else read(data) for data in column]


def write_column(serde: Serde, column: Sequence[Value]) -> Sequence[bytes | None]:
    """Return the bytes of a column, for strings without a call per value.

    Raises the error of the serde if a value does not fit the format.
    """
    if serde is PLAIN["string"] and set(map(type, column)) == {str}:
        try:
            return list(map(str.encode, column))
        except UnicodeEncodeError:
            pass
    write = serde.serialize
    return [None if value is None else write(value) for value in column]
