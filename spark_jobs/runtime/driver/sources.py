"""Kafka read as the engine wants it: which topics, from where, how much at a time."""

import json
import re
from collections.abc import Callable, Mapping

import attrs
from pyspark.sql import Column, DataFrame, SparkSession
from pyspark.sql import functions as sql

from infra.observe import Connection
from spark_jobs.runtime.worker.task_input import COLUMNS

RECORDS_AT_ONCE = 500_000
_HEADERS = "array<struct<key:string,value:binary>>"
"""Never null: asked for its size after each row, Arrow's list vector goes through all nulls at its end."""
_COLUMNS: Mapping[str, Callable[[str], Column]] = {
    "topic": sql.col,
    "partition": sql.col,
    "offset": sql.col,
    "time": lambda _: sql.unix_millis("timestamp"),
    "key": sql.col,
    "value": sql.col,
    "headers": lambda name: sql.coalesce(name, sql.array().cast(_HEADERS)),
}


@attrs.frozen(kw_only=True)
class KafkaSource:
    """Input of one query: `topics`, and what matches `patterns` (Java regular expressions).

    `starts` is (topic, partition) → offset for every partition there is; it counts only while the query has
    no checkpoint. Partitions that come later are read from their beginning.
    """

    connection: Connection
    topics: tuple[str, ...]
    patterns: tuple[str, ...] = ()
    starts: Mapping[tuple[str, int], int]
    exactly_once: bool = True
    records_at_once: int = RECORDS_AT_ONCE

    def options(self) -> dict[str, str]:
        """Return the source's options, secrets in the clear."""
        kafka = {
            **self.connection.java(),
            "isolation.level": "read_committed" if self.exactly_once else "read_uncommitted",
            "fetch.max.wait.ms": "10",
            "max.poll.records": "10000",
        }
        return {
            **{f"kafka.{name}": value for name, value in kafka.items()},
            **self._subscription(),
            "startingOffsets": _offsets_json(self.starts),
            "maxOffsetsPerTrigger": str(self.records_at_once),
            "includeHeaders": "true",
            # Purged records of a batch that is replayed were committed; Spark's log tells of other losses.
            "failOnDataLoss": "false",
        }

    def _subscription(self) -> dict[str, str]:
        if not self.patterns:
            return {"subscribe": ",".join(self.topics)}
        named = [re.escape(topic) for topic in self.topics]
        return {"subscribePattern": "|".join(f"(?:{each})" for each in (*self.patterns, *named))}


def read(spark: SparkSession, source: KafkaSource) -> DataFrame:
    """Return the stream with the columns of `worker.rows`."""
    stream = spark.readStream.format("kafka").options(**source.options()).load()
    return stream.select(*(_COLUMNS[name](name).alias(name) for name in COLUMNS))


def read_range(
    spark: SparkSession, source: KafkaSource, ranges: Mapping[tuple[str, int], tuple[int, int]]
) -> DataFrame:
    """Return the rows of (topic, partition) → (first offset, the one after the last), as `read` does."""
    options = {name: value for name, value in source.options().items() if not name.startswith("subscribe")}
    assigned: dict[str, list[int]] = {}
    for topic, partition in sorted(ranges):
        assigned.setdefault(topic, []).append(partition)
    options |= {
        "assign": json.dumps(assigned),
        "startingOffsets": _offsets_json({place: first for place, (first, _) in ranges.items()}),
        "endingOffsets": _offsets_json({place: end for place, (_, end) in ranges.items()}),
    }
    rows = spark.read.format("kafka").options(**options).load()
    return rows.select(*(_COLUMNS[name](name).alias(name) for name in COLUMNS))


def with_ticks(spark: SparkSession, stream: DataFrame) -> DataFrame:
    """Return `stream` with a row a second that has no topic: time passes without records, too."""
    nothing = {name: sql.lit(None).cast(stream.schema[name].dataType) for name in COLUMNS}
    beat = spark.readStream.format("rate").option("rowsPerSecond", 1).load()
    return stream.unionByName(beat.select(*(nothing[name].alias(name) for name in COLUMNS)))


def _offsets_json(starts: Mapping[tuple[str, int], int]) -> str:
    topics: dict[str, dict[str, int]] = {}
    for (topic, partition), offset in sorted(starts.items()):
        topics.setdefault(topic, {})[str(partition)] = offset
    return json.dumps(topics)
