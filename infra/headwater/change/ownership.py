"""Write ownership records to a compacted topic with one partition; the first one creates the topic."""

from collections.abc import Iterator
from typing import TYPE_CHECKING

from confluent_kafka import KafkaError, KafkaException, Message, Producer, TopicCollection
from confluent_kafka.admin import NewTopic  # type: ignore[attr-defined]  # public, but not exported explicitly

from headwater.change.topics import admin_client
from headwater.kafka import Connection
from headwater.kafka.client_log import client_log
from headwater.kafka.ownership import PARTITION, encode, key_of, ownership_problem
from headwater.model.acls import Operation
from headwater.model.ownership import OWNERSHIP_TOPIC, OwnershipChange
from headwater.model.problems import ProblemsError

if TYPE_CHECKING:
    from concurrent.futures import Future

_SECONDS = 15.0
_WRITE_SECONDS = 15.0
_LARGEST_RECORD = 64 * 1024 * 1024  # before compression; the brokers' limit is on what is sent
_TIMED_OUT = KafkaError(KafkaError._TIMED_OUT)  # noqa: SLF001 - librdkafka's own code


def write_ownership(connection: Connection, change: OwnershipChange) -> None:
    """Write and delete the records of `change`; returns when all in-sync replicas have them.

    Raises:
        ProblemsError: NotAuthorized, ClusterUnreachable; some of the records may be written.
    """
    _create_topic(connection)
    producer = Producer(
        {
            **connection.confluent(),
            "client.id": "headwater",
            "acks": "all",
            "delivery.timeout.ms": int(_WRITE_SECONDS * 1_000),
            "linger.ms": 0,
            # A retry must not move a record behind a later one.
            "max.in.flight.requests.per.connection": 1,
            "compression.type": "gzip",
            "message.max.bytes": _LARGEST_RECORD,
            "logger": client_log(),
        }
    )
    failed: list[KafkaError] = []

    def delivered(error: KafkaError | None, _: Message) -> None:
        if error is not None:
            failed.append(error)

    for key, value in _messages(change):
        producer.produce(OWNERSHIP_TOPIC, partition=PARTITION, key=key, value=value, on_delivery=delivered)
    remaining = producer.flush(_WRITE_SECONDS + 1)
    if failed or remaining:
        error = failed[0] if failed else _TIMED_OUT
        raise ProblemsError([ownership_problem(error, Operation.WRITE)])


def _messages(change: OwnershipChange) -> Iterator[tuple[bytes, bytes | None]]:
    for record in change.written:
        yield key_of(*record.key), encode(record)
    for stack_id, application_id in change.deleted:
        yield key_of(stack_id, application_id), None


def _create_topic(connection: Connection) -> None:
    admin = admin_client(connection)
    try:
        known = admin.describe_topics(TopicCollection([OWNERSHIP_TOPIC]), request_timeout=_SECONDS)
        known[OWNERSHIP_TOPIC].result(_SECONDS + 1)
    except (KafkaException, TimeoutError):
        new = NewTopic(
            OWNERSHIP_TOPIC, num_partitions=1, replication_factor=-1, config={"cleanup.policy": "compact"}
        )
        created = admin.create_topics([new], operation_timeout=_SECONDS)[OWNERSHIP_TOPIC]
        _wait_for_creation(created)


def _wait_for_creation(created: "Future[None]") -> None:
    try:
        created.result(_SECONDS + 1)
    except KafkaException as error:
        if error.args[0].code() != KafkaError.TOPIC_ALREADY_EXISTS:
            raise ProblemsError([ownership_problem(error.args[0], Operation.CREATE)]) from None
    except TimeoutError:
        raise ProblemsError([ownership_problem(_TIMED_OUT, Operation.CREATE)]) from None
