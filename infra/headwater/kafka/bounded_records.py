"""Read the records of a partition that others may write: with bounded memory, and past those beyond bounds.

A broker returns a batch as a whole, however large it is. librdkafka then closes the connection, because the
response exceeds `receive.message.max.bytes`, and requests the same batch again. So a batch that is too large
is skipped by a new consumer that starts behind it. A batch may have many records: then the offset behind it
is found by doubling the step, and by bisection.
"""

import time
from collections.abc import Iterator, Mapping
from typing import Any, Self

import attrs
from confluent_kafka import Consumer, KafkaError, KafkaException, TopicPartition

from headwater.kafka.kafka_errors import TIMED_OUT
from headwater.model.problems import Problem, ProblemCode
from headwater.model.untrusted import LARGEST_VALUE, MOST_BYTES, MOST_KEYS, UnreadReason, UnreadRecord

_FETCH = 1024 * 1024
_LARGEST_RESPONSE = LARGEST_VALUE + 64 * 1024
_POLL_SECONDS = 0.05  # `consume` always waits this long, unless there are records for a whole batch
_BATCH = 500
_LONGEST_SECONDS = 300.0
_NOT_READABLE: Mapping[int, UnreadReason] = {
    KafkaError._BAD_MSG: UnreadReason.TOO_LARGE,  # noqa: SLF001 - librdkafka's own codes
    KafkaError.MSG_SIZE_TOO_LARGE: UnreadReason.TOO_LARGE,
    KafkaError._BAD_COMPRESSION: UnreadReason.COMPRESSED,  # noqa: SLF001 - as above
}
_EOF = KafkaError._PARTITION_EOF  # noqa: SLF001 - as above
_SETTINGS: Mapping[str, Any] = {
    "enable.auto.commit": False,
    "auto.offset.reset": "earliest",
    "enable.partition.eof": True,
    "fetch.wait.max.ms": 50,
    "fetch.max.bytes": _FETCH,
    "fetch.message.max.bytes": _FETCH,
    "message.max.bytes": _FETCH,
    "receive.message.max.bytes": _LARGEST_RESPONSE,
    "queued.max.messages.kbytes": 8 * 1024,
}


@attrs.frozen
class ReadRecord:
    """A record within the bounds; `value` None: a tombstone."""

    offset: int
    key: bytes
    value: bytes | None


@attrs.frozen
class BoundedTopic:
    """A topic with one partition. `settings` are settings of its consumer, which never joins its group.

    `seconds`: how long to wait for the next record.
    """

    settings: Mapping[str, Any]
    topic: str
    partition: int
    seconds: float

    def records(self, end: int | None = None) -> Iterator[ReadRecord | UnreadRecord]:
        """Yield all records up to the offset `end`, None: the present end, in their order.

        Raises:
            KafkaException: The brokers do not answer, or refuse the request, or the records take too long.
        """
        deadline = time.monotonic() + _LONGEST_SECONDS
        with _Fetch(self, deadline) as fetch:
            first, last = fetch.consumer.get_watermark_offsets(
                TopicPartition(self.topic, self.partition), timeout=self.seconds
            )
        position, end = first, last if end is None else end
        bad, reason = None, UnreadReason.TOO_LARGE
        while first < last and position < end:
            with _Fetch(self, deadline, position) as fetch:
                for record in fetch.records(end):
                    if bad is not None:
                        yield self._unread_record(bad, position - 1, reason)
                        bad = None
                    yield record
            is_behind = fetch.position > position or fetch.obstacle is None
            if bad is not None and is_behind:
                yield self._unread_record(bad, position - 1, reason)
                bad = None
            position = fetch.position
            if fetch.obstacle is None or position >= end:
                continue
            # The next record is usually behind it. Otherwise the batch has more than one.
            is_first = bad is None
            bad, reason = position if bad is None else bad, fetch.obstacle
            position = position + 1 if is_first else self._offset_behind(position, end, deadline)
        if bad is not None:
            yield self._unread_record(bad, position - 1, reason)

    def _offset_behind(self, offset: int, end: int, deadline: float) -> int:
        """Return the first offset behind the batch at `offset`, which cannot be fetched."""
        bad, step = offset, 1
        while bad + step < end and not self._is_fetched(bad + step, deadline):
            bad, step = bad + step, 2 * step
        good = min(bad + step, end)
        while good - bad > 1:
            middle = (bad + good) // 2
            if self._is_fetched(middle, deadline):
                good = middle
            else:
                bad = middle
        return good

    def _is_fetched(self, offset: int, deadline: float) -> bool:
        with _Fetch(self, deadline, offset) as fetch:
            found = next(fetch.records(offset + 1, is_one=True), None)
            return found is not None or fetch.obstacle is None

    def _unread_record(self, first: int, last: int, reason: UnreadReason) -> UnreadRecord:
        return UnreadRecord(
            topic=self.topic, partition=self.partition, offset=first, last_offset=last, reason=reason
        )


class _Fetch:
    """A consumer from one offset to the first batch that it cannot read (`obstacle`)."""

    def __init__(self, topic: BoundedTopic, deadline: float, start: int | None = None) -> None:
        self.topic = topic
        self.obstacle: UnreadReason | None = None
        self.position = start or 0
        self._deadline = deadline
        self._is_at_end = self._is_refused = False
        self._progress = time.monotonic()
        self.consumer = Consumer({**topic.settings, **_SETTINGS, "error_cb": self._on_error})
        if start is not None:
            self.consumer.assign([TopicPartition(topic.topic, topic.partition, start)])

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.consumer.close()

    def records(self, end: int, *, is_one: bool = False) -> Iterator[ReadRecord]:
        """Yield records up to the offset `end`, or to the obstacle; `is_one`: one or none at any offset.

        Raises:
            KafkaException: No record has arrived for too long, or the brokers refuse the request.
        """
        while self.position < end and self.obstacle is None:
            for record in self._next_records():
                if record.offset < end or is_one:
                    yield record
            if is_one and self._is_at_end:
                return
            if time.monotonic() > min(self._deadline, self._progress + self.topic.seconds):
                raise KafkaException(TIMED_OUT)

    def _next_records(self) -> list[ReadRecord]:
        """Return the next records, none after a while without any."""
        was_refused, found = self._is_refused, []
        for message in self.consumer.consume(_BATCH, timeout=_POLL_SECONDS):
            error, offset = message.error(), message.offset() or 0
            if error is None:
                self._move_to(offset + 1)
                found.append(ReadRecord(offset, message.key() or b"", message.value()))
            elif error.code() == _EOF:
                self._is_at_end = True
                self._move_to(offset)
            elif error.code() in _NOT_READABLE:
                self._move_to(offset)
                self.obstacle = _NOT_READABLE[error.code()]
                break
            else:
                raise KafkaException(error)
        # Records that were fetched before the connection was closed are still in the queue.
        if was_refused and not found:
            self.obstacle = UnreadReason.TOO_LARGE
        return found

    def _move_to(self, position: int) -> None:
        if position > self.position:
            self.position, self._progress = position, time.monotonic()

    def _on_error(self, error: KafkaError) -> None:
        self._is_refused = self._is_refused or error.code() == KafkaError._BAD_MSG  # noqa: SLF001 - as above


def too_many_records(topic: str, partition: int, offset: int) -> Problem:
    """Return the problem for a topic with more records than Headwater keeps in memory."""
    return Problem(
        code=ProblemCode.UNREADABLE_RECORD,
        summary=f"The topic {topic} contains too many records.",
        topic=topic,
        expected=f"at most {MOST_KEYS:,} keys and {MOST_BYTES // 1024**2} MiB",
        found=f"more, up to offset {offset} of partition {partition}",
        why="Nothing that Headwater writes needs as many. To read them all, this process would need too much "
        "memory.",
        fix=f"Find out who writes to {topic}, and remove the permission. Then delete the topic: the next "
        "`pulumi up` of each stack creates it and writes its records again.",
    )
