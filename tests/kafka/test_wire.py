"""Bytes that are no answer of Kafka are refused, and never read beyond their end."""

import contextlib
import socket
import struct
import threading
from collections.abc import Callable, Iterator
from types import SimpleNamespace
from typing import TYPE_CHECKING, cast

import pytest
from hypothesis import given
from hypothesis import strategies as st

from headwater.kafka import Connection, wire
from headwater.kafka.broker_connection import failure_message
from headwater.kafka.broker_session import BrokerSession, NoAnswerError
from headwater.kafka.group_client import GroupClient
from headwater.kafka.group_messages import (
    assigned_topics,
    classic_groups,
    cluster_description,
    committed_topics,
    consumer_groups,
    read_coordinators,
)
from headwater.kafka.kafka_errors import Answering, unanswered_request
from headwater.kafka.login import Login
from headwater.kafka.topic_settings import DESCRIBE_CONFIGS
from headwater.kafka.wire import (
    LateResponseError,
    ResponseReader,
    compact_array,
    compact_text,
    receive_response,
    topic_id_bytes,
    unsigned_varint,
)

if TYPE_CHECKING:
    from headwater.kafka.broker_connection import BrokerConnection

READERS = (classic_groups, consumer_groups, read_coordinators, committed_topics, cluster_description)


@given(st.integers(0, 2**35 - 1))
def test_numbers_are_read_as_written(number: int) -> None:
    assert ResponseReader(unsigned_varint(number)).unsigned_varint() == number


@given(st.lists(st.text()))
def test_texts_are_read_as_written(texts: list[str]) -> None:
    reader = ResponseReader(compact_array(map(compact_text, texts)))
    assert list(reader.compact_array(reader.compact_text)) == texts


@pytest.mark.parametrize("read", READERS)
@given(data=st.binary(max_size=200))
def test_any_bytes_are_read_or_refused(read: Callable[[ResponseReader], object], data: bytes) -> None:
    with contextlib.suppress(ValueError):
        read(ResponseReader(data))


@pytest.mark.parametrize("data", [b"\xff" * 6, b"\x05\x00", b""])
def test_numbers_without_end_and_short_texts_are_refused(data: bytes) -> None:
    with pytest.raises(ValueError, match=r"too (short|long)"):
        ResponseReader(data).compact_text()


def test_topic_ids_are_those_of_kafka() -> None:
    assert topic_id_bytes("AAAAAAAAAAAAAAAAAAAAAQ") == b"\x00" * 15 + b"\x01"


def test_assigned_topics_are_read() -> None:
    assignment = struct.pack(">hih", 3, 2, 2) + b"in" + struct.pack(">iii", 2, 0, 1)
    assignment += struct.pack(">h", 3) + b"out" + struct.pack(">i", 0) + b"rest"
    assert assigned_topics(assignment) == {"in", "out"}
    assert assigned_topics(assignment[:12]) == frozenset()


class SlowSocket:
    """Gives one byte per second of `now`, without an end."""

    def __init__(self) -> None:
        self.now = 100.0
        self.timeouts: list[float] = []

    def settimeout(self, seconds: float) -> None:
        self.timeouts.append(seconds)

    def recv(self, _: int) -> bytes:
        self.now += 1
        return b"\x00" if self.now < 104 else b"\x40"


def test_the_deadline_limits_the_whole_response(monkeypatch: pytest.MonkeyPatch) -> None:
    slow = SlowSocket()
    monkeypatch.setattr(wire, "time", SimpleNamespace(monotonic=lambda: slow.now))
    with pytest.raises(TimeoutError):
        receive_response(cast("socket.socket", slow), 1, begin_by=105.0, end_by=110.0, pause_seconds=5.0)
    assert slow.timeouts == [5.0, 4.0, 3.0, 2.0, 5.0, 5.0, 4.0, 3.0, 2.0, 1.0]
    with pytest.raises(TimeoutError):
        receive_response(cast("socket.socket", slow), 1, begin_by=112.0, end_by=200.0, pause_seconds=5.0)


class SlowConnection:
    """A connection to a broker that needs `needed` seconds to begin its answer."""

    address = "kafka:9092"

    def __init__(self, needed: float) -> None:
        self.needed = needed
        self.tries: list[float] = []

    def request(self, *given: object, whole_seconds: float) -> str:
        assert whole_seconds > 0
        seconds = cast("float", given[2])
        self.tries.append(seconds)
        if seconds < self.needed:
            raise LateResponseError
        return "answer"


def test_a_broker_that_was_late_gets_more_time() -> None:
    """An answer that takes 6 s is not requested in vain three times, for 5 s each."""
    settings = Connection(bootstrap_servers=("kafka:9092",))
    session, slow = BrokerSession(settings, Login(settings), 60.0), SlowConnection(30.0)
    connected = cast("BrokerConnection", slow)
    answer = session.retry(lambda: session.request(connected, DESCRIBE_CONFIGS, b"", lambda _: ""))
    assert answer == "answer"
    assert [round(seconds) for seconds in slow.tries] == [20, 40]


def test_a_late_answer_is_no_failed_connection() -> None:
    late = failure_message("kafka:9092", LateResponseError())
    found = unanswered_request("list topics", Answering("kafka:9092", ("kafka:9092",)), [late], 15.0).found
    assert found == "kafka:9092 answers, and names kafka:9092; no response in time from kafka:9092"


class RecordedConnection:
    """A connection that keeps how long an answer may take."""

    address = "kafka:9092"
    seconds = whole_seconds = 0.0

    def request(self, *given: object, whole_seconds: float) -> str:
        self.seconds, self.whole_seconds = cast("float", given[2]), whole_seconds
        return "answer"


def test_an_answer_that_has_begun_may_take_the_whole_timeout() -> None:
    """A third of it is the limit for the first bytes: then another broker is asked."""
    settings = Connection(bootstrap_servers=("kafka:9092",))
    session, connection = BrokerSession(settings, Login(settings), 60.0), RecordedConnection()
    connected = cast("BrokerConnection", connection)
    answer = session.retry(lambda: session.request(connected, DESCRIBE_CONFIGS, b"", lambda _: ""))
    assert answer == "answer"
    assert connection.seconds <= 20.0 < connection.whole_seconds


@contextlib.contextmanager
def _server(answer: Callable[[socket.socket], None]) -> Iterator[str]:
    """Serve connections one after another, each with `answer`; return the address."""
    with socket.create_server(("127.0.0.1", 0)) as server:

        def serve() -> None:
            while True:
                try:
                    connected, _ = server.accept()
                except OSError:
                    return
                with connected, contextlib.suppress(OSError):
                    answer(connected)

        threading.Thread(target=serve, daemon=True).start()
        yield f"127.0.0.1:{server.getsockname()[1]}"
        server.shutdown(socket.SHUT_RDWR)


@pytest.fixture
def slow_server() -> Iterator[str]:
    """A server that sends a response byte by byte until the client leaves."""

    def answer(connected: socket.socket) -> None:
        connected.sendall(b"\x00\x00\x10\x00")
        while True:
            connected.sendall(b"\x00")
            threading.Event().wait(0.01)

    with _server(answer) as address:
        yield address


def test_a_server_that_sends_byte_by_byte_is_not_awaited(slow_server: str) -> None:
    with pytest.raises(NoAnswerError, match="No response in time"):
        GroupClient(Connection(bootstrap_servers=(slow_server,)), 0.3).topic_configs([["orders"]], ())


@pytest.fixture
def strange_server() -> Iterator[str]:
    """A server that answers every connection as if it spoke HTTP, and closes it."""

    def answer(connected: socket.socket) -> None:
        connected.recv(1000)
        connected.sendall(b"HTTP/1.1 400 Bad Request\r\n\r\n")

    with _server(answer) as address:
        yield address


def test_a_server_that_is_not_kafka_is_named(strange_server: str) -> None:
    with pytest.raises(NoAnswerError, match="not a Kafka broker"):
        GroupClient(Connection(bootstrap_servers=(strange_server,)), 0.3).describe(["orders"])
