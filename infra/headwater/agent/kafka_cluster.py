"""The topics of a Kafka cluster: counts by one metadata request, `createPartitions` in batches."""

from collections import deque
from collections.abc import Iterator, Mapping, Sequence
from concurrent.futures import Future, ThreadPoolExecutor, wait
from functools import partial
from typing import Any

from confluent_kafka import KafkaError, KafkaException
from confluent_kafka.admin import (  # type: ignore[attr-defined]  # public, but not exported explicitly
    AdminClient,
    NewPartitions,
)

from headwater.agent.state import OffsetTexts, Outcome, Shortfall, TopicResult
from headwater.kafka import Connection
from headwater.kafka.answering_broker import no_answer
from headwater.kafka.client_settings import client_log
from headwater.kafka.group_offsets import read_metadata
from headwater.kafka.kafka_errors import TIMED_OUT, ClientMessage, client_message
from headwater.kafka.pending_requests import RenewedClient, split_batches
from headwater.model.expansions import TopicCounts
from headwater.model.problems import ProblemsError

_METADATA = "describe the topics"
_GRACE_SECONDS = 1.0
_LONGEST_SOCKET_MS = 300_000
"""The longest `socket.timeout.ms` that librdkafka accepts."""
_SHORTEST_SOCKET_MS = 10
_SHORTEST_CONNECT_MS = 1_000
_LONGEST_TEXT = 300


class KafkaCluster:
    """A `ports.Cluster`. Every request ends after `timeout_seconds` and one second at most.

    If metadata has no answer, the brokers are asked whether they answer, for 12 seconds at most.
    """

    def __init__(self, connection: Connection, client_id: str, timeout_seconds: float = 10.0) -> None:
        """Connect on the first request; raises `ProblemsError` (InvalidConfig) for wrong settings."""
        self._connection = connection
        self._timeout, timeout_ms = timeout_seconds, int(timeout_seconds * 1000)
        self._messages: deque[ClientMessage] = deque(maxlen=50)
        messages = self._messages  # with `self` in the callback the client could never be freed
        settings: dict[str, Any] = {
            **connection.librdkafka_settings(),
            "client.id": client_id,
            "error_cb": lambda error: messages.append(client_message(error)),
            "socket.timeout.ms": min(max(timeout_ms, _SHORTEST_SOCKET_MS), _LONGEST_SOCKET_MS),
            "socket.connection.setup.timeout.ms": max(timeout_ms, _SHORTEST_CONNECT_MS),
            "reconnect.backoff.max.ms": 1_000,
            # Metadata is requested explicitly; librdkafka need not refresh it.
            "topic.metadata.refresh.interval.ms": -1,
        }
        self._renewed = RenewedClient(partial(_create_client, settings, messages))

    def partition_counts(self) -> TopicCounts:
        """See `ports.Cluster`."""
        self._renewed.client.poll(0)
        try:
            topics = self._renewed.client.list_topics(timeout=self._timeout).topics
        except KafkaException:
            self._renewed.client.poll(0)
            self._renewed.renew()
            problem = no_answer(self._connection, _METADATA, tuple(self._messages), self._timeout)
            raise ProblemsError([problem]) from None
        self._messages.clear()  # errors of this request must not explain a later one
        return {name: len(topic.partitions) for name, topic in topics.items() if topic.error is None}

    def offset_metadata(self, topics: Mapping[str, TopicCounts]) -> Mapping[str, OffsetTexts]:
        """See `ports.Cluster`."""
        with ThreadPoolExecutor(max(1, len(topics))) as pool:  # each group is read by a client of its own
            return dict(zip(topics, pool.map(self._read_texts, topics, topics.values()), strict=True))

    def _read_texts(self, application: str, counts: TopicCounts) -> OffsetTexts:
        try:
            return tuple(read_metadata(self._connection, application, counts, self._timeout, purpose="agent"))
        except ProblemsError as error:
            return error.problems[0]

    def expand(self, shortfalls: Sequence[Shortfall], *, validate_only: bool) -> tuple[TopicResult, ...]:
        """See `ports.Cluster`."""
        results = [
            result
            for batch in split_batches(shortfalls, lambda item: item.required - item.partitions)
            for result in self._request(batch, validate_only=validate_only)
        ]
        return tuple(results)

    def _request(self, shortfalls: Sequence[Shortfall], *, validate_only: bool) -> Iterator[TopicResult]:
        try:
            futures: Mapping[str, Future[None]] = self._renewed.client.create_partitions(
                [NewPartitions(item.topic, item.required) for item in shortfalls],
                request_timeout=self._timeout,
                operation_timeout=self._timeout,
                validate_only=validate_only,
            )
        except KafkaException as error:
            return (_result_of(item, error.args[0]) for item in shortfalls)
        wait(futures.values(), self._timeout + _GRACE_SECONDS)
        self._renewed.client.poll(0)
        return (_result_of(item, _error_of(futures[item.topic])) for item in shortfalls)


def _create_client(settings: Mapping[str, Any], messages: deque[ClientMessage]) -> AdminClient:
    return AdminClient(dict(settings), logger=client_log(lambda line: messages.append(ClientMessage(line))))


def _error_of(future: "Future[None]") -> KafkaError | None:
    if not future.done():
        return TIMED_OUT
    try:
        future.result()
    except KafkaException as error:
        reason: KafkaError = error.args[0]
        return reason
    return None


def _result_of(item: Shortfall, error: KafkaError | None) -> TopicResult:
    """Return the result; INVALID_PARTITIONS: the topic has as many partitions, or more."""
    if error is None:
        return TopicResult(item.topic, item.required, Outcome.EXPANDED)
    if error.code() == KafkaError.INVALID_PARTITIONS:
        return TopicResult(item.topic, item.required, Outcome.ALREADY)
    return TopicResult(item.topic, item.required, Outcome.FAILED, error.name(), error.str()[:_LONGEST_TEXT])
