"""Creates, expands, reconfigures and deletes topics without Pulumi.

librdkafka (2.16) and the provider delete by name only, so this sends the request DeleteTopics itself.
"""

from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from concurrent.futures import wait
from struct import pack
from typing import TYPE_CHECKING, Any, Protocol

from confluent_kafka import KafkaError, KafkaException, ThrottleEvent
from confluent_kafka.admin import (  # type: ignore[attr-defined]  # public, but not exported explicitly
    AdminClient,
    AlterConfigOpType,
    ConfigEntry,
    ConfigResource,
    NewPartitions,
    NewTopic,
    ResourceType,
)

from headwater.kafka import Connection
from headwater.kafka.broker_connection import BrokerConnection, Message
from headwater.kafka.client_settings import client_log
from headwater.kafka.login import Login
from headwater.kafka.pending_requests import split_batches
from headwater.kafka.wire import ResponseReader, compact_array, topic_id_bytes

if TYPE_CHECKING:
    from concurrent.futures import Future

    Results = Mapping[str, Future[Any]]


_TIMEOUT_SECONDS = 60


class TopicTarget(Protocol):
    """What a topic is to have. In `config`, None resets a setting to the broker's default."""

    @property
    def name(self) -> str: ...
    @property
    def partitions(self) -> int | None: ...
    @property
    def replication_factor(self) -> int: ...
    @property
    def config(self) -> Mapping[str, Any]: ...


class TopicChange(TopicTarget, Protocol):
    """A change of a topic: `create` it, or set the `partitions` (None: unchanged) and the `config` named."""

    @property
    def create(self) -> bool: ...


def admin_client(
    connection: Connection,
    on_throttle: Callable[[ThrottleEvent], object] | None = None,
    *,
    client_id: str = "headwater",
) -> AdminClient:
    """Return an admin client that does not write to standard error.

    `on_throttle` is called, by `poll`, for each answer with which a broker delays later requests. Quotas may
    be for a `client_id`.

    Raises:
        ProblemsError: The connection settings are invalid.
    """
    callbacks = {} if on_throttle is None else {"throttle_cb": on_throttle}
    settings = {**connection.librdkafka_settings(), "client.id": client_id, **callbacks}
    return AdminClient(settings, logger=client_log())


def change_topics(
    admin: AdminClient, changes: Sequence[TopicChange], *, with_others: bool = False
) -> tuple[str, ...]:
    """Make all changes and wait for the results; return `topic: reason` for each that failed.

    `with_others`: other clients make the same changes at the same time. A topic that one of them has created
    or expanded is no failure; check the topics afterwards.
    """
    existing = [change for change in changes if not change.create]
    new = request_new_topics(admin, [change for change in changes if change.create])
    partitions = request_new_partitions(admin, [change for change in existing if change.partitions])
    return (
        *await_failures(new, {KafkaError.TOPIC_ALREADY_EXISTS} if with_others else ()),
        *await_failures(partitions, {KafkaError.INVALID_PARTITIONS} if with_others else ()),
        *await_failures(request_config_changes(admin, [change for change in existing if change.config])),
    )


def request_new_topics(
    admin: AdminClient,
    topics: Sequence[TopicTarget],
    *,
    validate_only: bool = False,
    timeout_seconds: float = _TIMEOUT_SECONDS,
) -> "Results":
    """Request new topics; return topic → future. Without a count a topic gets the broker's default."""

    def send(chunk: Sequence[TopicTarget]) -> "Results":
        new = [
            NewTopic(
                topic.name,
                num_partitions=topic.partitions or -1,
                replication_factor=topic.replication_factor,
                config={key: value for key, value in topic.config.items() if value is not None},
            )
            for topic in chunk
        ]
        return admin.create_topics(
            new, **_request_options(validate_only=validate_only, timeout_seconds=timeout_seconds)
        )

    return _send_in_chunks(
        topics, lambda topic: 1 + (topic.partitions or 1) + len(topic.config), send, timeout_seconds
    )


def request_new_partitions(
    admin: AdminClient,
    topics: Sequence[TopicTarget],
    *,
    validate_only: bool = False,
    timeout_seconds: float = _TIMEOUT_SECONDS,
) -> "Results":
    """Request that topics be expanded to their `partitions`; return topic → future."""

    def send(chunk: Sequence[TopicTarget]) -> "Results":
        new = [NewPartitions(topic.name, topic.partitions or 0) for topic in chunk]
        return admin.create_partitions(
            new, **_request_options(validate_only=validate_only, timeout_seconds=timeout_seconds)
        )

    return _send_in_chunks(topics, lambda topic: topic.partitions or 0, send, timeout_seconds)


def request_config_changes(
    admin: AdminClient,
    topics: Sequence[TopicTarget],
    *,
    validate_only: bool = False,
    timeout_seconds: float = _TIMEOUT_SECONDS,
) -> "Results":
    """Request the changes in the topics' `config`; return topic → future. Other settings are kept."""

    def send(chunk: Sequence[TopicTarget]) -> "Results":
        resources = [
            ConfigResource(
                ResourceType.TOPIC,
                topic.name,
                incremental_configs=[_config_entry(key, value) for key, value in topic.config.items()],
            )
            for topic in chunk
        ]
        results = admin.incremental_alter_configs(
            resources, validate_only=validate_only, request_timeout=timeout_seconds
        )
        return {resource.name: future for resource, future in results.items()}

    return _send_in_chunks(topics, lambda topic: len(topic.config), send, timeout_seconds)


def await_failures(results: "Results", tolerated: Collection[int] = ()) -> Iterator[str]:
    """Wait for all `results`; yield `name: reason` for each that failed, except for `tolerated` codes."""
    for name, future in results.items():
        try:
            future.result(timeout=_TIMEOUT_SECONDS)
        except KafkaException as error:
            if error.args[0].code() not in tolerated:
                yield f"{name}: {error.args[0].str()}"
        except TimeoutError:
            yield f"{name}: no answer within {_TIMEOUT_SECONDS} s"


def _send_in_chunks(
    topics: Sequence[TopicTarget],
    records_of: Callable[[TopicTarget], int],
    send: Callable[[Sequence[TopicTarget]], "Results"],
    timeout_seconds: float,
) -> "Results":
    """Send requests of a limited size, one after the other; return topic → future.

    `records_of` is how many metadata records the controller writes for the change of a topic: it refuses a
    request that needs too many (`split_batches`).
    """
    results: dict[str, Future[Any]] = {}
    for chunk in split_batches(topics, records_of):
        wait(results.values(), timeout_seconds)  # the controller answers in turn: the last must not wait long
        results |= send(chunk)
    return results


def _config_entry(key: str, value: str | None) -> ConfigEntry:
    operation = AlterConfigOpType.DELETE if value is None else AlterConfigOpType.SET
    return ConfigEntry(key, value or "", incremental_operation=operation)


def _request_options(*, validate_only: bool, timeout_seconds: float) -> dict[str, Any]:
    """Return timeouts: a validation only waits for the answer, a change until all brokers have applied it."""
    timeout = "request_timeout" if validate_only else "operation_timeout"
    return {"validate_only": validate_only, timeout: timeout_seconds}


_DELETION_SECONDS = 30.0
_GRACE_SECONDS = 5.0
_DELETE_TOPICS = Message("DeleteTopics", 20, 6, 6)
_DELETED = (0, KafkaError.UNKNOWN_TOPIC_ID, KafkaError.UNKNOWN_TOPIC_OR_PART)


def delete_topics(connection: Connection, ids: Mapping[str, str]) -> Mapping[str, str]:
    """Delete the topics with these ids; `ids` is name → id. Return remaining topic → reason.

    A topic that no longer exists under its id counts as deleted.

    Raises:
        OSError: No broker answers, or it refuses the user.
    """
    reason = OSError("no broker is named")
    names = {topic_id_bytes(id_): name for name, id_ in ids.items()}
    topics = compact_array(b"\x00" + uuid + b"\x00" for uuid in names)
    body = topics + pack(">i", int(_DELETION_SECONDS * 1000)) + b"\x00"
    login = Login(connection)
    for server in connection.bootstrap_servers:
        try:
            with BrokerConnection(connection, server, _DELETION_SECONDS, login) as connected:
                results = connected.request(
                    _DELETE_TOPICS, body, _DELETION_SECONDS + _GRACE_SECONDS, _read_results
                )
        except OSError as error:
            reason = error
            continue
        return {names[uuid]: why for uuid, why in results.items() if why}
    raise OSError(f"{reason}")


def _read_results(reader: ResponseReader) -> Mapping[bytes, str]:
    """Return topic id → why the topic is not deleted, empty for topics that are."""
    reader.skip(4)  # throttle time

    def result() -> tuple[bytes, str]:
        reader.compact_text()  # the name, which the user may not see
        uuid, code = reader.take(16), reader.number(2)
        message = reader.compact_text()
        reader.tagged_fields()
        return (
            uuid,
            "" if code in _DELETED else f"{KafkaError(code).name()}{f': {message}' if message else ''}",
        )

    return dict(reader.compact_array(result))
