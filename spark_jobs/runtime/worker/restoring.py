"""What changelog topics hold, from an offset to their ends (`StoreChangelogReader`)."""

from collections.abc import Iterator
from typing import Any

import attrs
from confluent_kafka import KafkaError, KafkaException, Message, TopicPartition

from infra.observe import Connection
from spark_jobs.runtime.engine.records import InputRecord
from spark_jobs.runtime.worker import clients

_AT_ONCE = 10_000
_WAIT_SECONDS = 0.05
"""`consume` waits as long as that, unless it gets all it asks for."""


@attrs.frozen
class Span:
    """Offsets `start` up to, and without, `end`; None = what is committed now."""

    start: int = 0
    end: int | None = None


@attrs.frozen
class Chunk:
    """Records of one topic, in order; `next` is the offset after them."""

    topic: str
    records: tuple[InputRecord, ...]
    next: int


class SpanReader:
    """Reads spans one after another, committed records only."""

    def __init__(self, connection: Connection, client: str) -> None:
        settings = {"enable.partition.eof": True, "fetch.wait.max.ms": 10}
        self._consumer = clients.consumer(connection, client, settings)

    def read(self, topic: str, partition: int, span: Span) -> Iterator[Chunk]:
        """Yield what the partition holds in the span.

        What retention or compaction took away is passed over. The last chunk may be empty: it tells where the
        next reading begins. Raises `KafkaException`.
        """
        place = TopicPartition(topic, partition)
        low, high = self._watermarks(place)
        at, end = max(low, span.start), high if span.end is None else min(high, span.end)
        if at < end:
            self._consumer.assign([TopicPartition(topic, partition, at)])
        while at < end:
            messages = self._consumer.consume(_AT_ONCE, timeout=_WAIT_SECONDS)
            records = tuple(as_input(message) for message in messages if message.error() is None)
            at = _after(messages, at)
            yield Chunk(topic, tuple(record for record in records if record[2] < end), min(at, end))
        yield Chunk(topic, (), max(at, end))

    def close(self) -> None:
        self._consumer.close()

    @clients.patiently
    def _watermarks(self, place: TopicPartition) -> tuple[int, int]:
        return self._consumer.get_watermark_offsets(place, clients.REQUEST_SECONDS)


def _after(messages: list[Message], at: int) -> int:
    """Return the offset after `messages`; the end of a partition is told at the offset that comes next."""
    for message in messages:
        error = message.error()
        if error is None:
            at = (message.offset() or 0) + 1
        elif error.code() == KafkaError._PARTITION_EOF:  # noqa: SLF001 - the library's public name
            at = max(at, message.offset() or 0)
        else:
            raise KafkaException(error)
    return at


def as_input(message: Message) -> InputRecord:
    _, timestamp = message.timestamp()
    headers: Any = message.headers() or ()  # the library's stubs allow a dict, which it never returns
    return (
        message.topic() or "",
        message.partition() or 0,
        message.offset() or 0,
        timestamp,
        _bytes(message.key()),
        _bytes(message.value()),
        tuple(headers),
    )


def _bytes(value: bytes | str | None) -> bytes | None:
    return value.encode() if isinstance(value, str) else value
