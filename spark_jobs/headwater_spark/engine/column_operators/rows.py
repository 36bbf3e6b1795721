"""Rows in columns, as operators pass them on, and the columns of a source."""

from collections.abc import Callable, Iterator, Sequence
from itertools import chain, compress
from operator import le
from typing import Any

import attrs

from headwater_spark.engine.program_interface import Serde
from headwater_spark.engine.record_order import PartitionColumns
from headwater_spark.engine.records import Headers, InputRecord, Value
from headwater_spark.engine.serdes.plain import PLAIN
from headwater_spark.engine.stores.record_cache import header_bytes


class NotInColumnsError(Exception):
    """A batch cannot be processed in columns, or an operator failed: its records are processed one by one."""


@attrs.frozen
class Rows:
    """Rows in the order of their processing; `positions` are the positions of their records in the source.

    `key_bytes` are the keys in the format `key_serde`; None = an operator has changed the keys of the input.
    """

    source: "SourceColumns"
    positions: Sequence[int]
    keys: Sequence[Value]
    values: Sequence[Value]
    times: Sequence[int]
    headers: Sequence[Headers]
    key_serde: Serde | None = None
    key_bytes: Sequence[bytes | None] | None = None

    def with_values(self, values: Sequence[Value]) -> "Rows":
        return attrs.evolve(self, values=values)

    def with_keys(self, keys: Sequence[Value]) -> "Rows":
        return attrs.evolve(self, keys=keys, key_serde=None, key_bytes=None)

    def where(self, wanted: Sequence[bool]) -> "Rows":
        """Return the rows for which `wanted` is true."""
        if all(wanted):
            return self

        def kept(column: Sequence[Value]) -> Sequence[Value]:
            return list(compress(column, wanted))

        return Rows(
            self.source,
            kept(self.positions),
            kept(self.keys),
            kept(self.values),
            kept(self.times),
            kept(self.headers),
            self.key_serde,
            None if self.key_bytes is None else kept(self.key_bytes),
        )

    @property
    def order(self) -> Sequence[int]:
        """Numbers of the rows: in their order, a task processes the rows of all its sources."""
        order = self.source.order
        return order if len(order) == len(self.positions) else [order[at] for at in self.positions]


ColumnProcess = Callable[[Rows], None]
"""Processes the rows of a batch. It changes no state: `ColumnPlan` does, when all rows are processed."""


class SourceColumns:
    """The records of a source in a batch, in the order of their processing."""

    def __init__(
        self,
        partitions: Sequence[PartitionColumns],
        orders: Sequence[Sequence[int]],
        key_serde: Serde,
        value_serde: Serde,
    ) -> None:
        self.key_serde, self.value_serde = key_serde, value_serde
        self.order: Sequence[int] = orders[0] if orders else ()
        self._partitions = partitions
        self._at: Sequence[tuple[int, int]] | None = None
        """Partition and position of each record; None = there is one partition."""
        self.key_bytes: Sequence[bytes | None]
        self.value_bytes: Sequence[bytes | None]
        self.times: Sequence[int]
        self.headers: Sequence[Headers]
        columns: list[list[Sequence[Any]]] = [
            [part.keys, part.values, part.times, part.headers] for part in partitions
        ]
        if len(partitions) == 1:
            self.key_bytes, self.value_bytes, self.times, self.headers = columns[0]
        else:
            self.order = list(chain.from_iterable(orders))
            by_order = sorted(range(len(self.order)), key=self.order.__getitem__)
            self.order = [self.order[at] for at in by_order]
            self.key_bytes, self.value_bytes, self.times, self.headers = (
                [column[at] for at in by_order]
                for column in (list(chain.from_iterable(each)) for each in zip(*columns, strict=True))
            )
            at_all = [(number, at) for number, part in enumerate(partitions) for at in range(len(part))]
            self._at = [at_all[at] for at in by_order]
        self._values: Sequence[Value] | None = None

    def __len__(self) -> int:
        return len(self.times)

    def record(self, at: int) -> InputRecord:
        if self._at is None:
            return self._partitions[0].record(at)
        number, position = self._at[at]
        return self._partitions[number].record(position)

    def records(self) -> Iterator[InputRecord]:
        return map(self.record, range(len(self)))

    @property
    def values(self) -> Sequence[Value]:
        """The values, read when they are needed."""
        if self._values is None:
            self._values = read_column(self.value_serde, self.value_bytes)
        return self._values

    def last_positions(self, start: int, end: int) -> dict[bytes, int]:
        """Return key → position of its last record from `start` to `end`, in the order of these records.

        Null keys are omitted.
        """
        keys = self.key_bytes[start:end]
        positions = dict(zip(keys, range(start, end), strict=True))
        latest = list(dict.fromkeys(reversed(keys)))
        latest.reverse()
        return {key: positions[key] for key in latest if key is not None}

    def read_keys(self) -> dict[bytes | None, Value]:
        """Return key → value; raise `NotInColumnsError` if a key is not written as it was read."""
        read, write = self.key_serde.deserialize, self.key_serde.serialize
        found: dict[bytes | None, Value] = {None: None}
        for key in set(self.key_bytes):
            if key is not None:
                found[key] = value = read(key)
                if value is None or write(value) != key:
                    raise NotInColumnsError
        return found

    def rows(self) -> Rows:
        """Return the rows with read keys and values."""
        keys = self.read_keys()
        return Rows(
            self,
            range(len(self)),
            list(map(keys.__getitem__, self.key_bytes)),
            self.values,
            self.times,
            self.headers,
            self.key_serde,
            self.key_bytes,
        )

    def header_bytes(self) -> int:
        """Return the size of all headers."""
        return sum(map(header_bytes, filter(None, self.headers)))

    @property
    def is_ordered_by_time(self) -> bool:
        return all(map(le, self.times, self.times[1:]))


def encoded_keys(rows: Rows, serde: Serde) -> Sequence[bytes | None]:
    """Return the keys in a format."""
    if rows.key_bytes is not None and rows.key_serde is serde:
        return rows.key_bytes
    serialize = serde.serialize
    return [None if key is None else serialize(key) for key in rows.keys]


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
