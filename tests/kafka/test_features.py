"""The enabled features of a cluster, read without librdkafka."""

import socket
import threading
from collections.abc import Iterator

import pytest

from headwater.kafka import Connection
from headwater.kafka.broker_connection import enabled_features
from headwater.toolchain.broker.local import LocalBroker
from tests.broker_version import enables_streams_groups


@pytest.mark.broker
@pytest.mark.every_broker
def test_features_of_a_broker_are_read(kafka: LocalBroker) -> None:
    features = enabled_features(Connection(bootstrap_servers=(kafka.bootstrap_servers,)), 60)
    assert features is not None
    assert features["metadata.version"] > 0
    assert features.get("streams.version", 0) == int(enables_streams_groups())


@pytest.fixture
def strange_server() -> Iterator[str]:
    """A server that answers as if it spoke HTTP, and closes the connection."""
    with socket.create_server(("127.0.0.1", 0)) as server:

        def answer() -> None:
            connected, _ = server.accept()
            with connected:
                connected.recv(1000)
                connected.sendall(b"HTTP/1.1 400 Bad Request\r\n\r\n")

        thread = threading.Thread(target=answer, daemon=True)
        thread.start()
        yield f"127.0.0.1:{server.getsockname()[1]}"
        thread.join(60)


def test_a_server_that_is_not_kafka_has_no_known_features(strange_server: str) -> None:
    assert enabled_features(Connection(bootstrap_servers=(strange_server,)), 5) is None


def test_features_are_not_known_if_no_server_answers() -> None:
    with socket.create_server(("127.0.0.1", 0)) as server:
        port = server.getsockname()[1]
    assert enabled_features(Connection(bootstrap_servers=(f"127.0.0.1:{port}",)), 5) is None
