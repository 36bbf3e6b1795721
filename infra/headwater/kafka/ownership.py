"""Read the ownership records of a cluster: the topic, its records, and what they contain.

Each record has a key of stack id and application id, so compaction keeps the latest of each. Records
that this version cannot read are kept apart: the planner reports them, and no run replaces one of a later
version.
"""

import json
from collections import deque

import attrs
from confluent_kafka import KafkaError, KafkaException

from headwater.kafka.answering_broker import no_answer
from headwater.kafka.bounded_records import BoundedTopic, ReadRecord, too_many_records
from headwater.kafka.client_settings import client_log
from headwater.kafka.connection import Connection
from headwater.kafka.kafka_errors import (
    NO_ANSWER,
    REFUSED_SETTINGS,
    ClientMessage,
    is_denial,
    throttled_message,
)
from headwater.model.acls import Operation, Permission, ResourceKind
from headwater.model.problems import Problem, ProblemCode, ProblemsError
from headwater.model.records import (
    ONLY_ACLS,
    OWNERSHIP_TOPIC,
    RECORD_TOPIC_SETTINGS,
    OwnershipLog,
    OwnershipRecord,
    StackIdentity,
    settings_text,
)
from headwater.model.untrusted import (
    LARGEST_VALUE,
    MOST_BYTES,
    MOST_KEYS,
    MOST_UNREAD,
    LaterFormatError,
    UnreadReason,
    UnreadRecord,
    check_boolean,
    check_mapping,
    check_name,
    check_texts,
    json_object,
)

PARTITION = 0
_ABSENT = (KafkaError.UNKNOWN_TOPIC_OR_PART, KafkaError._UNKNOWN_PARTITION)  # noqa: SLF001
_GRANT = (
    "Grant the user {}: `{}`. `headwater acls FILES --self --principal User:NAME` prints all permissions "
    "that Headwater needs. If no other stack uses this cluster, `headwater:ownership: none` continues "
    "without."
)
_FORMAT = 1
_LONGEST_KEY = 2_000


def read_ownership(connection: Connection, timeout_seconds: float) -> OwnershipLog:
    """Return the latest record of each key, sorted by key; none if the topic does not exist.

    Each user who may write to the topic can write anything: memory is bounded, and a record that cannot be
    read does not end the reading of the others.

    Raises:
        ProblemsError: NotAuthorized, ClusterUnreachable, RequestNotAnswered, UnreadableRecord (too many).
    """
    throttled: deque[ClientMessage] = deque(maxlen=50)
    settings = {
        **connection.librdkafka_settings(),
        "throttle_cb": lambda event: throttled.append(throttled_message(event)),
        "client.id": "headwater",
        "group.id": OWNERSHIP_TOPIC,  # the consumer never joins: the partition is assigned manually
        "logger": client_log(),
    }
    latest = LatestRecords()
    try:
        for record in BoundedTopic(settings, OWNERSHIP_TOPIC, PARTITION, timeout_seconds).records():
            latest.add(record)
    except KafkaException as error:
        if error.args[0].code() in _ABSENT:
            return OwnershipLog()
        if throttled and error.args[0].code() in NO_ANSWER:
            what = f"read the topic {OWNERSHIP_TOPIC}"
            raise ProblemsError([no_answer(connection, what, tuple(throttled), timeout_seconds)]) from None
        raise ProblemsError([ownership_problem(error.args[0], Operation.READ)]) from None
    return latest.log()


@attrs.define
class LatestRecords:
    """The latest record of each key, in bounded memory; also of a key whose latest record is not readable."""

    _found: dict[bytes, OwnershipRecord | UnreadRecord] = attrs.field(factory=dict)
    _sizes: dict[bytes, int] = attrs.field(factory=dict)
    _total: int = 0
    _without_key: list[UnreadRecord] = attrs.field(factory=list)
    _more: int = 0

    def add(self, record: ReadRecord | UnreadRecord) -> None:
        """Add the next record of the log.

        Raises `ProblemsError` (UnreadableRecord) if there are more keys or bytes than the stacks of a cluster
        need.
        """
        if isinstance(record, UnreadRecord):
            if len(self._without_key) < MOST_UNREAD:
                self._without_key.append(record)
            else:
                self._more += 1
            return
        # A key as long as this is of no stack: two of them may be the same afterwards.
        key = record.key[:_LONGEST_KEY]
        self._found.pop(key, None)
        self._total -= self._sizes.pop(key, 0)
        if record.value is not None:
            self._found[key] = entry = _read_entry(record)
            self._sizes[key] = len(record.value) if isinstance(entry, OwnershipRecord) else 0
            self._total += self._sizes[key]
        if len(self._found) > MOST_KEYS or self._total > MOST_BYTES:
            raise ProblemsError([too_many_records(OWNERSHIP_TOPIC, PARTITION, record.offset)])

    def log(self) -> OwnershipLog:
        """Return the records and what could not be read."""
        entries = [each for _, each in sorted(self._found.items())]
        unread = [*self._without_key, *(each for each in entries if isinstance(each, UnreadRecord))]
        unread.sort(key=lambda each: each.offset)
        return OwnershipLog(
            tuple(each for each in entries if isinstance(each, OwnershipRecord)),
            tuple(unread[:MOST_UNREAD]),
            self._more + max(0, len(unread) - MOST_UNREAD),
        )


def ownership_problem(error: KafkaError, operation: Operation) -> Problem:
    """Return the problem for ownership records that cannot be read or written, which needs `operation`."""
    if error.code() in REFUSED_SETTINGS:
        return _refused_topic(error)
    is_denied = is_denial(error)
    # The client asks for the coordinator of its group, although it has none.
    is_group = error.code() == KafkaError.GROUP_AUTHORIZATION_FAILED
    permission = (
        Permission(ResourceKind.GROUP, OWNERSHIP_TOPIC, Operation.DESCRIBE)
        if is_group
        else Permission(ResourceKind.TOPIC, OWNERSHIP_TOPIC, operation)
    )
    right = f"{permission.operation} on {permission.kind.lower()} {OWNERSHIP_TOPIC}"
    return Problem(
        code=ProblemCode.NOT_AUTHORIZED if is_denied else ProblemCode.REQUEST_NOT_ANSWERED,
        summary="The ownership records of the cluster cannot be "
        f"{'read' if operation is Operation.READ else 'written'}.",
        topic=OWNERSHIP_TOPIC,
        expected=f"permission {right}" if is_denied else "an answer",
        found=error.name() if is_denied else f"{error.name()}: {error.str()}",
        why="They show which stack manages an application. Without them, two stacks could manage the same "
        "one, and one of them delete its topics.",
        fix=_GRANT.format(right, permission.command)
        if is_denied
        else "Run again. If the problem persists, check the brokers' logs.",
    )


def _refused_topic(error: KafkaError) -> Problem:
    """Return the problem that a policy of the brokers refuses the settings of the topic."""
    return Problem(
        code=ProblemCode.REFUSED_BY_BROKERS,
        summary=f"The brokers refuse to create the topic {OWNERSHIP_TOPIC}.",
        topic=OWNERSHIP_TOPIC,
        expected=settings_text(RECORD_TOPIC_SETTINGS),
        found=f"{error.name()}: {error.str()}",
        why="It shows which stack manages an application. Without it, two stacks could manage the same one, "
        "and one of them delete its topics.",
        fix="Have the policy of the brokers changed. Or create the topic without the other settings: "
        f"`kafka-topics.sh --bootstrap-server BROKER --create --topic {OWNERSHIP_TOPIC} --partitions 1 "
        f"--config cleanup.policy=compact`. Brokers then accept records that are too large to be read: "
        f"{ONLY_ACLS}.",
    )


def key_of(stack_id: str, application_id: str) -> bytes:
    """Return the key of the record of an application in the topic: `STACK_ID/APPLICATION_ID`."""
    return f"{stack_id}/{application_id}".encode()


def encode_record(record: OwnershipRecord) -> bytes:
    """Return the value of a record in the topic: JSON, in the latest format."""
    fields = {
        "format": _FORMAT,
        "application": record.application_id,
        "stack": {"id": record.stack.id, "name": record.stack.name},
        "topics": dict(sorted(record.topics.items())),
        "finished": record.is_finished,
        "retired": record.is_retired,
        **({"reads": sorted(record.reads)} if record.reads else {}),
        **({"retiredTopics": sorted(record.retired_topics)} if record.retired_topics else {}),
    }
    return json.dumps(fields, separators=(",", ":")).encode()


def decode_record(value: bytes) -> OwnershipRecord:
    """Return the record.

    Raises `LaterFormatError` if a later version of Headwater has written it, `ValueError` for another format.
    """
    fields = json_object(value, _FORMAT, "format")
    stack = check_mapping(fields.get("stack"))
    topics = check_mapping(fields.get("topics"))
    return OwnershipRecord(
        application_id=check_name(fields.get("application")),
        stack=StackIdentity(check_name(stack.get("id")), check_name(stack.get("name"))),
        topics={check_name(topic): check_name(id_) for topic, id_ in topics.items()},
        is_finished=check_boolean(fields.get("finished")),
        is_retired=check_boolean(fields.get("retired")),
        # Earlier versions write neither.
        reads=frozenset(map(check_name, check_texts(fields.get("reads", [])))),
        retired_topics=frozenset(map(check_name, check_texts(fields.get("retiredTopics", [])))),
    )


def _read_entry(record: ReadRecord) -> OwnershipRecord | UnreadRecord:
    value = record.value or b""
    try:
        found = decode_record(value)
    except LaterFormatError:
        return _unread_record(record, UnreadReason.LATER_FORMAT)
    except ValueError:
        is_large = len(value) > LARGEST_VALUE
        return _unread_record(record, UnreadReason.TOO_LARGE if is_large else UnreadReason.NOT_OURS)
    # A record below the key of another one could not be replaced by the stack that it names. A key without a
    # stack or an application names none: a stack without an id would take such a record for its own.
    is_below_its_key = _parse_key(record.key) == found.key
    return found if is_below_its_key else _unread_record(record, UnreadReason.OTHER_KEY)


def _unread_record(record: ReadRecord, reason: UnreadReason) -> UnreadRecord:
    return UnreadRecord(
        topic=OWNERSHIP_TOPIC,
        partition=PARTITION,
        offset=record.offset,
        last_offset=record.offset,
        reason=reason,
        key=_parse_key(record.key),
    )


def _parse_key(key: bytes) -> tuple[str, str] | None:
    """Return the stack and the application that a key names."""
    try:
        stack_id, _, application_id = check_name(key.decode()).partition("/")
    except ValueError:
        return None
    return (stack_id, application_id) if stack_id and application_id else None
