"""Create topics, add partitions, change settings: three batched calls whatever the number of topics."""

from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import TYPE_CHECKING, Any, Protocol

from confluent_kafka import KafkaException
from confluent_kafka.admin import (  # type: ignore[attr-defined]  # names that are public there all the same
    AdminClient,
    AlterConfigOpType,
    ConfigEntry,
    ConfigResource,
    NewPartitions,
    NewTopic,
    ResourceType,
)

from infra.observe import Connection
from infra.observe.client_log import client_log

if TYPE_CHECKING:
    from concurrent.futures import Future

_TIMEOUT_SECONDS = 60


class TopicChange(Protocol):
    """`create` = the topic is made; otherwise `partitions`, if any, is its new count.

    Of `config` the settings are changed that are named; None = reset to the broker's default.
    """

    @property
    def name(self) -> str: ...
    @property
    def create(self) -> bool: ...
    @property
    def partitions(self) -> int | None: ...
    @property
    def replication_factor(self) -> int: ...
    @property
    def config(self) -> Mapping[str, str | None]: ...


def admin_client(connection: Connection) -> AdminClient:
    """Return a quiet one; raises `ProblemsError` for unfit settings."""
    return AdminClient(connection.confluent(), logger=client_log())


def change_topics(admin: AdminClient, changes: Sequence[TopicChange]) -> tuple[str, ...]:
    """Do all of it; return what failed, a `topic: reason` each."""
    return (
        *failures(_create(admin, [change for change in changes if change.create])),
        *failures(_expand(admin, [each for each in changes if each.partitions and not each.create])),
        *failures(_configure(admin, [each for each in changes if each.config and not each.create])),
    )


def _create(admin: AdminClient, changes: Iterable[TopicChange]) -> Mapping[str, "Future[Any]"]:
    topics = [
        NewTopic(
            change.name,
            num_partitions=change.partitions or -1,
            replication_factor=change.replication_factor,
            config={key: value for key, value in change.config.items() if value is not None},
        )
        for change in changes
    ]
    return admin.create_topics(topics, operation_timeout=_TIMEOUT_SECONDS) if topics else {}


def _expand(admin: AdminClient, changes: Iterable[TopicChange]) -> Mapping[str, "Future[Any]"]:
    partitions = [NewPartitions(change.name, change.partitions or 0) for change in changes]
    return admin.create_partitions(partitions, operation_timeout=_TIMEOUT_SECONDS) if partitions else {}


def _configure(admin: AdminClient, changes: Iterable[TopicChange]) -> Mapping[str, "Future[Any]"]:
    resources = [
        ConfigResource(
            ResourceType.TOPIC,
            change.name,
            incremental_configs=[_entry(key, value) for key, value in change.config.items()],
        )
        for change in changes
    ]
    if not resources:
        return {}
    return {resource.name: future for resource, future in admin.incremental_alter_configs(resources).items()}


def _entry(key: str, value: str | None) -> ConfigEntry:
    operation = AlterConfigOpType.DELETE if value is None else AlterConfigOpType.SET
    return ConfigEntry(key, value or "", incremental_operation=operation)


def failures(results: Mapping[str, "Future[Any]"]) -> Iterator[str]:
    """Wait for all of `results` (what → answer); yield a `what: reason` for each that failed."""
    for name, future in results.items():
        try:
            future.result(timeout=_TIMEOUT_SECONDS)
        except KafkaException as error:
            yield f"{name}: {error.args[0].str()}"
        except TimeoutError:
            yield f"{name}: no answer within {_TIMEOUT_SECONDS} s"
