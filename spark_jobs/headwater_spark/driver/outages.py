"""Outages of the brokers: a query that fails in one waits for the brokers, and uses up no restart.

A failure belongs to an outage if it is a missing answer of the brokers, and none of them refuses this client:
the client libraries report a refused login or TLS connection as a missing answer, too.
"""

import re
import time
from collections.abc import Callable

import attrs
import structlog
from confluent_kafka import KafkaError

from headwater.kafka import Connection
from headwater.kafka.answering_broker import BrokerAnswer, ask_brokers
from headwater.kafka.kafka_errors import COORDINATOR_MOVING, NO_ANSWER
from headwater_spark.driver.failures import Failure, RestartPolicy

_log = structlog.get_logger(__name__)
_ASK_SECONDS = 3.0
_KNOWN_SECONDS = 5.0
_LOG_SECONDS = 300.0
_UNAVAILABLE = frozenset(
    KafkaError(code).name()
    for code in (
        *NO_ANSWER,
        *COORDINATOR_MOVING,
        # librdkafka's own codes begin with an underscore.
        KafkaError._MSG_TIMED_OUT,  # noqa: SLF001
        KafkaError._TIMED_OUT_QUEUE,  # noqa: SLF001
        KafkaError._WAIT_COORD,  # noqa: SLF001
        KafkaError._RESOLVE,  # noqa: SLF001
        KafkaError.REQUEST_TIMED_OUT,
        KafkaError.NETWORK_EXCEPTION,
        KafkaError.BROKER_NOT_AVAILABLE,
        KafkaError.LEADER_NOT_AVAILABLE,
        KafkaError.NOT_LEADER_FOR_PARTITION,
        KafkaError.REPLICA_NOT_AVAILABLE,
        KafkaError.NOT_ENOUGH_REPLICAS,
        KafkaError.NOT_ENOUGH_REPLICAS_AFTER_APPEND,
    )
)
"""Errors of brokers that are stopped, cannot be reached, or have too few replicas, by name."""
_PYTHON = re.compile(r"(?:[\w.]*\bKafkaException: )?KafkaError\{code=(\w+),")
"""The text of the exception in the driver; before it, the name of its class in a worker's traceback.

Texts of fatal errors differ: `KafkaError{FATAL,code=`.
"""
_JAVA = re.compile(
    r"org\.apache\.kafka\.common\.errors\.(?:Timeout|Disconnect|Network|BrokerNotAvailable|LeaderNotAvailable"
    r"|NotLeaderOrFollower|CoordinatorNotAvailable|CoordinatorLoadInProgress|NotCoordinator)Exception\b"
    # Spark omits the class of an exception that its driver meets.
    r"|Timed out waiting (?:for a node assignment|to send the call)\. Call: "
    r"|\bCall\(callName=.* timed out at \d+"
    r"|due to node \S+ being disconnected|Timeout of \d+ms expired before"
    r"|Cannot fetch record for offset \d+ in \d+ milliseconds"
)
"""The failures of Java's clients, and of Spark's connector; other time-outs of Spark have other causes."""
_JAVA_REFUSAL = re.compile(r"\b\w*(?:Authentication|Authorization)Exception\b")
_TRACEBACK = "Traceback (most recent call last)"


def is_unanswered(failure: Failure) -> bool:
    """Return whether the failure is a missing answer of the brokers, by its text."""
    if found := _PYTHON.match(failure.reason):
        return found[1] in _UNAVAILABLE
    if _TRACEBACK in failure.text:  # another exception of Python, whose text may contain anything
        return False
    return bool(_JAVA.search(failure.text)) and not _JAVA_REFUSAL.search(failure.text)


def belongs_to_outage(failure: Failure | None, ask: Callable[[], BrokerAnswer]) -> bool:
    """Return whether a query that has failed waits for the brokers; if not, the failure counts.

    `ask` asks the brokers on new connections. If one answers, only some may be stopped: a coordinator, or
    the leader of a partition.
    """
    return failure is not None and is_unanswered(failure) and ask() is not BrokerAnswer.REFUSED


@attrs.define(kw_only=True, eq=False)
class Brokers:
    """Asks the brokers in an outage; the client's thread calls all methods.

    `is_awaited`: queries wait for the brokers. Otherwise all failures count, because
    `uncaught.exception.handler` decides about them. An answer is used again for `known_seconds`: all queries
    of an application fail at about the same time.
    """

    ask: Callable[[], BrokerAnswer]
    restarts: RestartPolicy
    is_awaited: bool = True
    known_seconds: float = _KNOWN_SECONDS
    _answer: BrokerAnswer = attrs.field(default=BrokerAnswer.ANSWERED, init=False)
    _answered_at: float | None = attrs.field(default=None, init=False)

    @classmethod
    def of(cls, connection: Connection, restarts: RestartPolicy, *, is_awaited: bool) -> "Brokers":
        return cls(
            ask=lambda: ask_brokers(connection, _ASK_SECONDS), restarts=restarts, is_awaited=is_awaited
        )

    def answer(self) -> BrokerAnswer:
        """Return what the brokers answer, or have answered in the last seconds."""
        if self._answered_at is None or time.monotonic() - self._answered_at >= self.known_seconds:
            self._answer = self.ask()
            self._answered_at = time.monotonic()
        return self._answer


class OutageWait:
    """How one query waits in an outage, with growing pauses.

    The client's thread calls `begin` and `extend`, the query's thread calls `end`.
    """

    def __init__(self, query: str, brokers: Brokers) -> None:
        self._query, self._brokers = query, brokers
        self._pauses = 0
        self._is_waiting = False
        self._began_at = self._logged_at = 0.0

    def begin(self, failure: Failure | None) -> int | None:
        """Return how many milliseconds to wait after a failure; None = it belongs to no outage and counts."""
        brokers = self._brokers
        self._is_waiting = brokers.is_awaited and belongs_to_outage(failure, brokers.answer)
        if not self._is_waiting:
            return None
        if not self._pauses:
            self._began_at = self._logged_at = time.monotonic()
        return self._next_pause_ms()

    def extend(self) -> int | None:
        """Return how many milliseconds to wait for longer; None = the query may be restarted.

        It is not started while no broker answers: each start would wait for its requests to time out.
        """
        if not self._is_waiting or self._brokers.answer() is not BrokerAnswer.NONE:
            self._is_waiting = False
            return None
        if (now := time.monotonic()) - self._logged_at >= _LOG_SECONDS:
            self._logged_at = now
            _log.warning(
                "query still waits until brokers answer",
                query=self._query,
                seconds=round(now - self._began_at),
            )
        return self._next_pause_ms()

    def end(self) -> None:
        """Begin with the shortest pause again: records were committed."""
        self._pauses = 0

    def _next_pause_ms(self) -> int:
        self._pauses += 1
        return self._brokers.restarts.pause_ms(self._pauses)
