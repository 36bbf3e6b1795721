"""Groups of a broker, described without librdkafka: its request may abort the test run."""

from confluent_kafka import KafkaError

from headwater.kafka import Connection
from headwater.kafka.group_client import GroupClient
from headwater.kafka.group_messages import GroupDescription

_SECONDS = 60.0


def describe_group(servers: str, id_: str) -> GroupDescription:
    found = GroupClient(Connection(bootstrap_servers=(servers,)), _SECONDS).describe([id_])[id_]
    assert not isinstance(found, KafkaError), found
    return found
