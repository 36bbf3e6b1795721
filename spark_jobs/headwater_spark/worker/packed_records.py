"""Rows of Spark that hold thousands of records of a topic partition each, as Arrow columns of records.

`spark_internals/PackedRecords.java` writes the fields in Arrow's layout, so no record is copied here.
"""

from collections.abc import Iterable, Iterator

import pyarrow as pa  # type: ignore[import-untyped]
import pyarrow.compute as pc  # type: ignore[import-untyped]

from headwater_spark.worker.task_input import COLUMNS, TOPIC

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
        _items(row, _KEY, pa.binary(), count),
        _items(row, _VALUE, pa.binary(), count),
        _headers(row, count),
    ]
    if with_topic:
        return pa.RecordBatch.from_arrays([pa.repeat(row[TOPIC], count), *columns], names=list(COLUMNS))
    return pa.RecordBatch.from_arrays(columns, names=list(COLUMNS[1:]))


def _items(row: dict[str, pa.Scalar], name: str, of: pa.DataType, count: int) -> pa.Array:
    fields = (row[f"{name}{suffix}"] for suffix in (_PRESENT, _ENDS, _BYTES))
    return pa.Array.from_buffers(of, count, [each.as_buffer() for each in fields])


def _headers(row: dict[str, pa.Scalar], count: int) -> pa.Array:
    """Return the headers; null for a record without headers, as in the rows of Spark's connector."""
    buffer = row[_HEADERS].as_buffer()
    if buffer is None:
        return pa.nulls(count, _HEADER_LIST)
    ends = pa.Array.from_buffers(pa.int32(), count + 1, [None, buffer])
    number = ends[-1].as_py()
    items = [_items(row, _HEADER_KEY, pa.string(), number), _items(row, _HEADER_VALUE, pa.binary(), number)]
    present = pc.not_equal(ends[1:], ends[:-1]).buffers()[1]
    headers = pa.StructArray.from_arrays(items, fields=list(_HEADER))
    return pa.Array.from_buffers(_HEADER_LIST, count, [present, buffer], children=[headers])
