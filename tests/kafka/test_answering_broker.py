"""A request without an answer names the brokers that answer, and the brokers that do not."""

import socket
import threading
from collections.abc import Iterator
from contextlib import contextmanager, suppress

import pytest
from confluent_kafka import KafkaError

from headwater.kafka import Connection, answering_broker, token_request
from headwater.kafka.admin import Admin
from headwater.kafka.answering_broker import BrokerAnswer, ask_brokers, find_answering, no_answer
from headwater.kafka.broker_connection import failure_message
from headwater.kafka.kafka_errors import Answering
from headwater.model.problems import ProblemCode
from tests.kafka.prepared_broker import PreparedBroker, prepared_broker

_SECONDS = 60.0
_CLOSED, _CLOSED_TOO = "127.0.0.1:1", "127.0.0.1:2"


@pytest.fixture(autouse=True)
def time_for_answers(monkeypatch: pytest.MonkeyPatch) -> None:
    """Let a busy machine have more time than a user would wait."""
    monkeypatch.setattr(answering_broker, "_MOST_SECONDS", _SECONDS)


@pytest.fixture
def broker() -> Iterator[PreparedBroker]:
    """A broker that answers, of a cluster with two others, to which no connection is possible."""
    with prepared_broker(lambda _: b"") as started:
        started.cluster = (_CLOSED_TOO, _CLOSED, started.address)
        yield started


@pytest.fixture
def silent_server() -> Iterator[str]:
    """A server that accepts connections and does not answer."""
    with socket.create_server(("127.0.0.1", 0)) as server:
        yield f"127.0.0.1:{server.getsockname()[1]}"


def test_the_first_server_that_answers_is_found(broker: PreparedBroker) -> None:
    settings = Connection(bootstrap_servers=(_CLOSED, broker.address))
    answering, failures = find_answering(settings, _SECONDS)
    assert answering == Answering(broker.address, tuple(sorted(broker.cluster)))
    assert [each.text.partition("/")[0] for each in failures] == [_CLOSED, _CLOSED_TOO]
    assert all(": Connect to 127.0.0.1" in each.text for each in failures)


def test_none_is_found_if_none_answers(silent_server: str) -> None:
    settings = Connection(bootstrap_servers=(_CLOSED, silent_server))
    answering, failures = find_answering(settings, 1.0)
    assert answering is None
    assert [each.text.rpartition(": ")[2] for each in failures] == [
        "Connection refused",
        "No response in time",
    ]


@pytest.mark.parametrize("protocol", ["PLAINTEXT", "SSL"])
def test_brokers_that_refuse_nothing_and_do_not_answer(silent_server: str, protocol: str) -> None:
    """A proxy whose brokers are stopped accepts connections and closes them: it refuses no certificate."""
    with _closing_server() as proxy:
        settings = Connection(bootstrap_servers=(_CLOSED, silent_server, proxy), protocol=protocol)
        assert ask_brokers(settings, 1.0) is BrokerAnswer.NONE


def test_an_oauth_server_that_does_not_answer_refuses_nothing(broker: PreparedBroker) -> None:
    """The same network may be cut."""
    settings = Connection(bootstrap_servers=(broker.address,))
    assert ask_brokers(settings, _SECONDS) is BrokerAnswer.ANSWERED
    assert ask_brokers(_with_token(broker.address), _SECONDS) is BrokerAnswer.NONE
    _, (failure,) = find_answering(_with_token(broker.address), _SECONDS)
    assert "no OAUTHBEARER token: no connection to the token URL" in failure.text


@pytest.mark.parametrize(
    ("text", "has_no_token"),
    [
        ("no OAUTHBEARER token within 12 s", True),
        ("no OAUTHBEARER token: no answer of the token URL within 10 s", True),
        ("no OAUTHBEARER token: the token URL answers 503", True),
        ("no OAUTHBEARER token: the token URL answers 401", False),
        ("no OAUTHBEARER token: the answer of the token URL has no access_token", False),
        ("the broker refuses the token: 500", False),
    ],
)
def test_only_an_oauth_server_that_does_not_answer_is_no_refusal(text: str, *, has_no_token: bool) -> None:
    failure = failure_message(_CLOSED, OSError(text), KafkaError.SASL_AUTHENTICATION_FAILED)
    assert failure.is_final
    assert failure.has_no_token is has_no_token


@contextmanager
def _closing_server() -> Iterator[str]:
    """Run a server that closes each connection when it has received something."""
    with socket.create_server(("127.0.0.1", 0)) as server:

        def close_each() -> None:
            with suppress(OSError):
                while True:
                    connected, _ = server.accept()
                    connected.recv(65_536)
                    connected.close()

        threading.Thread(target=close_each, daemon=True).start()
        yield f"127.0.0.1:{server.getsockname()[1]}"
        server.shutdown(socket.SHUT_RDWR)


def test_a_request_of_a_new_client_names_the_brokers_that_cannot_be_reached(broker: PreparedBroker) -> None:
    """The client itself has had no answer yet."""
    admin = Admin(Connection(bootstrap_servers=(_CLOSED, broker.address)), _SECONDS)
    problem = admin._no_answer("describe topics", ())
    assert problem.code is ProblemCode.REQUEST_NOT_ANSWERED
    assert problem.summary == "The Kafka brokers did not answer the request to describe topics."
    named = ", ".join(sorted(broker.cluster))
    assert problem.found == (
        f"{broker.address} answers, and names {named}; no connection to {_CLOSED}, {_CLOSED_TOO}"
    )


def test_a_request_of_a_cluster_that_does_not_answer_says_so(silent_server: str) -> None:
    admin = Admin(Connection(bootstrap_servers=(_CLOSED, silent_server)), 1.0)
    problem = admin._no_answer("describe topics", ())
    assert problem.code is ProblemCode.CLUSTER_UNREACHABLE
    assert problem.summary == "No Kafka broker can be reached."
    assert problem.found == "no answer within 1 s"


def _with_token(server: str) -> Connection:
    return Connection(
        bootstrap_servers=(server,),
        protocol="SASL_PLAINTEXT",
        mechanism="OAUTHBEARER",
        username="headwater",
        password="blue-heron-4711",
        token_url="http://127.0.0.1:1/token",
    )


def test_a_login_that_fails_is_the_reason() -> None:
    problem = no_answer(_with_token(_CLOSED), "describe topics", (), 1.0)
    assert problem.code is ProblemCode.AUTHENTICATION_REFUSED
    assert problem.summary == "The Kafka brokers refuse the login: it has no OAuth token."
    assert problem.found is not None
    assert "no OAUTHBEARER token" in problem.found
    assert "Connection refused" in problem.found


def test_a_token_that_does_not_come_is_awaited_for_a_limited_time(
    broker: PreparedBroker, monkeypatch: pytest.MonkeyPatch
) -> None:
    ended = threading.Event()

    def hanging_request(_: object) -> str:
        ended.wait()
        return "late"

    monkeypatch.setattr(token_request, "request_token", hanging_request)
    monkeypatch.setattr(answering_broker, "_MOST_SECONDS", 0.05)
    try:
        answering, failures = find_answering(_with_token(broker.address), _SECONDS)
    finally:
        ended.set()
    assert answering is None
    assert [each.text for each in failures] == [f"{broker.address}/bootstrap: Connection setup timed out"]
