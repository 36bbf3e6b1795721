"""Write ownership records, which say which stack manages an application, to a topic of the cluster.

The topic is compacted and has one partition. The first record creates it.
"""

from collections.abc import Iterator, Mapping, Sequence
from typing import TYPE_CHECKING

from confluent_kafka import KafkaError, KafkaException, Message, Producer, TopicCollection
from confluent_kafka.admin import (  # type: ignore[attr-defined]  # public, but not exported explicitly
    AlterConfigOpType,
    ConfigEntry,
    ConfigResource,
    NewTopic,
    ResourceType,
)

from headwater.change.topics import admin_client
from headwater.kafka import Connection
from headwater.kafka.client_settings import client_log
from headwater.kafka.kafka_errors import REFUSED_SETTINGS, TIMED_OUT, is_denial
from headwater.kafka.ownership import PARTITION, encode_record, key_of, ownership_problem
from headwater.model.acls import Operation, Permission, ResourceKind
from headwater.model.problems import Problem, ProblemCode, ProblemsError, Severity
from headwater.model.records import (
    COMPACTION,
    ONLY_ACLS,
    OWNERSHIP_TOPIC,
    RECORD_TOPIC_SETTINGS,
    OwnershipChange,
    settings_text,
)

if TYPE_CHECKING:
    from concurrent.futures import Future

_REQUEST_SECONDS = 15.0
_WRITE_SECONDS = 15.0
_LARGEST_RECORD = 64 * 1024 * 1024
"""Bytes of a record before compression; the brokers limit what is sent."""


def write_ownership(connection: Connection, change: OwnershipChange) -> None:
    """Write and delete the records of `change`; returns when all in-sync replicas have them.

    Raises:
        ProblemsError: NotAuthorized, ClusterUnreachable, RequestNotAnswered; some records may be written.
    """
    _create_topic(connection)
    producer = Producer(
        {
            **connection.librdkafka_settings(),
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

    for key, value in _messages_of(change):
        producer.produce(OWNERSHIP_TOPIC, partition=PARTITION, key=key, value=value, on_delivery=delivered)
    remaining = producer.flush(_WRITE_SECONDS + 1)
    if failed or remaining:
        error = failed[0] if failed else TIMED_OUT
        raise ProblemsError([ownership_problem(error, Operation.WRITE)])


def _messages_of(change: OwnershipChange) -> Iterator[tuple[bytes, bytes | None]]:
    for record in change.written:
        yield key_of(*record.key), encode_record(record)
    for stack_id, application_id in change.deleted:
        yield key_of(stack_id, application_id), None


def configure_topic(connection: Connection, settings: Mapping[str, str]) -> Sequence[Problem]:
    """Change settings of the topic of the records; return a problem if the brokers refuse it."""
    incremental = [
        ConfigEntry(key, value, incremental_operation=AlterConfigOpType.SET)
        for key, value in settings.items()
    ]
    resource = ConfigResource(ResourceType.TOPIC, OWNERSHIP_TOPIC, incremental_configs=incremental)
    admin = admin_client(connection)  # requests end with their client
    altered = admin.incremental_alter_configs([resource], request_timeout=_REQUEST_SECONDS)
    try:
        altered[resource].result(_REQUEST_SECONDS + 1)
    except TimeoutError:
        return (_not_configured(TIMED_OUT, settings),)
    except KafkaException as error:
        return (_not_configured(error.args[0], settings),)
    return ()


def _not_configured(error: KafkaError, settings: Mapping[str, str]) -> Problem:
    pairs = settings_text(settings)
    is_denied = is_denial(error)
    permission = Permission(ResourceKind.TOPIC, OWNERSHIP_TOPIC, Operation.ALTER_CONFIGS)
    right = f"{permission.operation} on topic {OWNERSHIP_TOPIC}"
    by_hand = (
        "kafka-configs.sh --bootstrap-server BROKER --alter --entity-type topics --entity-name "
        f"{OWNERSHIP_TOPIC} --add-config {pairs}"
    )
    if is_denied:
        fix = f"Grant the user {right}: `{permission.command}`. Or change them once: `{by_hand}`."
    elif error.code() in REFUSED_SETTINGS:
        fix = f"Have the policy of the brokers changed, then run `{by_hand}`. Otherwise {ONLY_ACLS}."
    else:
        fix = f"Run `{by_hand}`."
    return Problem(
        code=ProblemCode.NOT_AUTHORIZED if is_denied else ProblemCode.RECORDS_NOT_SAFE,
        summary=f"The settings of topic {OWNERSHIP_TOPIC} are not changed.",
        topic=OWNERSHIP_TOPIC,
        expected=f"permission {right}" if is_denied else pairs,
        found=error.name() if is_denied else f"{error.name()}: {error.str()}",
        why="Brokers may delete records of stacks, or store records that are too large to be read.",
        fix=fix,
        severity=Severity.ERROR if COMPACTION in settings else Severity.WARNING,
    )


def _create_topic(connection: Connection) -> None:
    admin = admin_client(connection)
    try:
        known = admin.describe_topics(TopicCollection([OWNERSHIP_TOPIC]), request_timeout=_REQUEST_SECONDS)
        known[OWNERSHIP_TOPIC].result(_REQUEST_SECONDS + 1)
    except (KafkaException, TimeoutError):
        new = NewTopic(
            OWNERSHIP_TOPIC, num_partitions=1, replication_factor=-1, config=dict(RECORD_TOPIC_SETTINGS)
        )
        created = admin.create_topics([new], operation_timeout=_REQUEST_SECONDS)[OWNERSHIP_TOPIC]
        _wait_for_creation(created)


def _wait_for_creation(created: "Future[None]") -> None:
    try:
        created.result(_REQUEST_SECONDS + 1)
    except KafkaException as error:
        if error.args[0].code() != KafkaError.TOPIC_ALREADY_EXISTS:
            raise ProblemsError([ownership_problem(error.args[0], Operation.CREATE)]) from None
    except TimeoutError:
        raise ProblemsError([ownership_problem(TIMED_OUT, Operation.CREATE)]) from None
