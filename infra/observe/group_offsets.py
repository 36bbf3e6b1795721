"""Read what a consumer group has committed with its offsets.

A consumer reads them, which does not join the group: librdkafka's admin client (2.16) crashes the process
while the group's coordinator is not available yet.
"""

import time
from collections.abc import Mapping, Sequence

from confluent_kafka import Consumer, KafkaError, KafkaException, TopicPartition

from infra.model.problems import Problem, ProblemsError
from infra.observe.client_log import client_log
from infra.observe.connection import Connection
from infra.observe.kafka_errors import is_denial, is_moving, not_authorized, unexpected

_PAUSE_SECONDS = 0.1


def read_metadata(
    connection: Connection, group: str, partitions: Mapping[str, int], timeout_seconds: float
) -> Sequence[str]:
    """Return the texts that are committed with offsets, without empty ones.

    `partitions` is topic name → partition count.

    Raises:
        ProblemsError: NotAuthorized, ClusterUnreachable.
    """
    requested = [
        TopicPartition(name, number) for name, count in partitions.items() for number in range(count)
    ]
    if not requested:
        return []
    consumer = Consumer(
        {
            **connection.confluent(),
            "client.id": "headwater",
            "group.id": group,
            "enable.auto.commit": False,
            # Without offsets in open transactions, which may be those of a client that was killed.
            "isolation.level": "read_uncommitted",
            "logger": client_log(),
        }
    )
    try:
        found = _committed(consumer, requested, time.monotonic() + timeout_seconds)
    except KafkaException as error:
        raise ProblemsError([_problem(error.args[0], "group", group)]) from None
    finally:
        consumer.close()
    for each in found:
        if each.error is not None:
            raise ProblemsError([_problem(each.error, "topic", each.topic)])
    return [each.metadata for each in found if each.metadata]


def _problem(error: KafkaError, what: str, name: str) -> Problem:
    problem = not_authorized if is_denial(error) else unexpected
    return problem(error, f"read the offsets of {what}", name)


def _committed(
    consumer: Consumer, partitions: list[TopicPartition], deadline: float
) -> Sequence[TopicPartition]:
    """Return what is committed; waits for a coordinator that is loading."""
    while True:
        try:
            return consumer.committed(partitions, max(0.1, deadline - time.monotonic()))
        except KafkaException as error:
            if not is_moving(error.args[0]) or time.monotonic() > deadline:
                raise
        time.sleep(_PAUSE_SECONDS)
