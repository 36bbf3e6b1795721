"""Kafka clients of a worker process: quiet ones, made once a process where that is safe."""

import logging
from collections.abc import Iterable, Mapping
from functools import lru_cache
from typing import Any

from confluent_kafka import Consumer, KafkaError, KafkaException, Producer, TopicPartition
from tenacity import retry, retry_if_exception, stop_after_delay, wait_fixed

from infra.observe import Connection
from infra.observe.client_log import client_log

REQUEST_SECONDS = 30.0


def settings(connection: Connection, **more: Any) -> dict[str, Any]:  # noqa: ANN401 - librdkafka's settings
    """Return librdkafka's settings; keywords stand for keys with dots (`client_id` for `client.id`)."""
    return {
        **connection.confluent(),
        **{name.replace("_", "."): value for name, value in more.items()},
        "log.connection.close": False,
    }


def consumer(connection: Connection, group: str, more: Mapping[str, Any] | None = None) -> Consumer:
    """Return a consumer that sees committed records only and never commits or joins by itself."""
    return Consumer(
        {
            **settings(connection, group_id=group, client_id=f"{group}-runtime"),
            "enable.auto.commit": False,
            "auto.offset.reset": "error",
            "isolation.level": "read_committed",
            **(more or {}),
        },
        logger=quiet_logger(),
    )


def producer(connection: Connection, more: Mapping[str, Any]) -> Producer:
    return Producer({**settings(connection), **more}, logger=quiet_logger())


def _is_passing(error: BaseException) -> bool:
    return isinstance(error, KafkaException) and error.args[0].code() in (
        KafkaError.COORDINATOR_LOAD_IN_PROGRESS,
        KafkaError.COORDINATOR_NOT_AVAILABLE,
        KafkaError.NOT_COORDINATOR,
        KafkaError.NOT_LEADER_FOR_PARTITION,
        KafkaError.LEADER_NOT_AVAILABLE,
        KafkaError.UNKNOWN_TOPIC_OR_PART,
        KafkaError._NOENT,  # noqa: SLF001 - the library's public name: it knows of no leader
    )


patiently = retry(
    retry=retry_if_exception(_is_passing),
    stop=stop_after_delay(REQUEST_SECONDS),
    wait=wait_fixed(0.1),
    reraise=True,
)
"""Asks again while a coordinator comes up, or a topic that was just made gets its leaders."""


@patiently
def committed(reader: Consumer, places: Iterable[tuple[str, int]]) -> list[TopicPartition]:
    """Return what the consumer's group has committed; raises `KafkaException`."""
    found = reader.committed([TopicPartition(*place) for place in places], REQUEST_SECONDS)
    for partition in found:
        if partition.error is not None:
            raise KafkaException(partition.error)
    return found


@lru_cache(maxsize=1)
def quiet_logger() -> logging.Logger:
    """One for all clients. What goes wrong comes as exceptions."""
    return client_log()
