"""Read partitions of changelog topics, and of other topics that state is restored from, chunk by chunk."""

import time
from collections import defaultdict
from collections.abc import Iterable, Iterator, Mapping, Sequence
from functools import cached_property
from itertools import repeat
from typing import Any

import attrs
from confluent_kafka import KafkaError, KafkaException, Message
from confluent_kafka import TopicPartition as KafkaTopicPartition

from headwater.kafka import Connection
from headwater_spark.engine.records import Headers, InputRecord, Offsets, TopicPartition
from headwater_spark.worker import clients

_RECORDS_AT_ONCE = 10_000
_CHUNK_SECONDS = 0.05
"""How long records are collected for a chunk that has fewer."""
_CONSUME_SECONDS = 0.005
"""`consume` blocks for this time unless it gets as many records as it requested."""
_SETTINGS: Mapping[str, Any] = {
    "enable.partition.eof": True,
    "fetch.wait.max.ms": 10,
    # librdkafka stops fetching when 100,000 records are queued, by default for a second. They last for less.
    "fetch.queue.backoff.ms": 10,
}


@attrs.frozen
class OffsetRange:
    """Offsets from `start` up to and excluding `end`; None = the end of what is committed now."""

    start: int = 0
    end: int | None = None


@attrs.frozen
class RecordChunk:
    """Consumed records of one partition, in order; `next_offset` follows them, `end` is where the read ends.

    Most of the time of a read is spent on the conversion of records: `keys` converts only the keys.
    """

    messages: Sequence[Message]
    next_offset: int
    end: int | None = None

    def __len__(self) -> int:
        return len(self.messages)

    @cached_property
    def records(self) -> tuple[InputRecord, ...]:
        if not self.messages:
            return ()
        topic, partition = self.messages[0].topic() or "", self.messages[0].partition() or 0
        offsets = [offset or 0 for offset in map(Message.offset, self.messages)]
        columns = (offsets, self.times, self.keys, self.values, self.headers)
        return tuple(zip(repeat(topic), repeat(partition), *columns, strict=False))

    def record(self, index: int) -> InputRecord:
        return input_record(self.messages[index])

    def value(self, index: int) -> bytes | None:
        return _encode_text(self.messages[index].value())

    @property
    def keys(self) -> list[bytes | None]:
        return _encode_texts(map(Message.key, self.messages))

    @property
    def values(self) -> list[bytes | None]:
        return _encode_texts(map(Message.value, self.messages))

    @property
    def times(self) -> list[int]:
        """The timestamps in milliseconds."""
        return [time for _, time in map(Message.timestamp, self.messages)]

    @property
    def headers(self) -> list[Headers]:
        found: list[Any] = list(map(Message.headers, self.messages))  # the stubs allow a dict
        return [tuple(each) if each else () for each in found] if any(found) else [()] * len(found)


class PartitionReader:
    """Reads ranges of partitions one after another, committed records only (`StoreChangelogReader`).

    `group` is the application's group, which it may read: librdkafka looks for the coordinator of any group.
    """

    def __init__(self, connection: Connection, group: str) -> None:
        self._consumer = clients.create_consumer(connection, group, _SETTINGS)

    def read(self, topic: str, partition: int, range_: OffsetRange) -> Iterator[RecordChunk]:
        """Yield the records of the range; offsets that retention or compaction removed are skipped.

        The last chunk may be empty: it gives the offset where the next read starts. Records that are written
        meanwhile are left to the next read, although the client may have fetched some of them.

        Raises:
            KafkaException: The partition cannot be read, or nothing arrives for `clients.REQUEST_SECONDS`.
        """
        low, high = self.bounds(topic, partition)
        at = max(low, range_.start)
        end = max(at, high if range_.end is None else min(high, range_.end))
        if at < end:
            self._consumer.assign([KafkaTopicPartition(topic, partition, at)])
        silence = clients.Silence()
        while at < end:
            messages = self._consume(at, end)
            at = _next_offset(messages, at)
            silence.check(is_silent=not messages)
            read = (
                messages
                if at <= end and not any(map(Message.error, messages))
                else [each for each in messages if each.error() is None and (each.offset() or 0) < end]
            )
            yield RecordChunk(read, min(at, end), end)
        yield RecordChunk((), end, end)

    def _consume(self, at: int, end: int) -> list[Message]:
        """Return the next messages; do not wait for more of them once the range is read."""
        messages: list[Message] = []
        deadline = time.monotonic() + _CHUNK_SECONDS
        while len(messages) < _RECORDS_AT_ONCE and time.monotonic() < deadline:
            messages += self._consumer.consume(_RECORDS_AT_ONCE - len(messages), timeout=_CONSUME_SECONDS)
            if _next_offset(messages[-1:], at) >= end:
                break
        return messages

    def close(self) -> None:
        self._consumer.close()

    @clients.retry_transient
    def bounds(self, topic: str, partition: int) -> tuple[int, int]:
        """Return the first offset, and the one after the last committed record; raises `KafkaException`."""
        kafka_partition = KafkaTopicPartition(topic, partition)
        first, end = self._consumer.get_watermark_offsets(kafka_partition, clients.REQUEST_SECONDS)
        return first, end


class PartitionFollower:
    """Reads several partitions at the same time, committed records only, and later what is newer.

    Meanwhile the client fetches newer records: a read that continues the last one does not wait for them.
    """

    def __init__(self, connection: Connection, group: str) -> None:
        self._consumer = clients.create_consumer(connection, group, _SETTINGS)
        self._positions: Offsets = {}
        """Assigned partition → the offset after the last record that was returned."""

    def read(self, starts: Offsets) -> Iterator[tuple[TopicPartition, RecordChunk]]:
        """Yield the records from `starts` up to the present ends at least, each partition in its order.

        Offsets that retention or compaction removed are skipped. Raises `KafkaException`, also if nothing
        arrives for `clients.REQUEST_SECONDS`.
        """
        bounds = clients.read_bounds(self._consumer, starts)
        positions = {each: max(start, bounds[each][0]) for each, start in starts.items()}
        ends = {each: end for each, (_, end) in bounds.items()}
        if positions != self._positions:
            self._consumer.assign([KafkaTopicPartition(*each, at) for each, at in positions.items()])
        self._positions = {}  # if the caller does not read all, the next read begins again at its starts
        silence = clients.Silence()
        while any(at < ends[each] for each, at in positions.items()):
            found = self._consume(positions, ends)
            for each, messages in found.items():
                positions[each] = _next_offset(messages, positions.get(each, 0))
                read = [message for message in messages if message.error() is None]
                yield each, RecordChunk(read, positions[each])
            silence.check(is_silent=not any(found.values()))
        self._positions = positions

    def close(self) -> None:
        self._consumer.close()

    def _consume(self, positions: Offsets, ends: Offsets) -> Mapping[TopicPartition, list[Message]]:
        """Return the next messages; do not wait for more of them once all partitions are read."""
        found: dict[TopicPartition, list[Message]] = defaultdict(list)
        number, deadline = 0, time.monotonic() + _CHUNK_SECONDS
        while number < _RECORDS_AT_ONCE and time.monotonic() < deadline:
            for each in self._consumer.consume(_RECORDS_AT_ONCE - number, timeout=_CONSUME_SECONDS):
                found[each.topic() or "", each.partition() or 0].append(each)
                number += 1
            if all(_next_offset(found[each][-1:], at) >= ends[each] for each, at in positions.items()):
                break
        return found


def input_record(message: Message) -> InputRecord:
    """Return a consumed message as the engine's record."""
    _, timestamp = message.timestamp()
    headers: Any = message.headers() or ()  # the library's stubs allow a dict, which it never returns
    return (
        message.topic() or "",
        message.partition() or 0,
        message.offset() or 0,
        timestamp,
        _encode_text(message.key()),
        _encode_text(message.value()),
        tuple(headers),
    )


def _next_offset(messages: list[Message], at: int) -> int:
    """Return the offset after `messages`; an end-of-partition event carries the offset that follows it."""
    errors = list(map(Message.error, messages))
    if messages and not any(errors):
        return (messages[-1].offset() or 0) + 1
    for message, error in zip(messages, errors, strict=True):
        if error is None:
            at = (message.offset() or 0) + 1
        elif error.code() == KafkaError._PARTITION_EOF:  # noqa: SLF001 - the library's public name
            at = max(at, message.offset() or 0)
        else:
            raise KafkaException(error)
    return at


def _encode_texts(values: Iterable[bytes | str | None]) -> list[bytes | None]:
    found: list[Any] = list(values)
    return list(map(_encode_text, found)) if str in set(map(type, found)) else found


def _encode_text(value: bytes | str | None) -> bytes | None:
    return value.encode() if isinstance(value, str) else value
