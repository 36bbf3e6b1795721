"""Rows with packed records become columns; `spark_internals/test_packing` reads records of a broker."""

import struct
from collections.abc import Mapping

import pyarrow as pa  # type: ignore[import-untyped]

from headwater_spark.worker.task_input import COLUMNS
from headwater_spark.worker.task_rows import FIELDS, SCHEMA, unpack_records

_TYPES = {"topic": pa.string(), "partition": pa.int32(), "count": pa.int32()}


def _ints(*numbers: int) -> bytes:
    return struct.pack(f"={len(numbers)}i", *numbers)


def _longs(*numbers: int) -> bytes:
    return struct.pack(f"={len(numbers)}q", *numbers)


def _row(fields: Mapping[str, object]) -> pa.RecordBatch:
    columns = [pa.array([fields.get(name)], _TYPES.get(name, pa.binary())) for name in FIELDS]
    return pa.RecordBatch.from_arrays(columns, names=list(FIELDS))


_PLAIN = {
    "topic": "in",
    "partition": 3,
    "count": 3,
    "offset": _longs(5, 7, 8),
    "time": _longs(1, 2, -1),
    "key_ends": _ints(0, 1, 1, 3),
    "key_bytes": b"abc",
    "key_present": bytes([0b101]),
    "value_ends": _ints(0, 0, 2, 3),
    "value_bytes": b"xyz",
}
_HEADERS = {
    "header_ends": _ints(0, 0, 2, 2),
    "header_key_ends": _ints(0, 2, 3),
    "header_key_bytes": "ék".encode(),
    "header_value_ends": _ints(0, 0, 1),
    "header_value_bytes": b"v",
    "header_value_present": bytes([0b10]),
}
_FOUND = [
    ("in", 3, 5, 1, b"a", b"", None),
    ("in", 3, 7, 2, None, b"xy", None),
    ("in", 3, 8, -1, b"bc", b"z", None),
]


def _records(batch: pa.RecordBatch) -> list[tuple[object, ...]]:
    batch.validate(full=True)
    return list(zip(*(column.to_pylist() for column in batch.columns), strict=True))


def test_records_have_the_columns_of_task_input() -> None:
    (found,) = unpack_records([_row(_PLAIN)], with_topic=True)
    assert tuple(found.schema.names) == COLUMNS
    assert _records(found) == _FOUND


def test_records_of_a_single_topic_have_no_column_for_it() -> None:
    (found,) = unpack_records([_row(_PLAIN)], with_topic=False)
    assert _records(found) == [record[1:] for record in _FOUND]


def test_records_without_headers_have_null_between_others() -> None:
    (found,) = unpack_records([_row(_PLAIN | _HEADERS)], with_topic=True)
    headers = [{"key": "é", "value": None}, {"key": "k", "value": b"v"}]
    assert [record[-1] for record in _records(found)] == [None, headers, None]


def test_each_row_of_an_arrow_batch_is_unpacked() -> None:
    rows = pa.Table.from_batches([_row(_PLAIN), _row(_PLAIN | _HEADERS)]).combine_chunks()
    found = unpack_records(rows.to_batches(), with_topic=True)
    assert [len(batch) for batch in found] == [3, 3]


def test_the_schema_has_all_fields() -> None:
    assert [field.split()[0] for field in SCHEMA.split(", ")] == list(FIELDS)
