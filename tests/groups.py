"""Groups of a broker. They are described without librdkafka: its request may abort the test run."""

from collections.abc import Mapping, Sequence

from confluent_kafka import KafkaError, KafkaException
from confluent_kafka.admin import AdminClient

from headwater.kafka import Connection
from headwater.kafka.broker_connection import BrokerConnection
from headwater.kafka.broker_session import BrokerSession
from headwater.kafka.group_client import GroupClient
from headwater.kafka.group_messages import FETCH_OFFSETS, GroupDescription, fetch_offsets
from headwater.kafka.login import Login
from headwater.kafka.wire import ResponseReader

_SECONDS = 60.0


def describe_group(servers: str, id_: str) -> GroupDescription:
    found = GroupClient(Connection(bootstrap_servers=(servers,)), _SECONDS).describe([id_])[id_]
    assert not isinstance(found, KafkaError), found
    return found


def commit_as_kafka_streams(
    servers: str, id_: str, commits: Mapping[tuple[str, int], tuple[int, str]]
) -> None:
    """Commit partition → (offset, text); confluent-kafka appends a null byte to each text."""
    assert GroupClient(Connection(bootstrap_servers=(servers,)), _SECONDS).commit(id_, commits) is None


def committed_texts(servers: str, id_: str) -> Mapping[tuple[str, int], str]:
    """Return partition → text, as brokers return it: confluent-kafka adds bytes, or hides a null byte."""
    settings = Connection(bootstrap_servers=(servers,))
    with BrokerSession(settings, Login(settings), _SECONDS) as session:

        def ask(
            connected: BrokerConnection, asked: Sequence[str]
        ) -> Sequence[tuple[str, Mapping[tuple[str, int], str] | KafkaError]]:
            texts = session.request(connected, FETCH_OFFSETS, fetch_offsets(asked), _texts)
            return [(each, texts) for each in asked]

        found = session.at_coordinators([id_], ask)[id_]
    assert not isinstance(found, KafkaError), found
    return found


def _texts(reader: ResponseReader) -> Mapping[tuple[str, int], str]:
    reader.skip(4)  # throttle time
    texts: dict[tuple[str, int], str] = {}

    def partition() -> tuple[int, str]:
        number = reader.number(4)
        reader.skip(12)  # offset, epoch of the leader
        text = reader.compact_text()
        reader.skip(2)  # error
        reader.tagged_fields()
        return number, text

    def topic() -> None:
        name = reader.compact_text()
        texts.update({(name, number): text for number, text in reader.compact_array(partition)})
        reader.tagged_fields()

    def group() -> None:
        reader.compact_text()  # id
        list(reader.compact_array(topic))
        reader.skip(2)  # error
        reader.tagged_fields()

    list(reader.compact_array(group))
    return texts


def delete_group(admin: AdminClient, id_: str) -> bool:
    """Delete a group; return whether it does not exist afterwards. One with members stays."""
    try:
        admin.delete_consumer_groups([id_])[id_].result()
    except KafkaException as refused:
        return bool(refused.args[0].code() == KafkaError.GROUP_ID_NOT_FOUND)
    return True
