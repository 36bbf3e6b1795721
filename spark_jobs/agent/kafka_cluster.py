"""The topics of a real cluster: counts by one metadata request, `createPartitions` in batches."""

from collections import deque
from collections.abc import Iterator, Mapping, Sequence
from concurrent.futures import Future, wait
from typing import Any

from confluent_kafka import KafkaError, KafkaException
from confluent_kafka.admin import (  # type: ignore[attr-defined]  # names that are public there all the same
    AdminClient,
    NewPartitions,
)

from infra.model.problems import ProblemsError
from infra.observe import Connection
from infra.observe.client_log import client_log
from infra.observe.kafka_errors import ClientMessage, client_message, unreachable
from infra.observe.pending_requests import in_background
from spark_jobs.agent.state import Outcome, Shortfall, TopicCounts, TopicResult

_MOST_ADDED = 5_000
"""Partitions in one request: a controller refuses to write more than 10,000 records at once."""
_GRACE_SECONDS = 1.0
_LONGEST_TEXT = 300


class KafkaCluster:
    """A `ports.Cluster`. Every request ends within `timeout_seconds` (and a second of grace)."""

    def __init__(self, connection: Connection, client_id: str, timeout_seconds: float = 10.0) -> None:
        """Connect when first asked; raises `ProblemsError` (InvalidConfig) for unfit settings."""
        self._servers = connection.bootstrap_servers
        self._timeout = timeout_seconds
        self._heard: deque[ClientMessage] = deque(maxlen=50)
        heard = self._heard  # not by `self` in the callback: the client could never be freed
        self._settings: dict[str, Any] = {
            **connection.confluent(),
            "client.id": client_id,
            "error_cb": lambda error: heard.append(client_message(error)),
            "socket.timeout.ms": int(timeout_seconds * 1000),
            "socket.connection.setup.timeout.ms": int(timeout_seconds * 1000),
            "reconnect.backoff.max.ms": 1_000,
            # The metadata is asked for in so many words; nobody needs it in between.
            "topic.metadata.refresh.interval.ms": -1,
        }
        self._client = self._connected()

    def partition_counts(self) -> TopicCounts:
        """See `ports.Cluster`."""
        self._client.poll(0)
        try:
            topics = self._client.list_topics(timeout=self._timeout).topics
        except KafkaException:
            self._client.poll(0)
            problem = unreachable(self._servers, tuple(self._heard), self._timeout)
            self._connect_anew()
            raise ProblemsError([problem]) from None
        self._heard.clear()  # what was wrong for a moment must not count against a later request
        return {name: len(topic.partitions) for name, topic in topics.items() if topic.error is None}

    def expand(self, lacking: Sequence[Shortfall], *, validate_only: bool) -> tuple[TopicResult, ...]:
        """See `ports.Cluster`."""
        results = [
            result for batch in _batches(lacking) for result in self._ask(batch, validate_only=validate_only)
        ]
        return tuple(results)

    def close(self) -> None:
        """Nothing is held that the client does not free by itself."""

    def _connected(self) -> AdminClient:
        heard = self._heard
        return AdminClient(self._settings, logger=client_log(lambda line: heard.append(ClientMessage(line))))

    def _connect_anew(self) -> None:
        """Ask by another client from now on: one that met a broker that hung may never be answered again.

        The old one is closed in the background, for that may take as long.
        """
        old = [self._client]
        self._client = self._connected()
        in_background(old.clear)

    def _ask(self, lacking: Sequence[Shortfall], *, validate_only: bool) -> Iterator[TopicResult]:
        try:
            asked: Mapping[str, Future[None]] = self._client.create_partitions(
                [NewPartitions(item.topic, item.wanted) for item in lacking],
                request_timeout=self._timeout,
                operation_timeout=self._timeout,
                validate_only=validate_only,
            )
        except KafkaException as error:
            return (_result(item, error.args[0]) for item in lacking)
        wait(asked.values(), self._timeout + _GRACE_SECONDS)
        self._client.poll(0)
        return (_result(item, _error(asked[item.topic])) for item in lacking)


def _batches(lacking: Sequence[Shortfall]) -> Iterator[Sequence[Shortfall]]:
    start = added = 0
    for index, item in enumerate(lacking):
        more = item.wanted - item.partitions
        if added and added + more > _MOST_ADDED:
            yield lacking[start:index]
            start, added = index, 0
        added += more
    if start < len(lacking):
        yield lacking[start:]


def _error(future: "Future[None]") -> KafkaError | None:
    if not future.done():
        return KafkaError(KafkaError._TIMED_OUT)  # noqa: SLF001 - librdkafka's own codes begin so
    try:
        future.result()
    except KafkaException as error:
        reason: KafkaError = error.args[0]
        return reason
    return None


def _result(item: Shortfall, error: KafkaError | None) -> TopicResult:
    """INVALID_PARTITIONS: the topic has as many, or more; the next look tells which."""
    if error is None:
        return TopicResult(item.topic, item.wanted, Outcome.EXPANDED)
    if error.code() == KafkaError.INVALID_PARTITIONS:
        return TopicResult(item.topic, item.wanted, Outcome.ALREADY)
    return TopicResult(item.topic, item.wanted, Outcome.FAILED, error.name(), error.str()[:_LONGEST_TEXT])
