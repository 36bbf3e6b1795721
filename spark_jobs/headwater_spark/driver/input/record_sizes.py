"""How many records may be processed at once so that they fit into memory, from their average size.

Kafka has no request for the bytes between two offsets. So the first records of each topic are read when a
query starts, at the offsets where it starts. From then on, the tasks report how many bytes they have
received. If a step fails for lack of memory because its records are larger than the records before, the query
is restarted, and the next records are read first: then the steps are small enough.
"""

import time
from collections.abc import Callable, Iterable, Mapping
from contextlib import closing

import attrs
import structlog
from confluent_kafka import KafkaException, Message
from confluent_kafka import TopicPartition as KafkaTopicPartition

from headwater.kafka import Connection
from headwater_spark.driver.captured_failures import failure_reason
from headwater_spark.engine.records import OffsetRanges, Offsets
from headwater_spark.worker import clients

BYTES_AT_ONCE = 256 * 1024 * 1024
_FEW_RECORDS = 64
_LARGE_BYTES = 4 * 1024 * 1024
"""Up to so many records are processed without knowing their sizes, if such large ones fit into memory."""
_SAMPLED_RECORDS = 50
_SAMPLED_BYTES = 1024 * 1024
"""Limits of the records that are read of each partition; at least one is."""
_MESSAGES_AT_ONCE = 10
_SAMPLE_SECONDS = 2.0
_POLL_SECONDS = 0.05
_log = structlog.get_logger(__name__)

ReadBytes = tuple[str, int, int]
"""(topic, number of records, bytes of keys, values and headers)"""
Sample = Callable[[Offsets], Iterable[ReadBytes]]
"""Reads some records from offsets on; returns what each partition has."""


def no_sample(positions: Offsets) -> Iterable[ReadBytes]:
    """Return nothing: a query that has not been started reads no records."""
    del positions
    return ()


class RecordSizes:
    """The average sizes of the records of each topic; only the thread of the query uses it.

    Args:
        bytes_at_once: How many bytes may be processed at once.
        sample: Reads records of topics whose sizes are not known.
    """

    def __init__(self, bytes_at_once: int, sample: Sample) -> None:
        self._limit = bytes_at_once
        self._sample = sample
        self._few = min(_FEW_RECORDS, bytes_at_once // _LARGE_BYTES)
        self._averages: dict[str, float] = {}

    def learn(self, read: Iterable[ReadBytes]) -> None:
        """Use the sizes of the last records that were read of each topic."""
        totals: dict[str, tuple[int, int]] = {}
        for topic, records, size in read:
            known = totals.get(topic, (0, 0))
            totals[topic] = known[0] + records, known[1] + size
        self._averages |= {topic: size / records for topic, (records, size) in totals.items() if records}

    def records_at_once(self, ranges: OffsetRanges) -> int:
        """Return how many of the records in `ranges` may be processed at once."""
        number = sum(end - first for first, end in ranges.values())
        if number > self._few:
            self._learn_unknown({each: first for each, (first, end) in ranges.items() if first < end})
        size = self.known_size(ranges)
        return number if size <= self._limit else max(1, int(number * self._limit / size))

    def most_records(self, positions: Offsets, most: int) -> int:
        """Return how many records from `positions` on may be processed at once, at most `most`."""
        self._learn_unknown(positions)
        largest = max((self._averages.get(topic, 0.0) for topic, _ in positions), default=0.0)
        return most if largest * most <= self._limit else max(1, int(self._limit / largest))

    def known_size(self, ranges: OffsetRanges) -> float:
        """Return about how many bytes the records of `ranges` have; 0 for topics of unknown sizes."""
        return sum(
            (end - first) * self._averages.get(topic, 0.0) for (topic, _), (first, end) in ranges.items()
        )

    def _learn_unknown(self, positions: Offsets) -> None:
        unknown = {each: at for each, at in positions.items() if each[0] not in self._averages}
        if unknown:
            self.learn(self._sample(unknown))
            self._averages = {**dict.fromkeys((topic for topic, _ in unknown), 0.0), **self._averages}


@attrs.frozen
class RecordSampler:
    """Reads the first records from offsets on, in a consumer of its own."""

    connection: Connection
    group: str
    exactly_once: bool = True

    def __call__(self, positions: Offsets) -> Iterable[ReadBytes]:
        """Return (topic, records, bytes) of each partition that has records; nothing if no broker answers."""
        isolation = "read_committed" if self.exactly_once else "read_uncommitted"
        settings = {
            "isolation.level": isolation,
            "enable.partition.eof": True,
            "fetch.wait.max.ms": 10,
            "fetch.message.max.bytes": 64 * 1024,  # a larger record is returned nevertheless
            "queued.max.messages.kbytes": 4 * 1024,
        }
        found: dict[tuple[str, int], tuple[int, int]] = {}
        try:
            with closing(clients.create_consumer(self.connection, self.group, settings)) as consumer:
                consumer.assign([KafkaTopicPartition(*each, at) for each, at in positions.items()])
                open_, deadline = set(positions), time.monotonic() + _SAMPLE_SECONDS
                while open_ and time.monotonic() < deadline:
                    for message in consumer.consume(_MESSAGES_AT_ONCE, timeout=_POLL_SECONDS):
                        _add_message(found, open_, message)
        except KafkaException as error:  # the records are read next: that reports it
            _log.debug("sizes of records not known", reason=failure_reason(error))
        return [(topic, records, size) for (topic, _), (records, size) in found.items()]


def _add_message(
    found: dict[tuple[str, int], tuple[int, int]], open_: set[tuple[str, int]], message: Message
) -> None:
    """Count a message; close its partition if it has been read enough, or has ended."""
    partition = message.topic() or "", message.partition() or 0
    if message.error() is not None:
        open_.discard(partition)
        return
    known = found.get(partition, (0, 0))
    records, size = found[partition] = known[0] + 1, known[1] + _size_of(message)
    if records >= _SAMPLED_RECORDS or size >= _SAMPLED_BYTES:
        open_.discard(partition)


def _size_of(message: Message) -> int:
    key, headers = message.key(), message.headers()
    pairs: Mapping[str, object] | Iterable[tuple[str, object]] = headers or ()
    items = pairs.items() if isinstance(pairs, Mapping) else pairs
    in_headers = sum(len(name) + (len(value) if isinstance(value, bytes) else 0) for name, value in items)
    return len(message) + len(key or b"") + in_headers
