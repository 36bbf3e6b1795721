"""What several agents share: one topic with one partition.

Who is assigned the partition leads (`leadership`), and what the leaders did stands in it (`history`). One
topic is one thing to create, to allow and to look into.
"""

from typing import TYPE_CHECKING, Any

import structlog
from confluent_kafka import KafkaError, KafkaException
from confluent_kafka.admin import AdminClient, NewTopic  # type: ignore[attr-defined]  # public all the same

from infra.observe import Connection
from infra.observe.client_log import client_log

if TYPE_CHECKING:
    from concurrent.futures import Future

TOPIC_PREFIX = "headwater-agent-"
PARTITION = 0
# Every key is unique, so compaction takes nothing away; and a compacted topic never loses records by age.
TOPIC_CONFIG = {"cleanup.policy": "compact"}
_CREATION_SECONDS = 5.0

_log = structlog.get_logger(__name__)


def coordination_topic(name: str) -> str:
    """Return the topic of the agents that share `name`; it is the id of their consumer group, too."""
    return f"{TOPIC_PREFIX}{name}"


def client_settings(connection: Connection, client_id: str) -> dict[str, Any]:
    """Return what all of an agent's coordinating clients have in common; raises `ProblemsError`."""
    return {
        **connection.confluent(),
        "client.id": client_id,
        "reconnect.backoff.max.ms": 1_000,
        "logger": client_log(lambda line: _log.debug("librdkafka", told=line)),
    }


def begin_creation(admin: AdminClient, topic: str) -> "Future[None]":
    """Send the request to create the topic; `is_there` tells what came of it."""
    wanted = NewTopic(topic, num_partitions=1, replication_factor=-1, config=TOPIC_CONFIG)
    return admin.create_topics([wanted], request_timeout=_CREATION_SECONDS)[topic]


def is_there(topic: str, creation: "Future[None]") -> bool:
    """Return whether the election can begin; raises `KafkaException` when it has to be tried again.

    Where the agent may not create topics somebody else has to: then it goes on, and says so.
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
