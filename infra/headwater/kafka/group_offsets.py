"""Read what a consumer group has committed with its offsets.

A consumer reads them, which does not join the group: librdkafka's admin client (2.16) crashes the process
while the group's coordinator is not available yet.
"""

import time
from collections.abc import Mapping, Sequence

from confluent_kafka import Consumer, KafkaError, KafkaException, TopicPartition

from headwater.kafka.client_settings import client_log
from headwater.kafka.connection import Connection
from headwater.kafka.kafka_errors import TIMED_OUT, is_denial, is_moving, not_authorized, unexpected_error
from headwater.model.offset_metadata import trim_text, unread_reason
from headwater.model.problems import Problem, ProblemCode, ProblemsError
from headwater.model.untrusted import UnreadReason

_PAUSE_SECONDS = 0.1
_FIRST_SECONDS = 3.0


def read_metadata(
    connection: Connection,
    group: str,
    partitions: Mapping[str, int],
    timeout_seconds: float,
    *,
    purpose: str = "",
) -> Sequence[str]:
    """Return the texts that are committed with offsets, without empty ones.

    `partitions` is topic name → partition count. `purpose` is what the user is for (`not_authorized`).

    Raises:
        ProblemsError: NotAuthorized, ClusterUnreachable, RequestNotAnswered.
    """
    requested = [
        TopicPartition(name, number) for name, count in partitions.items() for number in range(count)
    ]
    if not requested:
        return []
    consumer = Consumer(
        {
            **connection.librdkafka_settings(),
            "client.id": "headwater",
            "group.id": group,
            "enable.auto.commit": False,
            # Without offsets in open transactions: a client that was killed may have begun them.
            "isolation.level": "read_uncommitted",
            "logger": client_log(),
        }
    )
    try:
        found = _read_committed(consumer, requested, time.monotonic() + timeout_seconds)
    except KafkaException as error:
        raise ProblemsError([_offsets_problem(error.args[0], "group", group, purpose)]) from None
    finally:
        consumer.close()
    for each in found:
        if each.error is not None:
            raise ProblemsError([_offsets_problem(each.error, "topic", each.topic, purpose)])
    if unread := [problem for each in found if (problem := unread_problem(group, each)) is not None]:
        raise ProblemsError(unread)
    return [each.metadata for each in found if each.metadata]


def with_exact_texts(found: Sequence[TopicPartition]) -> list[TopicPartition]:
    """Return what a consumer reads as committed, without bytes that do not belong to the texts."""
    return [
        each
        if each.error is not None
        else TopicPartition(each.topic, each.partition, each.offset, trim_text(_read_text(each)))
        for each in found
    ]


def _read_text(committed: TopicPartition) -> str:
    try:
        return committed.metadata or ""
    except UnicodeDecodeError as error:
        return error.object.decode("ascii", "replace")


def unread_problem(group: str, committed: TopicPartition) -> Problem | None:
    """Return the problem for a committed text that must not be replaced; None if there is none."""
    reason = unread_reason(committed.metadata or "")
    if reason is None:
        return None
    where = f"{committed.topic}, partition {committed.partition}, offset {committed.offset}"
    is_later = reason is UnreadReason.LATER_FORMAT
    return Problem(
        code=ProblemCode.UNREADABLE_RECORD,
        summary=f"The text that group {group} has committed for {where} is {reason.value}.",
        application=group,
        topic=committed.topic,
        expected="a text of Headwater, or of Kafka Streams",
        found=f"{len(committed.metadata or '')} characters",
        why="It says how far the task has processed, and which state it has.",
        fix="Use the version of Headwater that has committed it, or a later one."
        if is_later
        else "Find out who commits for the group, and remove the permission. Then reset the application: "
        "`kafka-streams-application-reset.sh`.",
    )


def _offsets_problem(error: KafkaError, what: str, name: str, purpose: str) -> Problem:
    request = f"read the offsets of {what}"
    if is_denial(error):
        return not_authorized(error, request, name, purpose=purpose)
    return unexpected_error(error, request, name)


def _read_committed(
    consumer: Consumer, partitions: list[TopicPartition], deadline: float
) -> Sequence[TopicPartition]:
    """Return what is committed; waits for a coordinator that is loading.

    Without permission for the group, librdkafka finds no coordinator and searches until the timeout. It
    reports the reason as a message. So the first request is awaited for a short time.
    """
    seconds = _FIRST_SECONDS
    while True:
        try:
            return with_exact_texts(
                consumer.committed(partitions, max(0.1, min(seconds, deadline - time.monotonic())))
            )
        except KafkaException as error:
            if (denial := _reported_denial(consumer)) is not None:
                raise KafkaException(denial) from None
            is_repeated = is_moving(error.args[0]) or error.args[0].code() == TIMED_OUT.code()
            if not is_repeated or time.monotonic() > deadline:
                raise
        seconds = deadline - time.monotonic()
        time.sleep(_PAUSE_SECONDS)


def _reported_denial(consumer: Consumer) -> KafkaError | None:
    """Return that the brokers deny the group, if the client has reported it."""
    message = consumer.poll(0)
    error = None if message is None else message.error()
    return error if error is not None and is_denial(error) else None
