"""Delete topics by their ids (KIP-516): a topic that got the same name since then is never deleted.

librdkafka (2.16) and the provider delete by name only, so this sends the request DeleteTopics itself.
"""

from collections.abc import Mapping
from struct import pack

from confluent_kafka import KafkaError

from headwater.kafka import Connection
from headwater.kafka.broker_connection import BrokerConnection, Message
from headwater.kafka.login import Login
from headwater.kafka.wire import ResponseReader, compact_array, topic_id_bytes

_SECONDS = 30.0
_GRACE_SECONDS = 5.0
_DELETE_TOPICS = Message("DeleteTopics", 20, 6, 6)
_DELETED = (0, KafkaError.UNKNOWN_TOPIC_ID, KafkaError.UNKNOWN_TOPIC_OR_PART)


def delete_topics(connection: Connection, ids: Mapping[str, str]) -> Mapping[str, str]:
    """Delete the topics with these ids; `ids` is name → id. Return name → reason for those that remain.

    A topic that no longer exists under its id counts as deleted.

    Raises:
        OSError: No broker answers, or it refuses the user.
    """
    reason = OSError("no broker is named")
    names = {topic_id_bytes(id_): name for name, id_ in ids.items()}
    topics = compact_array(b"\x00" + uuid + b"\x00" for uuid in names)
    body = topics + pack(">i", int(_SECONDS * 1000)) + b"\x00"
    login = Login(connection)
    for server in connection.bootstrap_servers:
        try:
            with BrokerConnection(connection, server, _SECONDS, login) as connected:
                results = connected.request(_DELETE_TOPICS, body, _SECONDS + _GRACE_SECONDS, _results)
        except OSError as error:
            reason = error
            continue
        return {names[uuid]: why for uuid, why in results.items() if why}
    raise OSError(f"{reason}")


def _results(reader: ResponseReader) -> Mapping[bytes, str]:
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
