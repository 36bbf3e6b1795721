"""Connections to several brokers for one task: which broker to ask, and when to ask again."""

import time
from collections import defaultdict
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import ExitStack, contextmanager
from typing import Self, TypeVar

from confluent_kafka import KafkaError

from headwater.kafka.broker_connection import BrokerConnection, Message, UnknownRequestError, failure_message
from headwater.kafka.connection_settings import ConnectionSettings
from headwater.kafka.group_messages import FIND_COORDINATOR, find_coordinator, read_coordinators
from headwater.kafka.kafka_errors import ClientMessage, is_moving
from headwater.kafka.login import Login, LoginRefusedError
from headwater.kafka.wire import LateResponseError, ResponseReader

T = TypeVar("T")
Ask = Callable[[BrokerConnection, Sequence[str]], Sequence[tuple[str, T | KafkaError]]]
_PAUSE_SECONDS = 0.1
_LONGEST_PAUSE_SECONDS = 1.0
_SHORTEST_TRY_SECONDS = 5.0
"""A broker that does not answer may have lost its role meanwhile: then another one is asked."""
_REQUEST_IDS = 1_000
"""Groups in one request: an answer about more may exceed the limits of brokers."""


class NoAnswerError(Exception):
    """No answer came in time. `messages` name the connections that failed, as librdkafka's log would."""

    def __init__(self, messages: Sequence[ClientMessage]) -> None:
        super().__init__("; ".join(message.text for message in messages))
        self.messages = tuple(messages)


class BrokerSession:
    """Connections that are opened when they are needed; use it in a `with` statement and in one thread."""

    def __init__(self, settings: ConnectionSettings, login: Login, timeout_seconds: float) -> None:
        self._settings = settings
        self._login = login
        self._timeout = timeout_seconds
        self._deadline = 0.0
        self._try_seconds = max(_SHORTEST_TRY_SECONDS, timeout_seconds / 3)
        self._stack = ExitStack()
        self._connections: dict[str, BrokerConnection] = {}
        self._failures: dict[str, ClientMessage] = {}
        self._is_answered = False

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self._stack.close()

    def any_broker(self, addresses: Sequence[str] = ()) -> BrokerConnection:
        """Return a connection to a broker that answers; raises `OSError` if none does.

        `addresses` are tried in their order, by default the bootstrap servers.
        """
        for connected in self._connections.values():
            return connected
        reason = OSError("no broker is named")
        for server in addresses or self._settings.bootstrap_servers:
            try:
                return self.connect(server)
            except (LoginRefusedError, UnknownRequestError):
                raise
            except OSError as error:
                reason = error
        raise reason

    def connect(self, address: str) -> BrokerConnection:
        """Return the connection to a broker; raises `OSError`."""
        if address not in self._connections:
            with self._noting_failure(address):
                opened = BrokerConnection(self._settings, address, self._seconds_left(), self._login)
            self._connections[address] = self._stack.enter_context(opened)
        return self._connections[address]

    def request(
        self, connected: BrokerConnection, message: Message, body: bytes, read: Callable[[ResponseReader], T]
    ) -> T:
        """Return the answer of a broker; raises `OSError`, and forgets the connection.

        An answer that has begun may take the whole timeout: about 1,000 topics it has 3 MB, which a slow link
        does not transfer in one try.
        """
        remaining = self._deadline - time.monotonic()
        with self._noting_failure(connected.address):
            try:
                return connected.request(message, body, self._seconds_left(), read, whole_seconds=remaining)
            except LateResponseError:
                self._try_seconds *= 2  # the broker may be slow: the next try may take the rest of the time
                raise

    def retry(self, ask: Callable[[], T | KafkaError]) -> T | KafkaError:
        """Return the answer of `ask`, which is called again while brokers start or do not answer.

        Raises:
            NoAnswerError: None came in time (each call has the whole timeout), or the login is refused.
        """
        self._deadline = time.monotonic() + self._timeout
        pause = _PAUSE_SECONDS
        while True:
            answer: T | KafkaError | None = None
            try:
                answer = ask()
            except (LoginRefusedError, UnknownRequestError):
                raise NoAnswerError(tuple(self._failures.values())) from None
            except OSError:
                pass
            if answer is not None and not is_moving(answer):
                return answer
            self._check_deadline()
            time.sleep(pause)
            pause = min(2 * pause, _LONGEST_PAUSE_SECONDS)

    def at_coordinators(
        self, ids: Sequence[str], ask: Ask[T], *, tolerates_unavailable: bool = False
    ) -> Mapping[str, T | KafkaError]:
        """Return group → answer of its coordinator, in the order of `ids`; raises `NoAnswerError`.

        With `tolerates_unavailable`, the answer for a group is COORDINATOR_NOT_AVAILABLE if the cluster
        answers and the group's coordinator does not.
        """
        found: dict[str, T | KafkaError] = {}
        self._is_answered = False

        def ask_remaining() -> bool | KafkaError:
            remaining = [id_ for id_ in ids if id_ not in found]
            for start in range(0, len(remaining), _REQUEST_IDS):
                self._ask_coordinators(remaining[start : start + _REQUEST_IDS], ask, found)
            is_complete = all(id_ in found for id_ in ids)
            return is_complete or KafkaError(KafkaError.COORDINATOR_NOT_AVAILABLE)

        try:
            self.retry(ask_remaining)
        except NoAnswerError as error:
            is_final = any(message.is_final for message in error.messages)
            if not tolerates_unavailable or not self._is_answered or is_final:
                raise
        unavailable = KafkaError(KafkaError.COORDINATOR_NOT_AVAILABLE)
        return {id_: found.get(id_, unavailable) for id_ in ids}

    def _ask_coordinators(self, ids: Sequence[str], ask: Ask[T], found: dict[str, T | KafkaError]) -> None:
        """Add the answers that are final to `found`."""
        by_address: dict[str, list[str]] = defaultdict(list)
        answered = self.request(self.any_broker(), FIND_COORDINATOR, find_coordinator(ids), read_coordinators)
        self._is_answered = True
        for id_, coordinator in answered:
            if isinstance(coordinator, str):
                by_address[coordinator].append(id_)
            elif not is_moving(coordinator):
                found[id_] = coordinator
        failure: OSError | None = None
        for address, its_ids in by_address.items():
            try:
                answers = ask(self.connect(address), its_ids)
            except (LoginRefusedError, UnknownRequestError):
                raise
            except OSError as error:  # the other coordinators may answer
                failure = error
                continue
            found |= {id_: answer for id_, answer in answers if not is_moving(answer)}
        if failure is not None:
            raise failure

    def _seconds_left(self) -> float:
        return max(0.1, min(self._try_seconds, self._deadline - time.monotonic()))

    def _check_deadline(self) -> None:
        messages = tuple(self._failures.values())
        if time.monotonic() > self._deadline or any(message.is_final for message in messages):
            raise NoAnswerError(messages)

    @contextmanager
    def _noting_failure(self, address: str) -> Iterator[None]:
        """Keep the failure of a connection for the message, and do not use the connection again."""
        try:
            yield
        except UnknownRequestError as error:
            self._failures[address] = ClientMessage(str(error))
            raise
        except OSError as error:
            is_refused = isinstance(error, LoginRefusedError)
            code = KafkaError.SASL_AUTHENTICATION_FAILED if is_refused else None
            self._failures[address] = failure_message(address, error, code)
            if (connected := self._connections.pop(address, None)) is not None:
                connected.__exit__()
            raise
        self._failures.pop(address, None)
