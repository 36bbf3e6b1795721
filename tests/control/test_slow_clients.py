"""Slow and malformed requests over real sockets: each has a deadline, and the health is always answered."""

import json
import socket
import threading
import time
from collections.abc import Iterator, Mapping
from contextlib import ExitStack, contextmanager
from typing import Any

import pytest
from structlog.testing import capture_logs

from headwater.control import Access, ControlServer, Route, Surface
from headwater.control.server import MOST, MOST_OF_ADDRESS, Connection, network_of, superfluous_connection
from headwater.toolchain.broker.readiness import until
from tests.control.conftest import HttpClient

_SECONDS = 60.0
_SHORT_SECONDS = 2.0
"""For a request that does not end; a busy machine has to read in this time what was sent of it."""
_HEADERS = b"POST /control/echo HTTP/1.1\r\nHost: localhost\r\nContent-Type: application/json\r\n"


class Endpoint:
    """An endpoint whose control route can be made to wait."""

    def __init__(self, request_seconds: float) -> None:
        self.called = threading.Semaphore(0)
        self.release = threading.Event()
        surface = Surface.create("client-1").with_route(Route("/control/echo", self._echo))
        surface = surface.with_route(Route("/control/wait", self._wait))
        self.server = ControlServer(surface, Access("127.0.0.1", 0), request_seconds)

    @property
    def client(self) -> HttpClient:
        return HttpClient(self.server.url)

    def connect(self) -> socket.socket:
        host, port = self.server.url.removeprefix("http://").split(":")
        return socket.create_connection((host, int(port)), _SECONDS)

    def _echo(self, body: Mapping[str, Any]) -> Mapping[str, Any]:
        return {"echo": body}

    def _wait(self, body: Mapping[str, Any]) -> Mapping[str, Any]:
        self.called.release()
        assert self.release.wait(_SECONDS)
        return body


@contextmanager
def _endpoint(request_seconds: float = 10.0) -> Iterator[Endpoint]:
    endpoint = Endpoint(request_seconds)
    with endpoint.server:
        try:
            yield endpoint
        finally:
            endpoint.release.set()


def _answer(connection: socket.socket) -> tuple[int, Any]:
    """Return status and JSON of the answer; (0, None) if the connection was closed without one."""
    with connection.makefile("rb") as stream:
        content = stream.read()
    if not content:
        return 0, None
    head, _, body = content.partition(b"\r\n\r\n")
    return int(head.split()[1]), json.loads(body)


def _send_slowly(connection: socket.socket, parts: Iterator[bytes]) -> None:
    """Send a byte now and then until the endpoint closes the connection."""
    try:
        for part in parts:
            connection.sendall(part)
            time.sleep(0.02)
    except OSError:
        pass


def _forever(start: bytes) -> Iterator[bytes]:
    yield start
    while True:
        yield b"a"


@pytest.mark.parametrize(
    "start", [b"G", b"GET /status HTTP/1.1\r\nX-Slow: ", _HEADERS + b"Content-Length: 9999\r\n\r\n"]
)
def test_request_has_one_deadline_also_if_bytes_keep_arriving(start: bytes) -> None:
    with _endpoint(request_seconds=0.5) as endpoint, endpoint.connect() as connection:
        sender = threading.Thread(target=_send_slowly, args=(connection, _forever(start)))
        sender.start()
        sender.join(_SECONDS)
        assert not sender.is_alive()


def test_health_is_answered_while_many_connections_send_slowly() -> None:
    with _endpoint(request_seconds=600) as endpoint, ExitStack() as stack:
        for number in range(3 * MOST):
            connection = stack.enter_context(endpoint.connect())
            connection.sendall(b"GET /status HTTP/1.1\r\nX-Slow: a")
            if number % 16 == 0:
                assert endpoint.client.get("/health/live").status == 200
        for path in ("/health/live", "/health/ready", "/metrics", "/status"):
            assert endpoint.client.get(path).status == 200


def test_connections_of_one_address_are_limited() -> None:
    with _endpoint(request_seconds=600) as endpoint, ExitStack() as stack:
        first = [stack.enter_context(endpoint.connect()) for _ in range(MOST_OF_ADDRESS)]
        assert endpoint.client.get("/health/live").status == 200
        first[0].settimeout(_SECONDS)
        assert first[0].recv(1) == b""  # the oldest one was closed for the probe
        first[-1].sendall(b"GET /health/live HTTP/1.1\r\n\r\n")
        assert _answer(first[-1])[0] == 200


def test_reading_and_health_are_answered_while_control_waits() -> None:
    """The removal of a stream thread may wait for the end of a batch, for minutes."""
    with _endpoint() as endpoint, ExitStack() as stack:
        waiting = []
        request = _HEADERS.replace(b"echo", b"wait") + b"Content-Length: 2\r\n\r\n{}"
        for _ in range(8):
            connection = stack.enter_context(endpoint.connect())
            connection.sendall(request)
            waiting.append(connection)
            assert endpoint.called.acquire(timeout=_SECONDS)
        refused = stack.enter_context(endpoint.connect())
        refused.sendall(request)
        assert _answer(refused) == (503, {"error": "The client is busy. Try again."})
        for path in ("/status", "/metrics", "/health/live", "/health/ready"):
            assert endpoint.client.get(path).status == 200
        endpoint.release.set()
        assert {_answer(connection)[0] for connection in waiting} == {200}
        assert until(lambda: _is_answered(endpoint, stack, request), _SECONDS)


def _is_answered(endpoint: Endpoint, stack: ExitStack, request: bytes) -> bool:
    connection = stack.enter_context(endpoint.connect())
    connection.sendall(request)
    return _answer(connection)[0] == 200


@pytest.mark.parametrize("close", [True, False])
def test_unfinished_body_is_a_timeout(close: bool) -> None:  # noqa: FBT001 - parameter of a test
    with (
        capture_logs() as lines,
        _endpoint(request_seconds=_SHORT_SECONDS) as endpoint,
        endpoint.connect() as connection,
    ):
        connection.sendall(_HEADERS + b"Content-Length: 100\r\n\r\n{")
        if close:
            connection.shutdown(socket.SHUT_WR)
        assert _answer(connection) == (408, {"error": "The request was not complete in time."})
    assert lines == []


def test_unfinished_headers_are_a_timeout() -> None:
    with _endpoint(request_seconds=_SHORT_SECONDS) as endpoint, endpoint.connect() as connection:
        connection.sendall(b"GET /status HTTP/1.1\r\nHost: localhost\r\n")
        assert _answer(connection)[0] == 408


def test_connection_reset_in_the_body_is_not_an_error_of_the_client() -> None:
    with capture_logs() as lines, _endpoint() as endpoint:
        with endpoint.connect() as connection:
            connection.sendall(_HEADERS + b"Content-Length: 100\r\n\r\n{")
            connection.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, b"\1\0\0\0\0\0\0\0")
        assert until(lambda: not _answering(), _SECONDS)
        assert endpoint.client.get("/health/live").status == 200
    assert lines == []


def _answering() -> bool:
    return any("process_request_thread" in thread.name for thread in threading.enumerate())


_TOO_LONG = (413, "The body is longer than 65536 bytes.")


@pytest.mark.parametrize(
    ("headers", "status", "error"),
    [
        (("Content-Length: 0000000000300000000",), *_TOO_LONG),
        ((f"Content-Length: {'9' * 5_000}",), *_TOO_LONG),
        (("Content-Length: 65537",), *_TOO_LONG),
        (("Content-Length: -2",), 400, "Content-Length is not one number."),
        (("Content-Length: +2",), 400, "Content-Length is not one number."),
        (("Content-Length: ",), 400, "Content-Length is not one number."),
        (("Content-Length: 2, 2",), 400, "Content-Length is not one number."),
        (("Content-Length: 2", "Content-Length: 2"), 400, "Content-Length is not one number."),
        (("Content-Length: 2", "content-length: 300"), 400, "Content-Length is not one number."),
        (
            ("Content-Length: 2", "Transfer-Encoding: chunked"),
            400,
            "Send Content-Length or Transfer-Encoding, not both.",
        ),
        (("Transfer-Encoding: chunked",), 411, "Send Content-Length instead of Transfer-Encoding."),
        ((), 411, "Content-Length header required."),
    ],
)
def test_wrong_lengths_are_refused_before_the_body_is_read(
    headers: tuple[str, ...], status: int, error: str
) -> None:
    with _endpoint() as endpoint, endpoint.connect() as connection:
        connection.sendall(_HEADERS + "".join(f"{line}\r\n" for line in headers).encode() + b"\r\n")
        assert _answer(connection) == (status, {"error": error})


@pytest.mark.parametrize("length", ["2", "0002", f"{'0' * 5_000}2"])
def test_leading_zeros_do_not_change_a_length(length: str) -> None:
    with _endpoint() as endpoint, endpoint.connect() as connection:
        connection.sendall(_HEADERS + f"Content-Length: {length}\r\n\r\n{{}}".encode())
        assert _answer(connection) == (200, {"echo": {}})


def _connections(*addresses: str, answering: tuple[int, ...] = ()) -> list[Connection]:
    anything: Any = None
    return [
        Connection(anything, address, is_answering=number in answering)
        for number, address in enumerate(addresses)
    ]


@pytest.mark.parametrize(
    ("addresses", "answering", "closed"),
    [
        ("aab", (), None),
        ("abcd", (), None),
        ("abcde", (), 0),
        ("abcde", (0, 1), 2),
        ("baaa", (), 1),
        ("baaa", (1,), 2),
        ("baaa", (1, 2, 3), None),
        ("aabbb", (), 2),
    ],
)
def test_the_oldest_connection_that_is_not_answering_is_closed(
    addresses: str, answering: tuple[int, ...], closed: int | None
) -> None:
    connections = _connections(*addresses, answering=answering)
    found = superfluous_connection(connections, most=4, most_of_address=2)
    assert found is (None if closed is None else connections[closed])


@pytest.mark.parametrize(
    ("hosts", "same"),
    [
        (("10.0.0.1", "10.0.0.1"), True),
        (("10.0.0.1", "10.0.0.2"), False),
        (("::ffff:10.0.0.1", "10.0.0.1"), True),
        (("2001:db8::1", "2001:db8::ffff:0:1"), True),
        (("2001:db8::1", "2001:db8:0:1::1"), False),
        (("fe80::1%eth0", "fe80::2%eth0"), True),
    ],
)
def test_an_ipv6_network_is_one_address(hosts: tuple[str, str], same: bool) -> None:  # noqa: FBT001 - same
    first, second = map(network_of, hosts)
    assert (first == second) is same
