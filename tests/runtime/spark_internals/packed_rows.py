"""Records on a broker, and as Spark returns them: packed, or row by row."""

from collections.abc import Iterable, Iterator, Mapping, Sequence

import attrs
import pyarrow as pa  # type: ignore[import-untyped]
from pyspark import TaskContext
from pyspark.sql import DataFrame
from pyspark.sql import functions as sql

from headwater_spark.driver.input.sources import KafkaSource
from headwater_spark.spark_internals.packing import Evaluation, RecordPacking
from headwater_spark.spark_internals.python_tasks import map_in_arrow, prepare_arrow_function
from headwater_spark.worker.task_input import COLUMNS
from headwater_spark.worker.task_rows import FIELDS, SCHEMA, unpack_records
from tests.runtime.spark.kafka_topics import Topics

NOW = 1_700_000_000_000
RECORDS_AT_ONCE = 800
"""The most records of a row with the fixture `short_rows`."""
RECORD_SCHEMA = (
    "task int, topic string, partition int, offset bigint, time bigint, key binary, value binary, "
    "headers array<struct<key:string,value:binary>>"
)
Headers = Sequence[tuple[str, bytes | None]]
Record = tuple[bytes | None, bytes | None, int, Headers]
Rows = Sequence[tuple[object, ...]]


@attrs.frozen
class TwoTopics:
    """Two topics with three partitions of 50 records; `ranges` are the offsets to read."""

    source: KafkaSource
    ranges: Mapping[tuple[str, int], tuple[int, int]]


def plain_records(count: int) -> Sequence[Record]:
    return [(b"key %d" % at, b"value %d" % at, NOW + at, ()) for at in range(count)]


CASES: dict[str, Sequence[Record]] = {
    "one record": plain_records(1),
    "more records than a row": plain_records(RECORDS_AT_ONCE * 2 + 1),
    "exactly the records of a row": plain_records(RECORDS_AT_ONCE),
    "nulls": [(None if at % 3 == 0 else b"k", None if at % 5 < 2 else b"", NOW, ()) for at in range(1_000)],
    "only nulls": [(None, None, NOW, ())] * 17,
    "headers": [
        (b"k", b"v", NOW, [(f"é{each}", None if each % 2 else b"%d" % each) for each in range(at % 4)])
        for at in range(100)
    ],
    "empty headers": [(b"k", b"v", NOW, [("", b"")]), (b"k", b"v", NOW, ())],
    "headers in the second row": [
        *plain_records(RECORDS_AT_ONCE),
        (b"k", b"v", NOW, [("name", b"value")]),
        (b"k", b"v", NOW, ()),
    ],
    "times": [(b"k", b"v", time, ()) for time in (0, 1, NOW)],
    "large records": [(b"k" * size, b"v" * size, NOW, ()) for size in (450_000, 1, 200_000) * 4],
}
"""Each case has a partition of one topic, and so a Spark task of its own."""


def unpack_batches(batches: Iterable[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
    context = TaskContext.get()
    assert context is not None
    for records in unpack_records(batches, with_topic=True):
        task = pa.array([context.partitionId()] * len(records), pa.int32())
        yield pa.RecordBatch.from_arrays([task, *records.columns], names=["task", *COLUMNS])


def read_packed(
    rows: DataFrame,
    groups: Sequence[int] | None = None,
    count: int = 0,
    *,
    reads_values: bool = True,
    evaluation: Evaluation | None = None,
) -> Rows:
    """Return the records behind `rows`, with the number of their Spark task, as they are in it."""
    packed = RecordPacking(SCHEMA, evaluation).packed(rows, groups, count, reads_values=reads_values)
    assert packed is not None
    unpacked = map_in_arrow(packed, prepare_arrow_function(unpack_batches, RECORD_SCHEMA, FIELDS))
    return [tuple(row) for row in unpacked.collect()]


def read_rows(rows: DataFrame) -> Rows:
    """Return what Spark's connector returns."""
    return [tuple(row) for row in rows.select(sql.spark_partition_id(), *COLUMNS).collect()]


def send_records(topics: Topics, topic: str, records: Sequence[Record], partition: int = 0) -> None:
    topics.send((topic, partition, key, value, time, tuple(headers)) for key, value, time, headers in records)


def send_cases(topics: Topics, topic: str) -> Mapping[tuple[str, int], tuple[int, int]]:
    """Create a topic with the records of `CASES`, one partition for each; return what has to be read."""
    topics.create({topic: len(CASES)})
    for partition, records in enumerate(CASES.values()):
        send_records(topics, topic, records, partition)
    return {(topic, partition): (0, len(records)) for partition, records in enumerate(CASES.values())}


def rows_by_case(rows: Rows) -> Mapping[str, Rows]:
    """Return name → rows of each of `CASES`."""
    return {name: [row for row in rows if row[2] == partition] for partition, name in enumerate(CASES)}
