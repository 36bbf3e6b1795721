"""What a task's producer reports of the records that were not delivered, and the settings for that."""

import time
from collections.abc import Mapping
from typing import Any

from confluent_kafka import KafkaError, KafkaException, Message

from headwater_spark.engine.records import OutputRecord
from headwater_spark.worker.refusals import REFUSALS, RecordsRefusedError, Refusal

_SETTINGS: Mapping[str, Any] = {
    "partitioner": "murmur2_random",  # Java's default partitioner
    "linger.ms": 5,
    "retry.backoff.ms": 10,  # a transaction right after another one waits for its markers
    "batch.size": 262_144,
    "message.max.bytes": 1_048_588,  # the brokers' default; librdkafka's own is a little smaller
    "queue.buffering.max.messages": 500_000,
    "queue.buffering.max.kbytes": 262_144,
    "delivery.report.only.error": True,
}
_SINGLE: Mapping[str, Any] = {
    "batch.num.messages": 1,
    # With a callback of its own for each record, a report that is missing would leak memory.
    "delivery.report.only.error": False,
}
_DIFFERENT_RECORD = KafkaError._INVALID_DIFFERENT_RECORD  # noqa: SLF001 - the library's own codes begin with an underscore


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

    def note(self, error: KafkaError | None, message: Message) -> None:
        if error is not None and (self._failure is None or self._failure.code() not in REFUSALS):
            self._failure = KafkaError(error.code(), f"{message.topic()}: {error.str()}")

    def note_single(self, record: OutputRecord, error: KafkaError | None, message: Message) -> None:
        """Note the delivery of a record that was alone in its request."""
        self.note(error, message)
        if error is not None and error.code() in REFUSALS - {_DIFFERENT_RECORD}:
            self._refusals.append(_refusal(error, record))

    @property
    def has_refusal(self) -> bool:
        """Whether a record was reported that the brokers refuse."""
        return self._failure is not None and self._failure.code() in REFUSALS

    def check(self) -> None:
        """Raise `RecordsRefusedError` or `KafkaException` if a record was not delivered."""
        if self._failure is None:
            return
        if self._failure.code() not in REFUSALS:
            raise KafkaException(self._failure)
        raise RecordsRefusedError(self._failure, self._refusals)


def refused_locally(error: KafkaException, record: OutputRecord) -> KafkaException:
    """Return an error of the client, as `RecordsRefusedError` if it is about the record itself."""
    cause: KafkaError = error.args[0]
    return RecordsRefusedError(cause, [_refusal(cause, record)]) if cause.code() in REFUSALS else error


def _refusal(error: KafkaError, record: OutputRecord) -> Refusal:
    now_ms = time.time_ns() // 1_000_000
    return Refusal(code=error.code(), text=error.name(), record=record, now_ms=now_ms)
