"""Kafka clients of this process: how they are created, and calls with retries and time-outs."""

import logging
import time
from collections.abc import Callable, Iterable, Mapping
from functools import lru_cache
from threading import Thread
from typing import Any

from confluent_kafka import Consumer, KafkaError, KafkaException, Producer
from confluent_kafka import TopicPartition as KafkaTopicPartition
from tenacity import retry, retry_if_exception, stop_after_delay, wait_fixed

from headwater.kafka import Connection
from headwater.kafka.client_settings import client_log
from headwater.kafka.group_offsets import with_exact_texts
from headwater.kafka.kafka_errors import COORDINATOR_MOVING
from headwater_spark.engine.records import OffsetRanges, TopicPartition

REQUEST_SECONDS = 30.0
EARLIEST, LATEST = -2, -1
"""The timestamps of the beginning and the end of a partition, in the protocol's ListOffsets request."""
_UNKNOWN_PARTITION = KafkaError._UNKNOWN_PARTITION  # noqa: SLF001 - the library's own codes
_TIMED_OUT = KafkaError._TIMED_OUT  # noqa: SLF001 - the library's own codes begin with an underscore


def client_settings(connection: Connection, **named: Any) -> dict[str, Any]:  # noqa: ANN401 - librdkafka's settings
    """Return librdkafka's settings; in keywords `_` stands for `.` (`client_id` for `client.id`)."""
    return {
        **connection.librdkafka_settings(),
        **{name.replace("_", "."): value for name, value in named.items()},
        "log.connection.close": False,
    }


def create_consumer(
    connection: Connection, group: str, overrides: Mapping[str, Any] | None = None
) -> Consumer:
    """Return a consumer that reads committed records only. It does not join its group or auto-commit."""
    return Consumer(
        {
            **client_settings(connection, group_id=group, client_id=f"{group}-runtime"),
            "enable.auto.commit": False,
            "auto.offset.reset": "error",
            "isolation.level": "read_committed",
            **(overrides or {}),
        },
        logger=client_logger(),
    )


def create_producer(connection: Connection, overrides: Mapping[str, Any]) -> Producer:
    return Producer({**client_settings(connection), **overrides}, logger=client_logger())


@lru_cache(maxsize=1)
def client_logger() -> logging.Logger:
    """Return the logger that all clients share; failures are raised as exceptions, too."""
    return client_log()


def _is_transient(error: BaseException) -> bool:
    return isinstance(error, KafkaException) and error.args[0].code() in (
        *COORDINATOR_MOVING,
        KafkaError.NOT_LEADER_FOR_PARTITION,
        KafkaError.LEADER_NOT_AVAILABLE,
        # A broker reports an added partition a moment before it leads it.
        KafkaError.UNKNOWN_LEADER_EPOCH,
        KafkaError.FENCED_LEADER_EPOCH,
        KafkaError.UNKNOWN_TOPIC_OR_PART,
        KafkaError._NOENT,  # noqa: SLF001 - the library's public name for a partition without a known leader
    )


retry_transient = retry(
    retry=retry_if_exception(_is_transient),
    stop=stop_after_delay(REQUEST_SECONDS),
    wait=wait_fixed(0.1),
    reraise=True,
)
"""Decorator: retries while a group coordinator starts, or the leaders of a new topic are elected."""


@retry_transient
def read_committed(
    reader: Consumer, partitions: Iterable[TopicPartition], seconds: float = REQUEST_SECONDS
) -> list[KafkaTopicPartition]:
    """Return the committed offsets of the consumer's group, with their metadata; raises `KafkaException`.

    It waits up to `seconds` for transactions that commit offsets, unless the consumer reads uncommitted.
    """
    found = reader.committed([KafkaTopicPartition(*each) for each in partitions], seconds)
    _raise_error(found)
    return with_exact_texts(found)


def commit_offsets(consumer: Consumer, offsets: list[KafkaTopicPartition], seconds: float, what: str) -> None:
    """Commit offsets with their metadata; `what` names the request.

    Raises:
        KafkaException: No broker has stored all of them in `seconds`. A late request may still store them.
    """
    call_with_timeout(
        seconds, what, lambda: _raise_error(consumer.commit(offsets=offsets, asynchronous=False) or ())
    )


def _raise_error(partitions: Iterable[KafkaTopicPartition]) -> None:
    for partition in partitions:
        if partition.error is not None:
            raise KafkaException(partition.error)


def is_timed_out(error: KafkaException) -> bool:
    """Return whether no answer arrived in time, or none that is final, as while a transaction is open."""
    return error.args[0].code() in (_TIMED_OUT, KafkaError.UNSTABLE_OFFSET_COMMIT)


def read_bounds(reader: Consumer, partitions: Iterable[TopicPartition]) -> OffsetRanges:
    """Return partition → its first offset, and the one after the last record that `reader` may read.

    All partitions are read at once; raises `KafkaException`.
    """
    requested = list(partitions)
    first, end = (list_offsets(reader, dict.fromkeys(requested, each)) for each in (EARLIEST, LATEST))
    return {each: (first[each], end[each]) for each in requested}


@retry_transient
def list_offsets(reader: Consumer, timestamps: Mapping[TopicPartition, int]) -> Mapping[TopicPartition, int]:
    """Return the offset at a time of each partition, in milliseconds, or `EARLIEST` or `LATEST`.

    Raises `KafkaException`.
    """
    try:
        return list_offsets_once(reader, timestamps)
    except KafkaException as error:
        if error.args[0].code() != _UNKNOWN_PARTITION:
            raise
    # The consumer knows the topics from before an expansion, and keeps its metadata for minutes.
    for topic in sorted({topic for topic, _ in timestamps}):
        reader.list_topics(topic, REQUEST_SECONDS)
    return list_offsets_once(reader, timestamps)


def list_offsets_once(
    reader: Consumer, timestamps: Mapping[TopicPartition, int]
) -> Mapping[TopicPartition, int]:
    """Return the same, without retries: a deleted partition raises at once."""
    if not timestamps:
        return {}
    request = [KafkaTopicPartition(*partition, time_ms) for partition, time_ms in timestamps.items()]
    found = reader.offsets_for_times(request, REQUEST_SECONDS)
    _raise_error(found)
    return {(each.topic, each.partition): each.offset for each in found}


class Silence:
    """How long nothing has arrived from the brokers: librdkafka tries again without end."""

    def __init__(self, expected: str = "record has arrived") -> None:
        self._expected = expected
        self._since = time.monotonic()

    def check(self, *, is_silent: bool) -> None:
        """Raise `KafkaException` if nothing has arrived for `REQUEST_SECONDS`."""
        if not is_silent:
            self._since = time.monotonic()
        elif time.monotonic() - self._since > REQUEST_SECONDS:
            raise KafkaException(KafkaError(_TIMED_OUT, f"no {self._expected} for {REQUEST_SECONDS:g} s"))


def call_with_timeout(seconds: float, what: str, call: Callable[[], None]) -> None:
    """Call `call` and raise what it raises; raise `KafkaException` if it has not returned after `seconds`.

    librdkafka (2.16) sometimes never returns from `send_offsets_to_transaction` when its broker was
    restarted, whatever time-out it was given. Such a call continues in a daemon thread. What it may still do
    must be harmless; a transaction is, because the next producer with its transactional id fences it.
    """
    failures: list[BaseException] = []

    def run() -> None:
        try:
            call()
        except BaseException as error:  # noqa: BLE001 - raised in the calling thread
            failures.append(error)

    thread = Thread(target=run, name=what, daemon=True)
    thread.start()
    thread.join(seconds)
    if thread.is_alive():
        raise KafkaException(KafkaError(_TIMED_OUT, f"{what}: no answer within {seconds:g} s"))
    for failure in failures:
        raise failure
