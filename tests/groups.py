"""Groups of a broker. They are described without librdkafka: its request may abort the test run."""

from confluent_kafka import KafkaError, KafkaException
from confluent_kafka.admin import AdminClient

from headwater.kafka import Connection
from headwater.kafka.group_client import GroupClient
from headwater.kafka.group_messages import GroupDescription

_SECONDS = 60.0


def describe_group(servers: str, id_: str) -> GroupDescription:
    found = GroupClient(Connection(bootstrap_servers=(servers,)), _SECONDS).describe([id_])[id_]
    assert not isinstance(found, KafkaError), found
    return found


def delete_group(admin: AdminClient, id_: str) -> bool:
    """Delete a group; return whether it does not exist afterwards. One with members stays."""
    try:
        admin.delete_consumer_groups([id_])[id_].result()
    except KafkaException as refused:
        return bool(refused.args[0].code() == KafkaError.GROUP_ID_NOT_FOUND)
    return True
