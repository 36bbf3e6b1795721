"""Chunks of records, as a consumer returns them."""

from collections.abc import Iterable

from confluent_kafka import Message

from headwater_spark.engine.records import InputRecord
from headwater_spark.worker.partition_reader import RecordChunk

_CREATE_TIME = 1


def chunk_of(records: Iterable[InputRecord], next_offset: int) -> RecordChunk:
    """Return a chunk whose messages have the contents of `records`."""
    return RecordChunk(
        [
            Message(
                topic=topic,
                partition=partition,
                offset=offset,
                timestamp=(_CREATE_TIME, timestamp),
                key=key,
                value=value,
                headers=list(headers) or None,
            )
            for topic, partition, offset, timestamp, key, value, headers in records
        ],
        next_offset,
    )
