"""What an operator gets to read when a connection's settings or the cluster say no, whole."""

from collections.abc import Callable, Iterable
from pathlib import Path

import pytest
from confluent_kafka import KafkaError, ThrottleEvent

from headwater.kafka import Connection
from headwater.kafka.broker_connection import failure_message
from headwater.kafka.connection_settings import connection_problems
from headwater.kafka.expansion_journal import journal_refused
from headwater.kafka.kafka_errors import (
    Answering,
    ClientMessage,
    not_authorized,
    throttled_message,
    unanswered_request,
    unexpected_error,
    unreachable_cluster,
    unusable_answer,
)
from headwater.kafka.wire import LateResponseError
from headwater.model.acls import Operation
from headwater.model.problems import Problem
from headwater.report import problems_text

GOLDEN = Path(__file__).parent / "golden"
BROKER = ("kafka.example:9093",)
LOG = "FAIL [rdkafka#producer-1] [thrd:kafka.example:9093/bootstrap]: kafka.example:9093/bootstrap: "


def heard(text: str, code: int | None = None) -> Problem:
    """Return the problem for this message, with the prefixes of librdkafka and between other messages."""
    down = ClientMessage("1/1 brokers are down", KafkaError._ALL_BROKERS_DOWN)
    message = ClientMessage(f"{LOG if code is None else ''}{text} (after 3ms in state CONNECT)", code)
    return unreachable_cluster(BROKER, [down, message, down], 15.0)


def refused_connections() -> Iterable[Problem]:
    yield unreachable_cluster(BROKER, [], 15.0)
    yield unreachable_cluster(BROKER, [], 15.0, needs_token=True)
    yield heard("Connect to ipv4#10.0.0.1:9093 failed: Connection refused", KafkaError._TRANSPORT)
    yield heard("Disconnected: connection closed by peer: receive 0 after POLLIN")
    yield heard("SSL handshake failed: certificate verify failed", KafkaError._SSL)
    yield heard("SSL handshake failed: certificate verify failed: certificate has expired", KafkaError._SSL)
    yield heard("Receive failed: ssl/tls alert bad certificate: SSL alert number 42", KafkaError._TRANSPORT)
    yield heard("SASL authentication error: Authentication failed", KafkaError._AUTHENTICATION)
    yield heard("Failed to acquire SASL OAUTHBEARER token: Could not connect", KafkaError._AUTHENTICATION)
    yield heard("no AWS_MSK_IAM token: NoCredentialsError", KafkaError.SASL_AUTHENTICATION_FAILED)


def refused_requests() -> Iterable[Problem]:
    yield not_authorized(KafkaError(KafkaError.TOPIC_AUTHORIZATION_FAILED), "see topic", "orders-in")
    yield not_authorized(KafkaError(KafkaError.GROUP_AUTHORIZATION_FAILED), "see consumer group", "orders")
    yield not_authorized(KafkaError(KafkaError.CLUSTER_AUTHORIZATION_FAILED), "describe", "the cluster")
    yield unexpected_error(KafkaError(KafkaError.UNKNOWN), "see topic", "orders-in")
    text = "kafka-1.example:9093 sent an answer that cannot be read: the response is too short"
    yield unusable_answer("read the settings of topics", text)
    brokers = Answering("kafka-1.example:9093", ("kafka-1.example:9093", "kafka-2.example:9093"))
    yield unanswered_request("describe group orders", brokers, [], 15.0)
    failed = "kafka-2.example:9093/2: Connect to ipv4#10.0.0.2:9093 failed: Connection refused"
    yield unanswered_request("describe group orders", brokers, [ClientMessage(failed)], 15.0)
    of_ipv6 = "[2001:db8::2]:9093/2: "
    refused = f"[thrd:{of_ipv6.rstrip(': ')}]: {of_ipv6}Connect to ipv6#[2001:db8::2]:9093 failed: refused"
    late = failure_message("[2001:db8::3]:9093", LateResponseError())
    yield unanswered_request("describe group orders", brokers, [ClientMessage(refused), late], 15.0)
    throttled = throttled_message(ThrottleEvent("kafka-2.example:9093", 2, 1.0))
    for times in (1, 3):  # one second of fifteen does not explain a missing answer
        yield unanswered_request("describe topics", brokers, [throttled] * times, 15.0)
    yield unanswered_request("describe topics", brokers, [ClientMessage(failed), *[throttled] * 3], 15.0)
    closed = ClientMessage("kafka-2.example:9093/2: Disconnected: connection closed by peer")
    yield unanswered_request("describe topics", brokers, [closed], 15.0)
    expired = ClientMessage("SSL handshake failed: certificate verify failed", KafkaError._SSL)
    yield unanswered_request("describe group orders", brokers, [expired], 15.0)
    journal = "headwater-agent-default"
    denied = KafkaError(KafkaError.TOPIC_AUTHORIZATION_FAILED)
    yield journal_refused(journal, "write to", denied, Operation.WRITE)
    yield journal_refused(journal, "write to", KafkaError(KafkaError._MSG_TIMED_OUT), Operation.WRITE)


def settings() -> Iterable[Problem]:
    for connection in (
        Connection(bootstrap_servers=()),
        Connection(bootstrap_servers=("kafka://kafka.example",), protocol="TLS"),
        Connection(bootstrap_servers=BROKER, protocol="SASL_SSL"),
        Connection(bootstrap_servers=BROKER, mechanism="KERBEROS"),
        Connection(bootstrap_servers=BROKER, protocol="SASL_SSL", mechanism="PLAIN"),
        Connection(bootstrap_servers=BROKER, protocol="SASL_PLAINTEXT", mechanism="AWS_MSK_IAM"),
        Connection(bootstrap_servers=BROKER, ca="/etc/ca.jks", key="x"),
    ):
        yield from connection_problems(connection)


@pytest.mark.parametrize(
    "problems", [refused_connections, refused_requests, settings], ids=lambda f: f.__name__
)
def test_texts(problems: Callable[[], Iterable[Problem]], golden: Callable[[Path, str], None]) -> None:
    golden(GOLDEN / f"{problems.__name__}.txt", problems_text(problems()) + "\n")
