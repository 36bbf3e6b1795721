"""How the records of a batch are passed to a producer, and what it reports of those it did not deliver.

Brokers refuse some records for what they contain: another attempt to write them is useless. A broker refuses
a request as a whole, and librdkafka reports the reason for all of its records. So the next attempt to write
the batch has one record in each request, and the one after it leaves out those that were refused. A
transaction fails with the first refusal, so there may be more attempts.
"""

import time
from collections import deque
from collections.abc import Callable, Iterable, Mapping
from datetime import UTC, datetime
from functools import partial
from itertools import repeat
from operator import length_hint
from typing import Any, Final

import attrs
from confluent_kafka import KafkaError, KafkaException, Message, Producer

from headwater_spark.engine.columns import Columns, OutputColumns, TopicColumns
from headwater_spark.engine.partitioners.static import TaskMigrated
from headwater_spark.engine.records import OutputRecord
from headwater_spark.engine.stores.record_cache import header_bytes
from headwater_spark.worker import clients

EARLIEST_MS: Final = 1
"""The smallest timestamp that can be written: librdkafka replaces 0 by the current time."""
_DIFFERENT_RECORD = KafkaError._INVALID_DIFFERENT_RECORD  # noqa: SLF001 - the library's own codes begin with an underscore
REFUSALS: Final = frozenset(
    {
        KafkaError.INVALID_TIMESTAMP,
        KafkaError.MSG_SIZE_TOO_LARGE,
        KafkaError.INVALID_RECORD,
        _DIFFERENT_RECORD,
    }
)
_PURGED: Final = frozenset({KafkaError._PURGE_QUEUE, KafkaError._PURGE_INFLIGHT})  # noqa: SLF001 - the library's own codes

_DEFAULT_BYTES: Final = 1_048_588
"""The brokers' default; librdkafka's own is a little smaller."""
_MOST_BYTES: Final = 1_000_000_000
"""librdkafka accepts no larger value."""
_SETTINGS: Mapping[str, Any] = {
    "partitioner": "murmur2_random",  # Java's default partitioner
    "linger.ms": 5,
    "retry.backoff.ms": 10,  # a transaction right after another one waits for its markers
    "batch.size": 262_144,
    "message.max.bytes": _DEFAULT_BYTES,
    "queue.buffering.max.messages": 500_000,
    "queue.buffering.max.kbytes": 262_144,
    "delivery.report.only.error": True,
}
_SINGLE: Mapping[str, Any] = {
    "batch.num.messages": 1,
    # With a callback of its own for each record, a report that is missing would leak memory.
    "delivery.report.only.error": False,
}
_POLL_EVERY = 10_000
_POLL_SECONDS = 0.05
_ANY_PARTITION = -1
OnDelivery = Callable[[KafkaError | None, Message], None]
_MAX_ATTEMPTS: Final = 30


class RecordsRefusedError(KafkaException):
    """The brokers refuse records of the batch; `refusals` are records that were alone in their requests."""

    def __init__(self, error: KafkaError, refusals: Iterable["Refusal"] = ()) -> None:
        super().__init__(error)
        self.refusals = tuple(refusals)


@attrs.frozen(kw_only=True)
class Refusal:
    """The refusal of one record, at `now_ms`."""

    code: int
    text: str
    record: OutputRecord
    now_ms: int

    @property
    def reason(self) -> str:
        return f"{self.text} (timestamp {_format_timestamp(self.record[4])})"

    def covers(self, record: OutputRecord) -> bool:
        """Return whether `record` is refused for the same reason: the same record, or a more extreme one."""
        topic, _, key, value, time, headers = record
        refused_topic, _, refused_key, refused_value, refused_time, refused_headers = self.record
        if topic != refused_topic:
            return False
        if self.code == KafkaError.INVALID_TIMESTAMP:  # too far from the brokers' time
            return time >= refused_time if refused_time > self.now_ms else time <= refused_time
        if self.code == KafkaError.MSG_SIZE_TOO_LARGE:
            return _record_size(record) >= _record_size(self.record)
        return (key, value, time, headers) == (refused_key, refused_value, refused_time, refused_headers)


class RefusedRecords:
    """The refusals of a batch, from one attempt to the next."""

    def __init__(self) -> None:
        self._refusals: list[Refusal] = []
        self._attempts = 0

    def __bool__(self) -> bool:
        return bool(self._refusals)

    def add(self, error: RecordsRefusedError) -> None:
        """Remember what was refused; raises `error` if the batch was attempted too often."""
        self._attempts += 1
        if self._attempts >= _MAX_ATTEMPTS:
            raise error
        self._refusals += error.refusals

    def clear(self) -> None:
        """Forget the refusals: what the brokers accept may change."""
        self._refusals.clear()
        self._attempts = 0

    def reason(self, record: OutputRecord) -> str | None:
        """Return why the brokers refuse `record`; None = no refusal covers it."""
        return next((refusal.reason for refusal in self._refusals if refusal.covers(record)), None)


def _record_size(record: OutputRecord) -> int:
    _, _, key, value, _, headers = record
    return len(key or b"") + len(value or b"") + header_bytes(headers)


def _format_timestamp(time_ms: int) -> str:
    try:
        return datetime.fromtimestamp(time_ms // 1000, UTC).strftime("%Y-%m-%dT%H:%M:%SZ")
    except (ValueError, OverflowError, OSError):
        return f"{time_ms} ms"


def size_settings(largest_request: int) -> Mapping[str, Any]:
    """Return the settings of a producer of records with so many bytes; at least the brokers' default."""
    return {"message.max.bytes": min(max(largest_request, _DEFAULT_BYTES), _MOST_BYTES)}


def producer_settings(*, single: bool) -> Mapping[str, Any]:
    """Return the settings of a task's producer; `single`: a request contains one record of a partition."""
    return {**_SETTINGS, **_SINGLE} if single else _SETTINGS


class DeliveryReports:
    """Keeps the first failure that a producer reports, and the records that were refused alone.

    It has no reference to the producer, which refers to it: a cycle would keep a released producer alive.
    """

    def __init__(self) -> None:
        self._failure: KafkaError | None = None
        self._refusals: list[Refusal] = []

    def record_delivery(self, error: KafkaError | None, message: Message) -> None:
        if error is not None and (self._failure is None or _says_more(error.code(), self._failure.code())):
            self._failure = KafkaError(error.code(), f"{message.topic()}: {error.str()}")

    def record_single_delivery(
        self, record: OutputRecord, error: KafkaError | None, message: Message
    ) -> None:
        """Note the delivery of a record that was alone in its request."""
        self.record_delivery(error, message)
        if error is not None and error.code() in REFUSALS - {_DIFFERENT_RECORD}:
            self._refusals.append(_build_refusal(error, record))

    @property
    def has_refusal(self) -> bool:
        """Whether a record was reported that the brokers refuse."""
        return self._failure is not None and self._failure.code() in REFUSALS

    def raise_failure(self) -> None:
        """Raise `RecordsRefusedError` or `KafkaException` if a record was not delivered."""
        if self._failure is None:
            return
        if self._failure.code() not in REFUSALS:
            raise KafkaException(self._failure)
        raise RecordsRefusedError(self._failure, self._refusals)


def _says_more(code: int, known: int) -> bool:
    """Return whether an error says more than the known one: records are purged because another one failed."""
    if known in REFUSALS:
        return False
    return code in REFUSALS or (known in _PURGED and code not in _PURGED)


def _refused_locally(error: KafkaException, record: OutputRecord) -> KafkaException:
    """Return an error of the client, as `RecordsRefusedError` if it is about the record itself."""
    cause: KafkaError = error.args[0]
    return RecordsRefusedError(cause, [_build_refusal(cause, record)]) if cause.code() in REFUSALS else error


def _build_refusal(error: KafkaError, record: OutputRecord) -> Refusal:
    now_ms = time.time_ns() // 1_000_000
    return Refusal(code=error.code(), text=error.name(), record=record, now_ms=now_ms)


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
            return sum(self._send_topic(each) for each in records.topics) + self.send(records.rest)
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
                raise _refused_locally(error, record) from error
            if not number % _POLL_EVERY:
                self._producer.poll(0)
        return number

    def _send_topic(self, topic: TopicColumns) -> int:
        to = _ANY_PARTITION if topic.partition is None else topic.partition
        if to != _ANY_PARTITION and to >= self._partition_counts.get(topic.topic, 0):
            self._check_partition(topic.topic, to)
        return sum(self._send_columns(topic, to, columns) for columns in topic.parts)

    def _send_columns(self, topic: TopicColumns, to: int, columns: Columns) -> int:
        """Pass records on without interpreting a loop, whose steps take as long as `produce` itself."""
        keys, values, times, headers = columns
        has_headers = all(headers)
        if 0 in times or (not has_headers and any(headers)):
            return self.send(topic.records(columns))
        keys_left = iter(keys)
        sent = map(
            self._producer.produce,
            repeat(topic.topic),
            values,
            keys_left,
            repeat(to),
            repeat(None),
            repeat(None),
            times,
            *([map(list, headers)] if has_headers else ()),
        )
        while True:
            try:
                deque(sent, maxlen=0)
                break
            except (BufferError, KafkaException) as error:
                at = len(keys) - length_hint(keys_left) - 1
                record = (topic.topic, topic.partition, keys[at], values[at], times[at], headers[at])
                if isinstance(error, KafkaException):
                    raise _refused_locally(error, record) from error
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
            self._wait_and_send(record, partial(reports.record_single_delivery, record))
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
                raise _refused_locally(error, record) from error
            else:
                return

    def _check_partition(self, topic: str, partition: int) -> None:
        """Fetch the topic's metadata; raise `TaskMigrated` if it has no such partition."""
        found = self._producer.list_topics(topic, clients.REQUEST_SECONDS).topics[topic]
        if found.error is not None:
            raise KafkaException(KafkaError(found.error.code(), f"{topic}: {found.error.str()}"))
        self._partition_counts[topic] = len(found.partitions)
        if partition >= self._partition_counts[topic]:
            raise TaskMigrated(topic, partition, self._partition_counts[topic])
