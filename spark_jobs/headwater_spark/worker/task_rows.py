"""Rows of Spark as the input of tasks: unpacked, and split by task and input partition, as columns.

A row may hold thousands of records of a topic partition. `spark_internals/PackedRecords.java` writes their
fields in Arrow's layout, so no record is copied here.

Spark's JVM closes the connection to its worker if it cannot read a record, or if the task is killed. For
Arrow, that is an end of the rows like any other: without a check, the worker would commit the end offsets of
rows that it has never received. After the last row, Spark writes one more number
(`SpecialLengths.END_OF_STREAM`), which PySpark's worker reads when the task's function has ended.
"""

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from io import BufferedReader
from typing import Any, TypeVar

import attrs
import pyarrow as pa  # type: ignore[import-untyped]
import pyarrow.compute as pc  # type: ignore[import-untyped]

from headwater_spark.engine.records import TopicPartition
from headwater_spark.worker.task_input import (
    COLUMNS,
    TOPIC,
    ColumnInput,
    PartitionedInput,
    RecordInput,
    TaskInput,
)

_ENDS, _BYTES, _PRESENT = "_ends", "_bytes", "_present"
_KEY, _VALUE, _HEADER_KEY, _HEADER_VALUE = "key", "value", "header_key", "header_value"
_ITEMS = tuple(f"{name}{suffix}" for name in (_KEY, _VALUE) for suffix in (_ENDS, _BYTES, _PRESENT))
_HEADER_ITEMS = tuple(
    f"{name}{suffix}" for name in (_HEADER_KEY, _HEADER_VALUE) for suffix in (_ENDS, _BYTES, _PRESENT)
)
_HEADERS = "header_ends"
FIELDS = ("topic", "partition", "count", "offset", "time", *_ITEMS, _HEADERS, *_HEADER_ITEMS)
"""The fields of a row, in the order in which `PackedRecords.java` writes them.

Items are keys, values, and keys and values of headers. Their fields are the end of each item, the bytes of
all items, and a bit for each present item. The bits are null if all items are present. The fields of headers
are null if no record has headers. The topic is null if Spark SQL has evaluated records of a single topic.
"""
SCHEMA = ", ".join(
    f"{name} {'string' if name == TOPIC else 'int' if name in ('partition', 'count') else 'binary'}"
    for name in FIELDS
)
_HEADER = pa.struct([pa.field("key", pa.string()), pa.field("value", pa.binary())])
_HEADER_LIST = pa.list_(_HEADER)


def unpack_records(batches: Iterable[pa.RecordBatch], *, with_topic: bool) -> Iterator[pa.RecordBatch]:
    """Yield the records of each row, with the columns `COLUMNS`, or all of them but the topic."""
    for batch in batches:
        for number in range(batch.num_rows):
            yield _records_of({name: batch.column(name)[number] for name in FIELDS}, with_topic=with_topic)


def _records_of(row: dict[str, pa.Scalar], *, with_topic: bool) -> pa.RecordBatch:
    count = row["count"].as_py()
    columns = [
        pa.repeat(row["partition"], count),
        pa.Array.from_buffers(pa.int64(), count, [None, row["offset"].as_buffer()]),
        pa.Array.from_buffers(pa.int64(), count, [None, row["time"].as_buffer()]),
        _read_items(row, _KEY, pa.binary(), count),
        _read_items(row, _VALUE, pa.binary(), count),
        _read_headers(row, count),
    ]
    if with_topic:
        return pa.RecordBatch.from_arrays([pa.repeat(row[TOPIC], count), *columns], names=list(COLUMNS))
    return pa.RecordBatch.from_arrays(columns, names=list(COLUMNS[1:]))


def _read_items(row: dict[str, pa.Scalar], name: str, of: pa.DataType, count: int) -> pa.Array:
    fields = (row[f"{name}{suffix}"] for suffix in (_PRESENT, _ENDS, _BYTES))
    return pa.Array.from_buffers(of, count, [each.as_buffer() for each in fields])


def _read_headers(row: dict[str, pa.Scalar], count: int) -> pa.Array:
    """Return the headers; null for a record without headers, as in the rows of Spark's connector."""
    buffer = row[_HEADERS].as_buffer()
    if buffer is None:
        return pa.nulls(count, _HEADER_LIST)
    ends = pa.Array.from_buffers(pa.int32(), count + 1, [None, buffer])
    number = ends[-1].as_py()
    items = [
        _read_items(row, _HEADER_KEY, pa.string(), number),
        _read_items(row, _HEADER_VALUE, pa.binary(), number),
    ]
    present = pc.not_equal(ends[1:], ends[:-1]).buffers()[1]
    headers = pa.StructArray.from_arrays(items, fields=list(_HEADER))
    return pa.Array.from_buffers(_HEADER_LIST, count, [present, buffer], children=[headers])


BatchT = TypeVar("BatchT")
_TOPIC, _PARTITION, _OFFSET = COLUMNS[:3]


class IncompleteInputError(Exception):
    """The rows of a task have ended early: Spark has failed to read its records, or has killed the task.

    Nothing of the batch was committed. Spark reports the reason, and the batch is tried again.
    """

    def __init__(self) -> None:
        super().__init__(
            "the rows of the batch have ended early: Spark could not read all records, or has ended the task"
        )


def require_all_rows(batches: Iterable[BatchT], stream: BufferedReader) -> Iterator[BatchT]:
    """Yield the Arrow batches that are read from `stream`; raise `IncompleteInputError` if they end early."""
    yield from batches
    if not stream.peek(1):
        raise IncompleteInputError


@attrs.define
class TaskRows:
    """One task's rows of a batch; `tick`: process it even without records, for wall-clock punctuation."""

    input: TaskInput
    tick: bool = False


def split_by_task(
    batches: Iterable[pa.RecordBatch],
    topic: str | None,
    task_of: Callable[[int], int] | None = None,
    *,
    shuffled: bool,
) -> Mapping[int, TaskRows]:
    """Return task → rows, by offset within each partition.

    `topic` is the topic of rows without a column for it. `task_of` returns the task of a partition; None =
    they have the same number. Rows that Spark has not shuffled are whole input partitions, one after the
    other, in order, and each is the input of one task.
    """
    filled = (batch for batch in batches if batch.num_rows)
    return _split_shuffled(filled, topic, task_of) if shuffled else _split_in_order(filled, topic)


def _split_in_order(batches: Iterable[pa.RecordBatch], topic: str | None) -> Mapping[int, TaskRows]:
    inputs: dict[int, ColumnInput] = {}
    for batch in batches:
        partitions = batch.column("partition")
        found = pc.unique(partitions)
        for scalar in found:
            rows = batch if len(found) == 1 else batch.filter(pc.equal(partitions, scalar))
            name, partition = topic or rows.column(TOPIC)[0].as_py(), scalar.as_py()
            inputs.setdefault(partition, ColumnInput((name, partition), [])).batches.append(rows)
    return {partition: TaskRows(columns) for partition, columns in inputs.items()}


def _split_shuffled(
    batches: Iterable[pa.RecordBatch], topic: str | None, task_of: Callable[[int], int] | None
) -> Mapping[int, TaskRows]:
    parts, ticks = _partitions_of(batches, topic)
    tasks: dict[int, list[ColumnInput]] = {}
    for (_, partition), part in parts.items():
        tasks.setdefault(partition if task_of is None else task_of(partition), []).append(part)
    return {
        number: TaskRows(_input_of(tasks.get(number, ())), number in ticks) for number in tasks.keys() | ticks
    }


def _input_of(parts: Sequence[ColumnInput]) -> TaskInput:
    match parts:
        case ():
            return RecordInput([])
        case [only]:
            return only
    return PartitionedInput(parts)


def _partitions_of(
    batches: Iterable[pa.RecordBatch], topic: str | None
) -> tuple[Mapping[TopicPartition, ColumnInput], set[int]]:
    """Return the columns of each partition, ordered by offset, and the tasks with a tick.

    `topic` is the topic of rows without a column for it. The row of a tick has the task's number, no offset.
    """
    found: dict[TopicPartition, list[pa.RecordBatch]] = {}
    ticks: set[int] = set()
    for batch in batches:
        rows = batch
        if batch.column(_OFFSET).null_count:
            are_ticks = pc.is_null(batch.column(_OFFSET))
            ticks.update(batch.filter(are_ticks).column(_PARTITION).to_pylist())
            rows = batch.filter(pc.invert(are_ticks))
        of_topics = _split_rows(rows, _TOPIC) if topic is None else [(topic, rows)]
        for name, of_topic in of_topics:
            for partition, part in _split_rows(of_topic, _PARTITION):
                found.setdefault((name, partition), []).append(part)
    return {each: ColumnInput(each, _order_by_offset(parts)) for each, parts in sorted(found.items())}, ticks


def _split_rows(rows: pa.RecordBatch, column: str) -> Iterable[tuple[Any, pa.RecordBatch]]:
    """Yield each value of a column with its rows; nearly always there is one."""
    values = rows.column(column)
    different = pc.unique(values).to_pylist()
    for value in different:
        yield value, rows if len(different) == 1 else rows.filter(pc.equal(values, value))


def _order_by_offset(parts: list[pa.RecordBatch]) -> list[pa.RecordBatch]:
    """Return the rows of one partition ordered by offset: Spark's shuffle returns blocks in any order."""
    parts.sort(key=lambda part: part.column(_OFFSET)[0].as_py())
    ends = [part.column(_OFFSET)[-1].as_py() for part in parts]
    starts = [part.column(_OFFSET)[0].as_py() for part in parts]
    are_ordered = all(end < start for end, start in zip(ends, starts[1:], strict=False))
    if are_ordered and all(map(_is_ordered, parts)):
        return parts
    return pa.Table.from_batches(parts).sort_by(_OFFSET).to_batches()  # type: ignore[no-any-return]


def _is_ordered(part: pa.RecordBatch) -> bool:
    offsets = part.column(_OFFSET)
    return not pc.any(pc.greater_equal(offsets[:-1], offsets[1:])).as_py()
