"""Find out why a request had no answer: which brokers answer, and which brokers accept no connection."""

import time
from collections.abc import Mapping, Sequence
from concurrent.futures import Future
from enum import Enum
from functools import partial

from confluent_kafka import KafkaError

from headwater.kafka.broker_connection import (
    BrokerConnection,
    certificate_failure,
    failure_message,
    find_unreachable,
)
from headwater.kafka.connection_settings import ConnectionSettings
from headwater.kafka.group_messages import (
    DESCRIBE_CLUSTER,
    ClusterDescription,
    cluster_description,
    describe_cluster,
)
from headwater.kafka.kafka_errors import Answering, ClientMessage, unanswered_request, unreachable_cluster
from headwater.kafka.login import Login, LoginRefusedError
from headwater.kafka.pending_requests import in_background
from headwater.model.problems import Problem

_MOST_ADDRESSES = 50
_MOST_SECONDS = 3.0
"""For each step: the caller has already waited for an answer."""
_STEPS = 4
"""A token, a connection, an answer, and connections to the other brokers."""


class BrokerAnswer(Enum):
    """What the bootstrap servers answer on new connections."""

    ANSWERED = "a broker answers"
    REFUSED = "a broker refuses the login or the TLS connection"
    NONE = "no broker answers"


def ask_brokers(settings: ConnectionSettings, timeout_seconds: float) -> BrokerAnswer:
    """Ask the bootstrap servers on new connections, as `find_answering` does.

    The client libraries often report a refused login or TLS connection as a missing answer, and existing
    connections outlive a change of the password. A refusal by one server counts, also if another one answers.
    An OAuth server that does not answer refuses nothing: the same network may be cut.
    """
    answering, failures = find_answering(settings, timeout_seconds)
    if any(each.is_final and not (each.is_closed or each.has_no_token) for each in failures):
        return BrokerAnswer.REFUSED
    return BrokerAnswer.NONE if answering is None else BrokerAnswer.ANSWERED


def no_answer(
    settings: ConnectionSettings, what: str, messages: Sequence[ClientMessage], timeout_seconds: float
) -> Problem:
    """Return the problem for a request without an answer, of a client that has had none before.

    Takes 12 seconds at most: the brokers are asked whether they answer. Messages of the client library alone
    do not show it. `what` is the request, such as "describe topics", `timeout_seconds` how long the answer
    was awaited.
    """
    answering: Answering | None = None
    failures: Sequence[ClientMessage] = ()
    if not any(item.is_final for item in messages):
        answering, failures = find_answering(settings, timeout_seconds)
    if answering is not None:
        return unanswered_request(what, answering, (*messages, *failures), timeout_seconds)
    messages = with_certificate_failures(settings, settings.bootstrap_servers, messages, timeout_seconds)
    known = (*messages, *(failure for failure in failures if failure.is_refused))
    needs_token = settings.token_url is not None
    return unreachable_cluster(settings.bootstrap_servers, known, timeout_seconds, needs_token=needs_token)


def with_certificate_failures(
    settings: ConnectionSettings,
    addresses: Sequence[str],
    messages: Sequence[ClientMessage],
    timeout_seconds: float,
) -> Sequence[ClientMessage]:
    """Return `messages`, after why certificates at `addresses` are not accepted, if that is the failure.

    librdkafka (2.16) has one text for a certificate that has expired, of another host, or of an unknown
    authority. Takes three seconds at most.
    """
    if not any(item.is_unverified for item in messages):
        return messages
    seconds = min(timeout_seconds, _MOST_SECONDS)
    end = time.monotonic() + seconds
    asked = [
        in_background(partial(certificate_failure, settings, address, seconds))
        for address in sorted(set(addresses))[:_MOST_ADDRESSES]
    ]
    found = (_take_in_time(pending, end) for pending in asked)
    return (*filter(None, found), *messages)


def _take_in_time(pending: Future[ClientMessage | None], end: float) -> ClientMessage | None:
    try:
        return pending.result(max(0.0, end - time.monotonic()))
    except TimeoutError:
        return None


def find_answering(
    settings: ConnectionSettings, timeout_seconds: float
) -> tuple[Answering | None, Sequence[ClientMessage]]:
    """Ask all bootstrap servers at the same time, and connect to the other brokers that one of them names.

    Each connection and each answer may take `timeout_seconds`, three seconds at most. Return the first server
    that answers, None if none does, and the failures as librdkafka's log has them. Takes 12 seconds at most,
    also if a token or the address of a host name is not found: such a request continues in the background,
    and its server counts as silent.
    """
    login, seconds = Login(settings), min(timeout_seconds, _MOST_SECONDS)
    end = time.monotonic() + _STEPS * _MOST_SECONDS
    asked = {
        server: in_background(partial(_ask_broker, settings, login, server, seconds))
        for server in settings.bootstrap_servers
    }
    answers = [_await_answer(server, pending, end) for server, pending in asked.items()]
    failures = [answer for answer in answers if isinstance(answer, ClientMessage)]
    answering = next((answer for answer in answers if isinstance(answer, Answering)), None)
    if answering is not None:
        others = sorted(set(answering.brokers) - set(settings.bootstrap_servers))[:_MOST_ADDRESSES]
        for address, reason in _find_unreachable_in_time(others, seconds, end).items():
            failures.append(failure_message(address, OSError(reason)))
    return answering, failures


def _ask_broker(
    settings: ConnectionSettings, login: Login, server: str, seconds: float
) -> Answering | ClientMessage:
    try:
        login.prepare()  # before the time of the connection begins
        with BrokerConnection(settings, server, seconds, login) as connected:
            body = describe_cluster(with_operations=False)
            found = connected.request(DESCRIBE_CLUSTER, body, seconds, cluster_description)
    except LoginRefusedError as error:
        return failure_message(server, error, KafkaError.SASL_AUTHENTICATION_FAILED)
    except OSError as error:
        return failure_message(server, error)
    return Answering(server, tuple(sorted(found.brokers)) if isinstance(found, ClusterDescription) else ())


def _await_answer(
    server: str, pending: Future[Answering | ClientMessage], end: float
) -> Answering | ClientMessage:
    try:
        return pending.result(max(0.0, end - time.monotonic()))
    except TimeoutError as error:
        return failure_message(server, error)


def _find_unreachable_in_time(addresses: Sequence[str], seconds: float, end: float) -> Mapping[str, str]:
    pending = in_background(partial(find_unreachable, addresses, seconds))
    try:
        return pending.result(max(0.0, end - time.monotonic()))
    except TimeoutError:
        return {}
