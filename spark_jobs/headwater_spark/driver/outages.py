"""Outages of the brokers: a query that fails in one waits for the brokers, and uses up no restart.

A failure belongs to an outage if it is a missing answer of the brokers, and none of them refuses this client:
the client libraries report a refused login or TLS connection as a missing answer, too. While a broker
answers, only some of them may be stopped, or the executors cannot reach them: then a query waits no longer
than `task.timeout.ms` (KIP-572).
"""

import math
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
_NEW_OUTAGE_SECONDS = 600.0
"""A failure so long after the last one begins a new outage, also if no record was committed in between."""
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


def outage_answer(failure: Failure | None, ask: Callable[[], BrokerAnswer]) -> BrokerAnswer | None:
    """Return what the brokers answer in an outage; None = the failure belongs to none, and counts.

    `ask` asks the brokers on new connections. If one answers, only some may be stopped: a coordinator, or
    the leader of a partition.
    """
    if failure is None or not is_unanswered(failure):
        return None
    answer = ask()
    return None if answer is BrokerAnswer.REFUSED else answer


@attrs.define(kw_only=True, eq=False)
class Brokers:
    """Asks the brokers in an outage; the client's thread calls all methods.

    `is_awaited`: queries wait for the brokers. Otherwise all failures count, because
    `uncaught.exception.handler` decides about them. `partial_seconds` is how long a query waits although a
    broker answers. An answer is used again for `known_seconds`: all queries of an application fail at about
    the same time.
    """

    ask: Callable[[], BrokerAnswer]
    restarts: RestartPolicy
    partial_seconds: float
    is_awaited: bool = True
    known_seconds: float = _KNOWN_SECONDS
    _answer: BrokerAnswer = attrs.field(default=BrokerAnswer.ANSWERED, init=False)
    _answered_at: float | None = attrs.field(default=None, init=False)

    @classmethod
    def of(
        cls, connection: Connection, restarts: RestartPolicy, *, partial_seconds: float, is_awaited: bool
    ) -> "Brokers":
        return cls(
            ask=lambda: ask_brokers(connection, _ASK_SECONDS),
            restarts=restarts,
            partial_seconds=partial_seconds,
            is_awaited=is_awaited,
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
        self._began_at = self._logged_at = self._last_at = -math.inf
        self._answering_since: float | None = None
        """Since when a broker has answered at each failure."""

    def begin(self, failure: Failure | None) -> int | None:
        """Return how many milliseconds to wait after a failure; None = it belongs to no outage and counts."""
        brokers, now = self._brokers, time.monotonic()
        if now - self._last_at >= _NEW_OUTAGE_SECONDS:
            self.end()
        self._last_at = now
        answer = outage_answer(failure, brokers.answer) if brokers.is_awaited else None
        if answer is not BrokerAnswer.ANSWERED:
            self._answering_since = None
        elif self._answering_since is None:
            self._answering_since = now
        self._is_waiting = answer is not None and not self._has_waited_long(now)
        if not self._is_waiting:
            return None
        if not self._pauses:
            self._began_at = self._logged_at = now
        return self._next_pause_ms()

    def extend(self) -> int | None:
        """Return how many milliseconds to wait for longer; None = the query may be restarted.

        It is not started while no broker answers: each start would wait for its requests to time out.
        """
        if not self._is_waiting or self._brokers.answer() is not BrokerAnswer.NONE:
            self._is_waiting = False
            return None
        self._answering_since = None
        self._last_at = now = time.monotonic()
        if now - self._logged_at >= _LOG_SECONDS:
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
        self._answering_since = None

    def _has_waited_long(self, now: float) -> bool:
        """Return whether a broker has answered for so long that the failure may have another cause."""
        since = self._answering_since
        return since is not None and now - since >= self._brokers.partial_seconds

    def _next_pause_ms(self) -> int:
        self._pauses += 1
        return self._brokers.restarts.pause_ms(self._pauses)
