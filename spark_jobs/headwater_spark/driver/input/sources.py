"""Kafka as a source of Spark: the columns that tasks read, start offsets, batch limits and end offsets."""

import json
import re
from collections.abc import Mapping, Sequence
from contextlib import suppress
from pathlib import Path

import attrs
from py4j.protocol import Py4JError  # type: ignore[import-untyped]
from pyspark.sql import Column, DataFrame, SparkSession
from pyspark.sql import functions as sql

from headwater.kafka import Connection
from headwater_spark.engine.records import OffsetRanges, Offsets, TopicPartition
from headwater_spark.spark_internals.input_signals import InputSignal
from headwater_spark.spark_internals.jvm import HadoopFolder
from headwater_spark.worker.task_input import COLUMNS

RECORDS_AT_ONCE = 500_000
_LOCAL = "file:"
_PARTITION = "partition"
_TYPES: Mapping[str, str] = {
    "topic": "string",
    _PARTITION: "int",
    "offset": "bigint",
    "time": "bigint",
    "key": "binary",
    "value": "binary",
    "headers": "array<struct<key:string,value:binary>>",
}
ROW_SCHEMA = ", ".join(f"{name} {_TYPES[name]}" for name in COLUMNS)
"""The columns of rows with a record each, as DDL."""


@attrs.frozen(kw_only=True)
class KafkaSource:
    """The input of one query: `topics`, and the topics that match `patterns` (Java regular expressions).

    `start_offsets` has every existing partition. Partitions that are added later are read from their
    beginning. `overtaken` are the committed offsets before them: the records in between were deleted.
    `records_at_once` limits a batch; None = no limit. `consumer_group` is used to read ranges: Spark keeps
    consumers open by group and partition.
    """

    connection: Connection
    topics: tuple[str, ...]
    patterns: tuple[str, ...] = ()
    start_offsets: Offsets
    overtaken: Offsets = attrs.field(factory=dict)
    exactly_once: bool = True
    records_at_once: int | None = RECORDS_AT_ONCE
    consumer_group: str | None = None

    def options(self) -> dict[str, str]:
        """Return the options of Spark's Kafka source; they contain secrets."""
        kafka = {
            **self.connection.java_properties(),
            "isolation.level": "read_committed" if self.exactly_once else "read_uncommitted",
            "fetch.max.wait.ms": "10",
            "max.poll.records": "10000",
        }
        if self.consumer_group is not None:
            kafka["group.id"] = self.consumer_group
        limit = {} if self.records_at_once is None else {"maxOffsetsPerTrigger": str(self.records_at_once)}
        return {
            **{f"kafka.{name}": value for name, value in kafka.items()},
            **self._subscription_option(),
            "startingOffsets": _offsets_json(self.start_offsets),
            **limit,
            "includeHeaders": "true",
            # Retention may delete records before they are processed: Spark logs that, and reads the others.
            "failOnDataLoss": "false",
        }

    def _subscription_option(self) -> dict[str, str]:
        if not self.patterns:
            return {"subscribe": ",".join(self.topics)}
        named = [re.escape(topic) for topic in self.topics]
        return {"subscribePattern": "|".join(f"(?:{each})" for each in (*self.patterns, *named))}


def read_stream(spark: SparkSession, source: KafkaSource, signal: InputSignal | None = None) -> DataFrame:
    """Return the stream with the columns of `worker.task_input`; it may wait for `signal`."""
    stream = spark.readStream.format("kafka").options(**source.options()).load()
    if signal is not None:
        stream = signal.applied(stream)
    return _with_columns(stream)


def read_ranges(spark: SparkSession, source: KafkaSource, ranges: OffsetRanges) -> DataFrame:
    """Return the rows of topic partition → (first offset, offset after the last), as `read_stream` does."""
    options = {name: value for name, value in source.options().items() if not name.startswith("subscribe")}
    assigned: dict[str, list[int]] = {}
    for topic, partition in sorted(ranges):
        assigned.setdefault(topic, []).append(partition)
    options |= {
        "assign": json.dumps(assigned),
        "startingOffsets": _offsets_json({partition: first for partition, (first, _) in ranges.items()}),
        "endingOffsets": _offsets_json({partition: end for partition, (_, end) in ranges.items()}),
    }
    rows = spark.read.format("kafka").options(**options).load()
    return _with_columns(rows)


def _with_columns(rows: DataFrame) -> DataFrame:
    # Null for no headers costs nothing per record, an empty array would be created and copied.
    return rows.withColumn("time", sql.unix_millis("timestamp")).select(*COLUMNS)


def with_ticks(spark: SparkSession, stream: DataFrame) -> DataFrame:
    """Return `stream` with one tick per second, a row without a topic: it advances the wall-clock time."""
    ticks = spark.readStream.format("rate").option("rowsPerSecond", 1).load()
    return stream.unionByName(_tick_rows(ticks))


def create_tick(spark: SparkSession) -> DataFrame:
    """Return a single tick."""
    return _tick_rows(spark.range(1))


def task_ticks(spark: SparkSession, tasks: Sequence[Sequence[int]]) -> DataFrame:
    """Return a tick for each task; `tasks` are the tasks of each Spark partition."""
    rows = spark.range(0, len(tasks), 1, len(tasks))
    # One text: each literal would be a request to the JVM.
    of_partitions = sql.from_json(sql.lit(json.dumps(tasks)), f"array<array<{_TYPES[_PARTITION]}>>")
    task = sql.explode(sql.element_at(of_partitions, (sql.col("id") + 1).cast("int")))
    return _tick_rows(rows, task)


def _tick_rows(rows: DataFrame, task: Column | None = None) -> DataFrame:
    fields = {name: sql.lit(None).cast(of) for name, of in _TYPES.items()}
    if task is not None:
        fields[_PARTITION] = task
    return rows.select(*(fields[name].alias(name) for name in COLUMNS))


def batch_end_offsets(checkpoint: str, batch: int) -> Offsets:
    """Return the offsets after a batch, from the offset log of its checkpoint; empty for a remote checkpoint.

    A batch of a transactional topic ends after the transaction marker, which no consumer sees. Committing the
    offset after the last record would show a permanent lag of one.
    """
    log = Path(checkpoint.removeprefix(_LOCAL), "offsets", str(batch))
    try:
        text = log.read_text(encoding="utf-8")
    except OSError:
        return {}
    return _parse_offsets(text)


def _parse_offsets(text: str) -> Offsets:
    """Return the offsets in a file of a checkpoint's offset log; raises `ValueError`."""
    ends: dict[TopicPartition, int] = {}
    for line in text.splitlines()[
        2:
    ]:  # the version of the format, the batch's metadata, then one line for each source
        if line.startswith("{"):
            for topic, partitions in json.loads(line).items():
                ends |= {(topic, int(partition)): offset for partition, offset in partitions.items()}
    return ends


def _offsets_json(offsets: Offsets) -> str:
    topics: dict[str, dict[str, int]] = {}
    for (topic, partition), offset in sorted(offsets.items()):
        topics.setdefault(topic, {})[str(partition)] = offset
    return json.dumps(topics)


class Checkpoint:
    """The checkpoint of a query that does not run, in any file system of Hadoop."""

    def __init__(self, spark: SparkSession, path: str) -> None:
        self._folder = HadoopFolder(spark, path)

    def last_offsets(self) -> Offsets:
        """Return the offsets after the last batch that was completed; none if a part of it is missing."""
        with suppress(Py4JError, ValueError):
            batches = [int(name) for name in self._folder.list_names("commits") if name.isdecimal()]
            if batches:
                return _parse_offsets(self._folder.read_text(f"offsets/{max(batches)}"))
        return {}

    def delete(self) -> None:
        """Delete the checkpoint, if it exists; raises `Py4JJavaError`."""
        self._folder.delete()
