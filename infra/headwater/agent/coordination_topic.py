"""The coordination topic of a group of agents: one topic with one partition.

The agent that is assigned the partition leads (`leadership`). The partition contains the journal (`journal`).
"""

from collections.abc import Mapping
from typing import TYPE_CHECKING

import structlog
from confluent_kafka import KafkaError, KafkaException
from confluent_kafka.admin import (  # type: ignore[attr-defined]  # public, but not exported explicitly
    AdminClient,
    AlterConfigOpType,
    ConfigEntry,
    ConfigResource,
    NewTopic,
    ResourceType,
)

from headwater.kafka import Connection
from headwater.kafka.expansion_journal import client_settings
from headwater.kafka.kafka_errors import REFUSED_SETTINGS
from headwater.model.records import RECORD_TOPIC_SETTINGS, record_topic_changes, settings_text

if TYPE_CHECKING:
    from concurrent.futures import Future

# Every key is unique, so compaction removes nothing; and a compacted topic loses no records by age.
TOPIC_CONFIG = dict(RECORD_TOPIC_SETTINGS)
_CREATION_SECONDS = 5.0

_log = structlog.get_logger(__name__)


def protect_records(connection: Connection, topic: str, client_id: str) -> None:
    """Give a topic that existed before the settings that keep its records; log what was changed, or why not.

    An earlier version, a user or brokers that create topics automatically may have created it. The agent also
    works without the settings, so no failure ends it.
    """
    admin = AdminClient(client_settings(connection, client_id))
    try:
        found = admin.list_topics(topic, timeout=_CREATION_SECONDS).topics[topic].partitions
        resource = ConfigResource(ResourceType.TOPIC, topic)
        entries = admin.describe_configs([resource], request_timeout=_CREATION_SECONDS)[resource].result()
        settings = {key: entry.value for key, entry in entries.items() if entry.value is not None}
        changes = record_topic_changes(
            settings, max((len(each.replicas) for each in found.values()), default=0)
        )
        if changes:
            _set_configs(admin, topic, changes)
            _log.info("coordination topic reconfigured", topic=topic, settings=settings_text(changes))
    except KafkaException as error:
        fix = (
            f"grant Write on {topic} to the users of agents only: the brokers refuse the settings"
            if error.args[0].code() in REFUSED_SETTINGS
            else f"grant AlterConfigs on {topic}, or run once: kafka-configs.sh --bootstrap-server BROKER "
            f"--alter --entity-type topics --entity-name {topic} --add-config {settings_text(TOPIC_CONFIG)}"
        )
        reason = error.args[0].name()
        _log.warning("settings of the coordination topic not checked", topic=topic, reason=reason, fix=fix)


def _set_configs(admin: AdminClient, topic: str, changes: Mapping[str, str]) -> None:
    entries = [
        ConfigEntry(key, value, incremental_operation=AlterConfigOpType.SET) for key, value in changes.items()
    ]
    resource = ConfigResource(ResourceType.TOPIC, topic, incremental_configs=entries)
    admin.incremental_alter_configs([resource], request_timeout=_CREATION_SECONDS)[resource].result()


def begin_creation(admin: AdminClient, topic: str) -> "Future[None]":
    """Send the request to create the topic; `is_created` evaluates the answer."""
    new = NewTopic(topic, num_partitions=1, replication_factor=-1, config=TOPIC_CONFIG)
    return admin.create_topics([new], request_timeout=_CREATION_SECONDS)[topic]


def _by_hand(topic: str) -> str:
    return f"create {topic} with one partition and cleanup.policy=compact"


def is_created(topic: str, creation: "Future[None]") -> bool:
    """Return whether the election can begin; raises `KafkaException` if the creation must be retried.

    Without the permission to create topics, a user must create the topic: the agent logs it and continues.
    """
    if not creation.done():
        return False
    try:
        creation.result()
    except KafkaException as error:
        match error.args[0].code():
            case KafkaError.TOPIC_ALREADY_EXISTS:
                pass
            case KafkaError.TOPIC_AUTHORIZATION_FAILED | KafkaError.CLUSTER_AUTHORIZATION_FAILED:
                fix = f"unless it exists, {_by_hand(topic)}"
                _log.warning("coordination topic not created", topic=topic, reason="not authorized", fix=fix)
            case code if code in REFUSED_SETTINGS:
                reason = f"{error.args[0].str()}; {_by_hand(topic)}"
                raise KafkaException(KafkaError(code, reason)) from None
            case _:
                raise
    else:
        _log.info("coordination topic created", topic=topic)
    return True
