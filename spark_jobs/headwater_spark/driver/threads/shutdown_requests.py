"""The request that all clients of an application stop (`shutdown-application`, KIP-671).

Kafka Streams sends it with a rebalance. The clients here share no group of members, so the request is the
metadata of a committed offset, in a consumer group of its own. A client reacts to requests that are newer
than its start: a later start is not affected.
"""

from collections.abc import Collection, Mapping
from secrets import token_hex

import attrs
import structlog
from confluent_kafka import Consumer, KafkaException
from confluent_kafka import TopicPartition as KafkaTopicPartition

from headwater.kafka import Connection
from headwater.model.problems import Problem, ProblemCode, ProblemsError
from headwater_spark.driver.captured_failures import failure_reason
from headwater_spark.driver.threads.settings import HANDLER, shutdown_group
from headwater_spark.worker import clients

_log = structlog.get_logger(__name__)
_POLL_SECONDS = 5.0
"""How long the thread that also restarts failed queries waits for an answer."""


@attrs.define(eq=False)
class ShutdownRequests:
    """The requests to the clients of one application; one thread at a time may use it.

    Without `is_possible` no failure is answered with `shutdown-application`: nothing is read or sent.
    """

    _connection: Connection
    _application: str
    _client_id: str
    _is_possible: bool = attrs.field(kw_only=True)
    _topics: tuple[str, ...] = attrs.field(default=(), init=False)
    _known: Mapping[str, str] = attrs.field(factory=dict, init=False)
    _consumer: Consumer | None = attrs.field(default=None, init=False)

    def start(self, topics: Collection[str]) -> None:
        """Remember the requests of the past. `topics` are the source topics, the same for all clients.

        Raises:
            ProblemsError: The group cannot be read.
        """
        if not self._is_possible:
            return
        self._topics = tuple(sorted(topics))
        self._consumer = clients.create_consumer(self._connection, shutdown_group(self._application))
        try:
            self._known = self._read(self._consumer)
        except KafkaException as error:
            raise ProblemsError([self._unreadable_problem(failure_reason(error))]) from None

    def send(self) -> bool:
        """Request that all clients stop; return whether the request is stored."""
        if self._consumer is None:
            return False
        metadata = f"{self._client_id} {token_hex(8)}"
        try:
            self._consumer.commit(
                offsets=[KafkaTopicPartition(topic, 0, 0, metadata) for topic in self._topics],
                asynchronous=False,
            )
        except KafkaException as error:
            _log.error(
                "shutdown of the application not requested: other clients continue",
                application=self._application,
                reason=failure_reason(error),
            )
            return False
        _log.warning("shutdown of the application requested", application=self._application)
        return True

    def requested_by(self) -> str:
        """Return the client id of a client that requested the stop since `start`; empty if none did."""
        if self._consumer is None:
            return ""
        try:
            found = self._read(self._consumer, _POLL_SECONDS)
        except KafkaException as error:
            _log.debug("shutdown requests unknown", reason=failure_reason(error))
            return ""
        new = (text for topic, text in found.items() if text and text != self._known.get(topic))
        return next((text.rpartition(" ")[0] for text in new), "")

    def close(self) -> None:
        consumer, self._consumer = self._consumer, None
        if consumer is not None:
            consumer.close()

    def _read(self, consumer: Consumer, seconds: float = clients.REQUEST_SECONDS) -> Mapping[str, str]:
        """Return topic → the latest request."""
        found = clients.read_committed(consumer, [(topic, 0) for topic in self._topics], seconds)
        return {each.topic: each.metadata or "" for each in found}

    def _unreadable_problem(self, found: str) -> Problem:
        group = shutdown_group(self._application)
        return Problem(
            code=ProblemCode.NOT_RUNNABLE,
            application=self._application,
            summary=f"Consumer group {group} cannot be read.",
            expected=f"permission Read on group {group}: clients request there that all of them stop",
            found=found,
            why=f"{HANDLER} may answer shutdown-application, which has to reach every client.",
            fix=f"Grant the permission (`headwater acls` lists it), or set another answer as {HANDLER}.",
        )


def shutdown_requested(application: str, by: str) -> Problem:
    """Return the problem that a client requested the stop of all clients."""
    return Problem(
        code=ProblemCode.QUERY_FAILED,
        application=application,
        summary="All clients of the application stop.",
        expected="no failure that is answered with shutdown-application",
        found=f"request of client {by}",
        why=f"A stream thread of that client failed, and {HANDLER} answered shutdown-application.",
        fix="Remove the cause, which that client has logged, and start all clients again: processing "
        "resumes where it stopped.",
    )
