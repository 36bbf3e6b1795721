"""How the records of a batch are passed to a producer."""

from collections import deque
from collections.abc import Callable, Iterable, Iterator, Sequence
from functools import partial
from itertools import repeat
from operator import length_hint

import attrs
from confluent_kafka import KafkaError, KafkaException, Message, Producer

from headwater_spark.engine.partitioners.static import TaskMigrated
from headwater_spark.engine.records import Headers, OutputRecord
from headwater_spark.worker import clients
from headwater_spark.worker.delivery_reports import DeliveryReports, refused_locally
from headwater_spark.worker.refusals import EARLIEST_MS

_POLL_EVERY = 10_000
_POLL_SECONDS = 0.05
_ANY_PARTITION = -1

OnDelivery = Callable[[KafkaError | None, Message], None]
Columns = tuple[Sequence[bytes | None], Sequence[bytes | None], Sequence[int], Sequence[Headers]]
"""Keys, values, timestamps in milliseconds and headers of some records."""


@attrs.frozen
class OutputColumns:
    """Output records of one topic in columns, a few thousand at a time; can be iterated once.

    The default partitioner chooses their partitions.
    """

    topic: str
    parts: Iterable[Columns]

    def __iter__(self) -> Iterator[OutputRecord]:
        for columns in self.parts:
            yield from _records(self.topic, columns)


class RecordSender:
    """Passes records to a producer; `reports` gets the delivery of each single record.

    `produce` gets positional arguments, as keywords take longer than the rest; `produce_batch` does not
    accept timestamps.
    """

    def __init__(self, producer: Producer, reports: DeliveryReports | None) -> None:
        self._producer = producer
        self._reports = reports
        self._partition_counts: dict[str, int] = {}

    def send(self, records: Iterable[OutputRecord]) -> int:
        """Pass `records` on; return their number.

        Raises:
            TaskMigrated: A record's partition does not exist.
            RecordsRefusedError: A record is too large.
            KafkaException: Kafka fails.
        """
        if self._reports is not None:
            return self._send_single(records, self._reports)
        if isinstance(records, OutputColumns):
            return sum(self._send_columns(records.topic, columns) for columns in records.parts)
        produce, counts = self._producer.produce, self._partition_counts
        number = 0
        for number, record in enumerate(records, 1):
            topic, partition, key, value, timestamp, headers = record
            if partition is None:
                to = _ANY_PARTITION
            else:
                to = partition
                if partition >= counts.get(topic, 0):
                    self._check_partition(topic, partition)
            try:
                if headers:
                    produce(topic, value, key, to, None, None, timestamp or EARLIEST_MS, list(headers))
                else:
                    produce(topic, value, key, to, None, None, timestamp or EARLIEST_MS)
            except BufferError:
                self._wait_and_send(record)
            except KafkaException as error:
                raise refused_locally(error, record) from error
            if not number % _POLL_EVERY:
                self._producer.poll(0)
        return number

    def _send_columns(self, topic: str, columns: Columns) -> int:
        """Pass records on without interpreting a loop, whose steps take as long as `produce` itself."""
        keys, values, times, headers = columns
        if any(headers) or 0 in times:
            return self.send(_records(topic, columns))
        keys_left = iter(keys)
        sent = map(
            self._producer.produce,
            repeat(topic),
            values,
            keys_left,
            repeat(_ANY_PARTITION),
            repeat(None),
            repeat(None),
            times,
        )
        while True:
            try:
                deque(sent, maxlen=0)
                break
            except (BufferError, KafkaException) as error:
                at = len(keys) - length_hint(keys_left) - 1
                record = (topic, None, keys[at], values[at], times[at], ())
                if isinstance(error, KafkaException):
                    raise refused_locally(error, record) from error
                self._wait_and_send(record)
        self._producer.poll(0)
        return len(keys)

    def _send_single(self, records: Iterable[OutputRecord], reports: DeliveryReports) -> int:
        number = 0
        for record in records:
            number += 1
            topic, partition, *_ = record
            if partition is not None and partition >= self._partition_counts.get(topic, 0):
                self._check_partition(topic, partition)
            self._wait_and_send(record, partial(reports.note_single, record))
            if not number % _POLL_EVERY:
                self._producer.poll(0)
        return number

    def _wait_and_send(self, record: OutputRecord, report: OnDelivery | None = None) -> None:
        """Pass a record on as soon as the producer's queue has room, or raise `KafkaException`."""
        topic, partition, key, value, timestamp, headers = record
        to = _ANY_PARTITION if partition is None else partition
        time = timestamp or EARLIEST_MS
        silence = clients.Silence("record was delivered")
        while True:
            try:
                if headers:
                    self._producer.produce(topic, value, key, to, report, report, time, list(headers))
                else:
                    self._producer.produce(topic, value, key, to, report, report, time)
            except BufferError:
                silence.check(is_silent=True)
                self._producer.poll(_POLL_SECONDS)
            except KafkaException as error:
                raise refused_locally(error, record) from error
            else:
                return

    def _check_partition(self, topic: str, partition: int) -> None:
        """Fetch the topic's metadata; raise `TaskMigrated` if it has no such partition."""
        found = self._producer.list_topics(topic, clients.REQUEST_SECONDS).topics[topic]
        if found.error is not None:
            raise KafkaException(found.error)
        self._partition_counts[topic] = len(found.partitions)
        if partition >= self._partition_counts[topic]:
            raise TaskMigrated(topic, partition, self._partition_counts[topic])


def _records(topic: str, columns: Columns) -> Iterator[OutputRecord]:
    return zip(repeat(topic), repeat(None), *columns, strict=False)
