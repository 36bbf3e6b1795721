"""Read the ownership records of a cluster: the topic, its records, and what they contain.

Each record has a key of stack id and application id, so compaction keeps the latest of each.
"""

import json
import time
from collections.abc import Iterator
from typing import Any

from confluent_kafka import Consumer, KafkaError, KafkaException, TopicPartition

from headwater.kafka.client_log import client_log
from headwater.kafka.connection import Connection
from headwater.kafka.kafka_errors import is_denial
from headwater.model.acls import Operation
from headwater.model.ownership import OWNERSHIP_TOPIC, OwnershipRecord, StackIdentity
from headwater.model.problems import Problem, ProblemCode, ProblemsError

PARTITION = 0
_ABSENT = (KafkaError.UNKNOWN_TOPIC_OR_PART, KafkaError._UNKNOWN_PARTITION)  # noqa: SLF001
_GRANT = (
    "Grant the user {}. `headwater acls FILES --self --principal User:NAME` prints all permissions that "
    "Headwater needs. If no other stack uses this cluster, `headwater:ownership: none` continues without."
)
_POLL_SECONDS = 0.05  # `consume` always waits this long, unless there are records for a whole batch
_BATCH = 500


def read_ownership(connection: Connection, timeout_seconds: float) -> tuple[OwnershipRecord, ...]:
    """Return the latest records, sorted by key; none if the topic does not exist.

    Raises:
        ProblemsError: NotAuthorized, ClusterUnreachable.
    """
    consumer = Consumer(
        {
            **connection.confluent(),
            "client.id": "headwater",
            "group.id": OWNERSHIP_TOPIC,  # the consumer never joins: the partition is assigned manually
            "enable.auto.commit": False,
            "auto.offset.reset": "earliest",
            "enable.partition.eof": True,
            "fetch.wait.max.ms": 50,
            "logger": client_log(),
        }
    )
    try:
        latest = dict(_records(consumer, timeout_seconds))
    except KafkaException as error:
        if error.args[0].code() in _ABSENT:
            return ()
        raise ProblemsError([ownership_problem(error.args[0], Operation.READ)]) from None
    finally:
        consumer.close()
    found = ((key, decode(value)) for key, value in sorted(latest.items()) if value is not None)
    # A record below the key of another one could not be replaced by the stack that it names.
    return tuple(record for key, record in found if record is not None and key == key_of(*record.key))


def ownership_problem(error: KafkaError, operation: Operation) -> Problem:
    """Return the problem for ownership records that cannot be read or written, which needs `operation`."""
    is_denied = is_denial(error)
    # The client asks for the coordinator of its group, although it has none.
    is_group = error.code() == KafkaError.GROUP_AUTHORIZATION_FAILED
    right = (
        f"{Operation.DESCRIBE} on group {OWNERSHIP_TOPIC}"
        if is_group
        else f"{operation} on topic {OWNERSHIP_TOPIC}"
    )
    return Problem(
        code=ProblemCode.NOT_AUTHORIZED if is_denied else ProblemCode.CLUSTER_UNREACHABLE,
        summary="The ownership records of the cluster cannot be "
        f"{'read' if operation is Operation.READ else 'written'}.",
        topic=OWNERSHIP_TOPIC,
        expected=f"permission {right}" if is_denied else "an answer",
        found=error.name() if is_denied else f"{error.name()}: {error.str()}",
        why="They show which stack manages an application. Without them, two stacks could manage the same "
        "one, and one of them delete its topics.",
        fix=_GRANT.format(right)
        if is_denied
        else "Run again. If the problem persists, check the brokers' logs.",
    )


def key_of(stack_id: str, application_id: str) -> bytes:
    return f"{stack_id}/{application_id}".encode()


def encode(record: OwnershipRecord) -> bytes:
    fields = {
        "format": 1,
        "application": record.application_id,
        "stack": {"id": record.stack.id, "name": record.stack.name},
        "topics": dict(sorted(record.topics.items())),
        "finished": record.is_finished,
        "retired": record.is_retired,
        **({"reads": sorted(record.reads)} if record.reads else {}),
        **({"retiredTopics": sorted(record.retired_topics)} if record.retired_topics else {}),
    }
    return json.dumps(fields, separators=(",", ":")).encode()


def decode(value: bytes) -> OwnershipRecord | None:
    """Return the record; None for a value of another format, whoever wrote it.

    Each user of `pulumi up` may write to the topic: one record must not end the runs of all stacks.
    """
    try:
        fields: dict[str, Any] = json.loads(value)
        return OwnershipRecord(
            application_id=str(fields["application"]),
            stack=StackIdentity(str(fields["stack"]["id"]), str(fields["stack"]["name"])),
            topics={str(name): str(id_) for name, id_ in fields["topics"].items()},
            is_finished=bool(fields["finished"]),
            is_retired=bool(fields["retired"]),
            reads=_names(fields, "reads"),
            retired_topics=_names(fields, "retiredTopics"),
        )
    except (ValueError, KeyError, TypeError, AttributeError, RecursionError):
        return None


def _names(fields: dict[str, Any], key: str) -> frozenset[str]:
    """Return topic names; earlier versions write none."""
    return frozenset(str(name) for name in fields.get(key, ()))


def _records(consumer: Consumer, timeout_seconds: float) -> Iterator[tuple[bytes, bytes | None]]:
    """Yield key and value of all records up to the current end."""
    deadline = time.monotonic() + timeout_seconds
    partition = TopicPartition(OWNERSHIP_TOPIC, PARTITION, 0)
    first, end = consumer.get_watermark_offsets(partition, timeout=timeout_seconds)
    consumer.assign([TopicPartition(OWNERSHIP_TOPIC, PARTITION, first)])
    offset = first
    while offset < end:
        if time.monotonic() > deadline:
            raise KafkaException(KafkaError(KafkaError._TIMED_OUT))  # noqa: SLF001 - librdkafka's own code
        for message in consumer.consume(_BATCH, timeout=_POLL_SECONDS):
            error = message.error()
            if error is None:
                offset = (message.offset() or 0) + 1
                yield message.key() or b"", message.value()
            elif error.code() == KafkaError._PARTITION_EOF:  # noqa: SLF001 - librdkafka's own code
                offset = end
            else:
                raise KafkaException(error)
