"""Why a request had no answer: no broker can be reached, or one of three has no route."""

from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor

from headwater.kafka.broker_connection import BrokerConnection, failure_text
from headwater.kafka.broker_connection import unreachable as unreachable_addresses
from headwater.kafka.connection_settings import ConnectionSettings
from headwater.kafka.group_messages import (
    DESCRIBE_CLUSTER,
    ClusterDescription,
    cluster_description,
    describe_cluster,
)
from headwater.kafka.kafka_errors import Answering, ClientMessage, unanswered, unreachable
from headwater.kafka.login import Login
from headwater.model.problems import Problem

_PARALLEL = 32
_MOST_ADDRESSES = 50
_MOST_SECONDS = 3.0
"""The caller has already waited for an answer."""


def no_answer(
    settings: ConnectionSettings, what: str, messages: Sequence[ClientMessage], timeout_seconds: float
) -> Problem:
    """Return the problem for a request without an answer, of a client that has had none before.

    Takes a few seconds: the brokers are asked whether they answer. Messages of the client library alone do
    not show it.

    Args:
        settings: The connection of the request.
        what: The request, such as "describe topics".
        messages: The messages of the client library.
        timeout_seconds: How long the answer was awaited.
    """
    answering: Answering | None = None
    failures: Sequence[ClientMessage] = ()
    if not any(item.is_final for item in messages):
        answering, failures = find_answering(settings, timeout_seconds)
    if answering is not None:
        return unanswered(what, answering, (*messages, *failures), timeout_seconds)
    needs_token = settings.token_url is not None
    return unreachable(settings.bootstrap_servers, messages, timeout_seconds, needs_token=needs_token)


def find_answering(
    settings: ConnectionSettings, timeout_seconds: float
) -> tuple[Answering | None, Sequence[ClientMessage]]:
    """Ask all bootstrap servers at the same time, and connect to the other brokers that one of them names.

    Args:
        settings: The connection of the request that had no answer.
        timeout_seconds: How long each connection and each answer may take; three seconds at most.

    Return the first server that answers, None if none does, and the failures as librdkafka's log has them.
    """
    login, seconds = Login(settings), min(timeout_seconds, _MOST_SECONDS)

    def ask(server: str) -> Answering | ClientMessage:
        try:
            with BrokerConnection(settings, server, seconds, login) as connected:
                body = describe_cluster(with_operations=False)
                found = connected.request(DESCRIBE_CLUSTER, body, seconds, cluster_description)
        except OSError as error:
            return ClientMessage(failure_text(server, error))
        return Answering(
            server, tuple(sorted(found.brokers)) if isinstance(found, ClusterDescription) else ()
        )

    with ThreadPoolExecutor(_PARALLEL) as threads:
        answers = list(threads.map(ask, settings.bootstrap_servers))
    failures = [answer for answer in answers if isinstance(answer, ClientMessage)]
    answering = next((answer for answer in answers if isinstance(answer, Answering)), None)
    if answering is not None:
        others = sorted(set(answering.brokers) - set(settings.bootstrap_servers))[:_MOST_ADDRESSES]
        for address, reason in unreachable_addresses(others, seconds).items():
            failures.append(ClientMessage(failure_text(address, OSError(reason))))
    return answering, failures
