"""Records as the columns of their partitions, and what a task writes to each topic."""

from collections.abc import Iterable, Sequence

import pyarrow as pa  # type: ignore[import-untyped]

from headwater_spark.engine.partition_columns import PartitionColumns
from headwater_spark.engine.records import InputRecord, OutputRecord, TopicPartition
from headwater_spark.worker.task_input import COLUMNS, ColumnInput

_HEADERS = pa.list_(pa.struct([("key", pa.string()), ("value", pa.binary())]))
_KINDS = (pa.string(), pa.int32(), pa.int64(), pa.int64(), pa.binary(), pa.binary(), _HEADERS)


def columns_of(records: Iterable[InputRecord]) -> Sequence[PartitionColumns]:
    """Return the columns of each partition; records of a partition are ordered by offset."""
    partitions: dict[TopicPartition, list[InputRecord]] = {}
    for record in records:
        partitions.setdefault(record[:2], []).append(record)
    return [part for found in partitions.values() for part in column_input(found).partition_columns()]


def column_input(records: Sequence[InputRecord], at_once: int = 2) -> ColumnInput:
    """Return records of one partition as Arrow columns, `at_once` in a batch."""
    batches = []
    for first in range(0, len(records), at_once):
        fields = zip(*records[first : first + at_once], strict=True)
        arrays = [pa.array(list(field), kind) for field, kind in zip(fields, _KINDS, strict=True)]
        batches.append(pa.RecordBatch.from_arrays(arrays, names=list(COLUMNS)))
    return ColumnInput(records[0][:2], batches)


def by_topic(records: Iterable[OutputRecord]) -> dict[str, list[OutputRecord]]:
    """Return the records of each topic, in their order."""
    found: dict[str, list[OutputRecord]] = {}
    for record in records:
        found.setdefault(record[0], []).append(record)
    return found
