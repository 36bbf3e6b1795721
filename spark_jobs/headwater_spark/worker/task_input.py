"""A task's part of a batch: as columns as long as possible, of each input partition; else as records."""

from collections.abc import Iterable, Iterator, Mapping, Sequence
from itertools import chain, repeat
from operator import itemgetter
from typing import Protocol, TypeVar

import attrs
import numpy as np
import pyarrow as pa  # type: ignore[import-untyped]
import pyarrow.compute as pc  # type: ignore[import-untyped]

from headwater_spark.engine.columns import Columns
from headwater_spark.engine.key_counts import LATEST_TIME, NULL_KEY, KeyCount, KeyCounts, KeyedColumns
from headwater_spark.engine.partition_columns import PartitionColumns
from headwater_spark.engine.records import Headers, InputRecord, TopicPartition
from headwater_spark.engine.window_columns import Numbers
from headwater_spark.worker.arrow_bytes import ArrowBytes
from headwater_spark.worker.interleaving import ProcessedPart

BatchT = TypeVar("BatchT")
InputProgress = tuple[Mapping[TopicPartition, int], Mapping[TopicPartition, int]]
"""Topic partition → the offset after its last record, and → its largest timestamp in milliseconds."""
COLUMNS = ("topic", "partition", "offset", "time", "key", "value", "headers")
"""`time` is milliseconds. A tick (wall-clock time advances) is a row with a partition and nothing else.

Rows of a query without ticks that reads a single topic have no column for it.
"""
TOPIC = COLUMNS[0]
_ROW = "row"
_topic_partition = itemgetter(0, 1)
_LARGE_BATCH = 1_000
_RECORDS_PER_KEY = 2
"""From here on, counts per key cost less than records (`count_keys`)."""


class TaskInput(Protocol):
    """Records by offset within each input partition."""

    def __len__(self) -> int: ...

    def records(self) -> Sequence[InputRecord]: ...

    def progress(self) -> InputProgress: ...

    def starting_at(self, offsets: Mapping[TopicPartition, int]) -> "TaskInput":
        """Return the records from `offsets` on; a batch that is replayed may start before them."""
        ...


@attrs.frozen
class RecordInput:
    """Records of any number of partitions."""

    each: Sequence[InputRecord] = ()

    def __len__(self) -> int:
        return len(self.each)

    def records(self) -> Sequence[InputRecord]:
        return self.each

    def progress(self) -> InputProgress:
        partitions = self._by_partition()
        offsets = {partition: records[-1][2] + 1 for partition, records in partitions.items()}
        times = {partition: max(map(itemgetter(3), records)) for partition, records in partitions.items()}
        return offsets, times

    def starting_at(self, offsets: Mapping[TopicPartition, int]) -> "RecordInput":
        partitions = self._by_partition()
        if all(records[0][2] >= offsets.get(partition, 0) for partition, records in partitions.items()):
            return self
        return RecordInput([record for record in self.each if record[2] >= offsets.get(record[:2], 0)])

    def _by_partition(self) -> Mapping[TopicPartition, Sequence[InputRecord]]:
        partitions = set(map(_topic_partition, self.each))
        if len(partitions) == 1:
            return {self.each[0][:2]: self.each}
        found: dict[TopicPartition, list[InputRecord]] = {partition: [] for partition in partitions}
        for record in self.each:
            found[record[:2]].append(record)
        return found


@attrs.define
class ColumnInput:
    """Arrow columns of one input partition, never empty.

    `records` and `partition_columns` convert them and release the batches.
    """

    topic_partition: TopicPartition
    batches: list[pa.RecordBatch]
    _records: list[InputRecord] | None = None
    _partition: PartitionColumns | None = None

    def __len__(self) -> int:
        return len(self._records or self._partition or ()) or sum(batch.num_rows for batch in self.batches)

    def __reduce__(self) -> tuple[object, ...]:
        """Pickle the columns in Arrow's format, a quarter of the time that pickled arrays take."""
        if not self.has_columns:
            return RecordInput, (self.records(),)
        return _read_columns, (self.topic_partition, _arrow_stream(self.batches))

    @property
    def size(self) -> int:
        """The size of the columns in bytes."""
        return sum(batch.nbytes for batch in self.batches)

    @property
    def has_columns(self) -> bool:
        return self._records is None and self._partition is None

    def records(self) -> Sequence[InputRecord]:
        if self._records is None:
            self._records = [] if self._partition is None else list(self._partition.records())
            self.batches.reverse()
            while self.batches:
                self._records.extend(_records_of(self.batches.pop(), self.topic_partition[0]))
        return self._records

    def progress(self) -> InputProgress:
        if not self.has_columns:
            return RecordInput(self.records()).progress()
        largest = max(pc.max(batch.column("time")).as_py() for batch in self.batches)
        next_offset = self.batches[-1].column("offset")[-1].as_py() + 1
        return {self.topic_partition: next_offset}, {self.topic_partition: largest}

    def starting_at(self, offsets: Mapping[TopicPartition, int]) -> TaskInput:
        if not self.has_columns:
            return RecordInput(self.records()).starting_at(offsets)
        first = offsets.get(self.topic_partition, 0)
        if self.first_offset >= first:
            return self
        rest = [part for batch in self.batches if (part := _starting_at(batch, first)).num_rows]
        return ColumnInput(self.topic_partition, rest) if rest else RecordInput([])

    @property
    def first_offset(self) -> int:
        first: int
        if self._records is not None:
            first = self._records[0][2]
        elif self._partition is not None:
            first = int(self._partition.offsets[0])
        else:
            first = self.batches[0].column("offset")[0].as_py()
        return first

    def partition_columns(self) -> Sequence[PartitionColumns]:
        """Return the columns of the only partition."""
        if self._partition is None:
            self._partition = _partition_columns_of(self.topic_partition, self.batches)
            self.batches.clear()
        return [self._partition]

    def combine_batches(self) -> pa.Table:
        """Join the Arrow batches into one, which replaces them: no row is in memory twice. Return it."""
        table = pa.Table.from_batches(self.batches).combine_chunks()
        self.batches[:] = table.to_batches()
        return table

    def columns(self) -> Iterator[Columns]:
        """Yield keys, values, timestamps and headers of each Arrow batch; the batches are kept."""
        for batch in self.batches:
            keys, values, times = (batch.column(name).to_pylist() for name in ("key", "value", "time"))
            yield keys, values, times, _read_headers(batch.column("headers"))


def input_sizes(input_: TaskInput) -> Iterator[tuple[str, int, int]]:
    """Yield (topic, number of records, bytes) of each partition that has columns."""
    parts = input_.parts if isinstance(input_, PartitionedInput) else [input_]
    for part in parts:
        if isinstance(part, ColumnInput) and part.has_columns:
            yield part.topic_partition[0], len(part), part.size


def _partition_columns_of(
    topic_partition: TopicPartition, batches: Sequence[pa.RecordBatch]
) -> PartitionColumns:
    """Return the columns. Numbers are copied, so that they keep no batch in memory."""
    offsets, times = (
        np.concatenate([batch.column(name).to_numpy() for batch in batches]) for name in ("offset", "time")
    )
    keys, values = (ArrowBytes([batch.column(name) for batch in batches]) for name in ("key", "value"))
    headers: list[Headers] | None = None
    columns = [batch.column("headers") for batch in batches]
    if any(len(column.values) for column in columns):
        headers = [each for column in columns for each in _read_headers(column)]
    return PartitionColumns(topic_partition, offsets, times, keys, values, headers)


def _starting_at(batch: pa.RecordBatch, offset: int) -> pa.RecordBatch:
    """Return the rows from an offset on."""
    return batch.slice(int(np.searchsorted(batch.column("offset").to_numpy(), offset)))


def _arrow_stream(batches: Sequence[pa.RecordBatch]) -> bytes:
    output = pa.BufferOutputStream()
    with pa.ipc.new_stream(output, batches[0].schema) as stream:
        for batch in batches:
            stream.write_batch(batch)
    columns: bytes = output.getvalue().to_pybytes()
    return columns


def _read_columns(topic_partition: TopicPartition, columns: bytes) -> ColumnInput:
    with pa.ipc.open_stream(columns) as stream:
        return ColumnInput(topic_partition, list(stream))


def without_negative_times(columns: ColumnInput) -> tuple[ColumnInput, int]:
    """Return the records whose timestamp is not negative, and the number of all others."""
    if all(pc.min(batch.column("time")).as_py() >= 0 for batch in columns.batches):
        return columns, 0
    kept = [batch.filter(pc.greater_equal(batch.column("time"), 0)) for batch in columns.batches]
    found = ColumnInput(columns.topic_partition, [batch for batch in kept if batch.num_rows])
    return found, len(columns) - len(found)


def number_keys(columns: ColumnInput) -> KeyedColumns | None:
    """Return the columns with numbered keys, for windowed counts.

    None = a record has headers, a negative timestamp, or a timestamp after `LATEST_TIME`.
    """
    if any(len(batch.column("headers").values) for batch in columns.batches):
        return None
    table = pa.Table.from_batches(columns.batches)
    times = table.column("time").to_numpy()
    if times.min() < 0 or times.max() > LATEST_TIME:
        return None
    keys = table.column("key").dictionary_encode().combine_chunks()
    codes = pc.fill_null(keys.indices, NULL_KEY).to_numpy(zero_copy_only=False).astype(np.int64)
    topic = columns.topic_partition[0]

    batches = list(columns.batches)

    def records(rows: Numbers) -> Sequence[InputRecord]:
        return [record for batch in _rows_of(batches, rows) for record in _records_of(batch, topic)]

    values = table.column("value")
    return KeyedColumns(
        topic=topic,
        keys=keys.dictionary.to_pylist(),
        codes=codes,
        times=times,
        without_value=pc.is_null(values).to_numpy() if values.null_count else None,
        records=records,
    )


def count_keys(columns: ColumnInput) -> KeyCounts | None:
    """Return the records counted per key, None if single records are needed, or cost less.

    They are needed if a timestamp is negative. They cost less if most keys occur once: in batches of 50,000
    records, counts took 1.1 times the processor time of records with unique keys, 0.8 with two records per
    key, and 0.4 with ten. Small batches are always counted.
    """
    table = pa.Table.from_batches(columns.batches)
    times = pc.min_max(table.column("time")).as_py()
    if times["min"] < 0:
        return None
    if table.num_rows >= _LARGE_BATCH:
        keys = pc.count_distinct(table.column("key")).as_py()
        if table.num_rows < _RECORDS_PER_KEY * keys:
            return None
    whole = table.select(["key", "time"]).append_column(_ROW, pa.array(range(table.num_rows), pa.int64()))
    if table.column("key").null_count or table.column("value").null_count:
        whole = whole.filter(pc.and_(pc.is_valid(table.column("key")), pc.is_valid(table.column("value"))))
    groups = (
        whole.group_by("key", use_threads=False)
        .aggregate([(_ROW, "max"), (_ROW, "count"), ("time", "max")])
        .sort_by(f"{_ROW}_max")
    )
    last: Iterable[InputRecord] = (
        record
        for batch in _rows_of(columns.batches, groups.column(f"{_ROW}_max").to_numpy())
        for record in _records_of(batch, columns.topic_partition[0])
    )
    counts = (groups.column(name).to_pylist() for name in ("key", f"{_ROW}_count", "time_max"))
    by_key: list[KeyCount] = list(zip(*counts, last, strict=True))
    return KeyCounts(
        by_key=by_key,
        dropped=table.num_rows - whole.num_rows,
        latest=times["max"],
        header_bytes=sum(_header_bytes(batch.column("headers")) for batch in columns.batches),
    )


def _rows_of(batches: Sequence[pa.RecordBatch], rows: Numbers) -> Iterator[pa.RecordBatch]:
    """Yield some rows, whose numbers ascend. Arrow's `Table.take` would copy all batches into one before."""
    ends = np.cumsum([batch.num_rows for batch in batches])
    first = 0
    for batch, end, last in zip(batches, ends, np.searchsorted(rows, ends), strict=True):
        if first < last:
            yield batch.take(pa.array(rows[first:last] - (end - batch.num_rows)))
        first = last


def _header_bytes(column: pa.Array) -> int:
    """Return at least the size of all names and values in a column of headers."""
    headers = column.flatten()
    return headers.nbytes if len(headers) else 0


def _records_of(batch: pa.RecordBatch, topic: str | None) -> Iterable[InputRecord]:
    """Return the records; `topic` is the topic of all of them, None = a column has it."""
    topics = batch.column(TOPIC).to_pylist() if topic is None else repeat(topic, batch.num_rows)
    fields = (batch.column(name).to_pylist() for name in COLUMNS[1:-1])
    return zip(topics, *fields, _read_headers(batch.column(COLUMNS[-1])), strict=True)


def _read_headers(column: pa.Array) -> Sequence[Headers]:
    if not len(column.values):
        return ((),) * len(column)
    return [
        tuple((header["key"], header["value"]) for header in headers or ()) for headers in column.to_pylist()
    ]


@attrs.frozen
class PartitionedInput:
    """Columns of several input partitions, ordered by topic and partition."""

    parts: Sequence[ColumnInput]

    def __len__(self) -> int:
        return sum(map(len, self.parts))

    def __reduce__(self) -> tuple[object, ...]:
        """Pickle the columns, or the records once the columns are released: an attempt has failed."""
        if all(part.has_columns for part in self.parts):
            return PartitionedInput, (self.parts,)
        return RecordInput, (self.records(),)

    @property
    def size(self) -> int:
        """The size of the columns in bytes."""
        return sum(part.size for part in self.parts)

    def records(self) -> Sequence[InputRecord]:
        return list(chain.from_iterable(each.records() for each in self.partition_columns()))

    def progress(self) -> InputProgress:
        offsets: dict[TopicPartition, int] = {}
        times: dict[TopicPartition, int] = {}
        for part in self.parts:
            next_offset, largest = part.progress()
            offsets |= next_offset
            times |= largest
        return offsets, times

    def starting_at(self, offsets: Mapping[TopicPartition, int]) -> "PartitionedInput | RecordInput":
        if all(part.first_offset >= offsets.get(part.topic_partition, 0) for part in self.parts):
            return self
        if not all(part.has_columns for part in self.parts):
            return RecordInput(self.records()).starting_at(offsets)
        rest = [
            part
            for part in (each.starting_at(offsets) for each in self.parts)
            if isinstance(part, ColumnInput)
        ]
        return PartitionedInput(rest) if rest else RecordInput([])

    def partition_columns(self) -> Sequence[PartitionColumns]:
        return [columns for part in self.parts for columns in part.partition_columns()]


def processed_columns(
    partitions: Sequence[PartitionColumns], held_back: Mapping[TopicPartition, int]
) -> ProcessedPart:
    """Return what was processed; `held_back` is partition → number of records at its end that were not."""
    offsets: dict[TopicPartition, int] = {}
    times: dict[TopicPartition, int] = {}
    unprocessed: dict[TopicPartition, int] = {}
    read = 0
    for each in partitions:
        partition = each.topic_partition
        number = len(each) - held_back.get(partition, 0)
        read += number
        if number < len(each):
            unprocessed[partition] = int(each.offsets[number])
        if number:
            offsets[partition] = unprocessed.get(partition, int(each.offsets[number - 1]) + 1)
            times[partition] = int(each.times[:number].max())
    return ProcessedPart(read, offsets, times, unprocessed)
