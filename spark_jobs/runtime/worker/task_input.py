"""A task's part of a batch: single records, or columns as long as nobody asks for single records."""

from collections.abc import Iterable, Iterator, Mapping, Sequence
from itertools import chain
from operator import itemgetter
from typing import Protocol

import attrs
import pyarrow as pa  # type: ignore[import-untyped]
import pyarrow.compute as pc  # type: ignore[import-untyped]

from spark_jobs.runtime.engine.records import Headers, InputRecord

Place = tuple[str, int]
Reached = tuple[Mapping[Place, int], Mapping[Place, int]]
"""Input partition → the offset after its last record, and → its largest timestamp."""

COLUMNS = ("topic", "partition", "offset", "time", "key", "value", "headers")
"""`time` in milliseconds. A tick is a row that has a partition and nothing else."""


class TaskInput(Protocol):
    """By offset within each input partition."""

    def __len__(self) -> int: ...

    def records(self) -> Sequence[InputRecord]: ...

    def reached(self) -> Reached: ...

    def after(self, positions: Mapping[Place, int]) -> "TaskInput":
        """Return what was not committed yet; a replayed batch begins with some that was."""
        ...


@attrs.frozen
class Records:
    """Of any number of topics; a task has one partition of each."""

    each: Sequence[InputRecord] = ()

    def __len__(self) -> int:
        return len(self.each)

    def records(self) -> Sequence[InputRecord]:
        return self.each

    def reached(self) -> Reached:
        places = self._by_place()
        positions = {place: of[-1][2] + 1 for place, of in places.items()}
        return positions, {place: max(map(itemgetter(3), of)) for place, of in places.items()}

    def after(self, positions: Mapping[Place, int]) -> "Records":
        if all(of[0][2] >= positions.get(place, 0) for place, of in self._by_place().items()):
            return self
        return Records([record for record in self.each if record[2] >= positions.get(record[:2], 0)])

    def _by_place(self) -> Mapping[Place, Sequence[InputRecord]]:
        topics = set(map(itemgetter(0), self.each))
        if len(topics) == 1:
            return {self.each[0][:2]: self.each}
        return {
            (topic, self.each[0][1]): [record for record in self.each if record[0] == topic]
            for topic in topics
        }


@attrs.define
class Columns:
    """Of one input partition, never empty. `records` lets go of the columns as it makes records of them."""

    place: Place
    batches: list[pa.RecordBatch]
    _records: list[InputRecord] | None = None

    def __len__(self) -> int:
        return len(self._records or ()) or sum(batch.num_rows for batch in self.batches)

    @property
    def are_there(self) -> bool:
        return self._records is None

    def records(self) -> Sequence[InputRecord]:
        if self._records is None:
            self._records = []
            self.batches.reverse()
            while self.batches:
                self._records.extend(records(self.batches.pop()))
        return self._records

    def reached(self) -> Reached:
        if self._records is not None:
            return Records(self._records).reached()
        latest = max(pc.max(batch.column("time")).as_py() for batch in self.batches)
        return {self.place: self.batches[-1].column("offset")[-1].as_py() + 1}, {self.place: latest}

    def after(self, positions: Mapping[Place, int]) -> TaskInput:
        if self._records is None and self.batches[0].column("offset")[0].as_py() >= positions.get(
            self.place, 0
        ):
            return self
        return Records(self.records()).after(positions)

    def tuples(self, *fields: str | Iterable[object]) -> Iterator[tuple[object, ...]]:
        """Yield for each record its `fields`: a column's value, or what is given; the columns stay."""
        return chain.from_iterable(
            zip(*(_values(batch, of) if isinstance(of, str) else of for of in fields), strict=False)
            for batch in self.batches
        )


def records(batch: pa.RecordBatch) -> Iterable[InputRecord]:
    """Return the rows of a batch that has the columns `COLUMNS`."""
    return zip(*(_values(batch, column) for column in COLUMNS), strict=True)


def _values(batch: pa.RecordBatch, name: str) -> Iterable[object]:
    column = batch.column(name)
    return _headers(column) if name == "headers" else column.to_pylist()


def _headers(column: pa.Array) -> Iterable[Headers]:
    if not len(column.values):
        return ((),) * len(column)
    return [
        tuple((header["key"], header["value"]) for header in headers or ()) for headers in column.to_pylist()
    ]
