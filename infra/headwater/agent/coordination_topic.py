"""The coordination topic of a group of agents: one topic with one partition.

The agent that is assigned the partition leads (`leadership`). The partition contains the journal (`journal`).
"""

from typing import TYPE_CHECKING, Any

import structlog
from confluent_kafka import KafkaError, KafkaException
from confluent_kafka.admin import AdminClient, NewTopic  # type: ignore[attr-defined]  # public, but not exported explicitly

from headwater.kafka import Connection
from headwater.kafka.client_log import client_log
from headwater.model.records import RECORD_TOPIC_SETTINGS

if TYPE_CHECKING:
    from concurrent.futures import Future

TOPIC_PREFIX = "headwater-agent-"
PARTITION = 0
# Every key is unique, so compaction removes nothing; and a compacted topic loses no records by age.
TOPIC_CONFIG = dict(RECORD_TOPIC_SETTINGS)
_CREATION_SECONDS = 5.0

_log = structlog.get_logger(__name__)


def coordination_topic(name: str) -> str:
    """Return the topic of a group of agents; the id of their consumer group is the same."""
    return f"{TOPIC_PREFIX}{name}"


def client_settings(connection: Connection, client_id: str) -> dict[str, Any]:
    """Return the settings of all clients that coordinate an agent; raises `ProblemsError`."""
    return {
        **connection.confluent(),
        "client.id": client_id,
        "reconnect.backoff.max.ms": 1_000,
        "logger": client_log(lambda line: _log.debug("librdkafka", line=line)),
    }


def begin_creation(admin: AdminClient, topic: str) -> "Future[None]":
    """Send the request to create the topic; `is_created` evaluates the answer."""
    new = NewTopic(topic, num_partitions=1, replication_factor=-1, config=TOPIC_CONFIG)
    return admin.create_topics([new], request_timeout=_CREATION_SECONDS)[topic]


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
                fix = f"unless it exists, create {topic} with one partition and cleanup.policy=compact"
                _log.warning("coordination topic not created", topic=topic, reason="not authorized", fix=fix)
            case _:
                raise
    else:
        _log.info("coordination topic created", topic=topic)
    return True
