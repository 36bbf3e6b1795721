"""Records that the brokers refuse for what they contain: another attempt to write them is useless.

A broker refuses a request as a whole, and librdkafka reports the reason for all of its records. So the next
attempt to write the batch has one record in each request, and the one after it leaves out those that were
refused. A transaction fails with the first refusal, so there may be more attempts.
"""

from collections.abc import Iterable
from datetime import UTC, datetime
from typing import Final

import attrs
from confluent_kafka import KafkaError, KafkaException

from headwater_spark.engine.records import OutputRecord
from headwater_spark.engine.stores.record_cache import header_bytes

EARLIEST_MS: Final = 1
"""The smallest timestamp that can be written: librdkafka replaces 0 by the current time."""
REFUSALS: Final = frozenset(
    {
        KafkaError.INVALID_TIMESTAMP,
        KafkaError.MSG_SIZE_TOO_LARGE,
        KafkaError.INVALID_RECORD,
        KafkaError._INVALID_DIFFERENT_RECORD,  # noqa: SLF001 - the library's public name
    }
)
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
