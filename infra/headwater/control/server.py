"""The HTTP server of agent and runtime; slow and superfluous clients are disconnected.

A client that sends its request slowly, or none, keeps a connection and a thread. If the endpoint then refused
new connections, such clients could keep probes from reading the health. A probe sends its request at once, so
the oldest connection whose request is not complete is closed instead.
"""

import socket
import time
from collections.abc import Iterable, Mapping
from contextlib import suppress
from http import HTTPStatus
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from io import BufferedReader, RawIOBase
from ipaddress import IPv6Address, ip_address
from socketserver import TCPServer
from threading import BoundedSemaphore, Lock, Thread
from typing import Any, Self

import attrs

from headwater.control.access import Access
from headwater.control.answers import Answer, Request, answer_refusal, answer_request, too_slow
from headwater.control.surface import Refused, Surface
from headwater.model.problems import Problem, ProblemCode, ProblemsError

MOST = 64
MOST_OF_ADDRESS = 32
"""Less than `MOST`: an address with many connections loses its own, other addresses lose none."""
_NETWORK_BITS = 64
"""A host can have all addresses of an IPv6 network with a prefix of this length."""


@attrs.define(eq=False)
class Connection:
    """An accepted connection. `is_answering`: the request is complete, and the answer is not sent yet."""

    socket: socket.socket
    address: str
    is_answering: bool = False


class Connections:
    """All open connections, the oldest first; any thread may call any method."""

    def __init__(self) -> None:
        self._open: dict[socket.socket, Connection] = {}
        self._lock = Lock()

    def add(self, accepted: socket.socket, host: str) -> None:
        """Add a connection from the IP address `host`; close another one if there are too many."""
        with self._lock:
            self._open[accepted] = Connection(accepted, network_of(host))
            excess = superfluous_connection(self._open.values(), MOST, MOST_OF_ADDRESS)
            if excess is not None:
                del self._open[excess.socket]
        if excess is not None:
            with suppress(OSError):  # its client has closed it
                excess.socket.shutdown(socket.SHUT_RDWR)  # ends the wait of its thread, which closes it

    def begin_answer(self, accepted: socket.socket) -> None:
        """Keep a connection, whose request is complete, until its answer is sent."""
        with self._lock:
            if (connection := self._open.get(accepted)) is not None:
                connection.is_answering = True

    def end_answer(self, accepted: socket.socket) -> None:
        """Let the connection be closed if its client reads the answer slowly."""
        with self._lock:
            if (connection := self._open.get(accepted)) is not None:
                connection.is_answering = False

    def remove(self, accepted: socket.socket) -> None:
        with self._lock:
            self._open.pop(accepted, None)


def superfluous_connection(
    connections: Iterable[Connection], most: int, most_of_address: int
) -> Connection | None:
    """Return the connection to close after the last of `connections` was added; None: there is room for it.

    It is the oldest connection that is not answering: of the same address if that has too many, else of all.
    """
    found = tuple(connections)
    newest = found[-1]
    of_address = [each for each in found if each.address == newest.address]
    if len(of_address) > most_of_address:
        return next((each for each in of_address if not each.is_answering), None)
    return next((each for each in found if not each.is_answering), None) if len(found) > most else None


def network_of(host: str) -> str:
    """Return what counts as one address: an IPv4 address, or an IPv6 network."""
    try:
        address = ip_address(host.partition("%")[0])
    except ValueError:
        return host
    if not isinstance(address, IPv6Address):
        return str(address)
    if address.ipv4_mapped is not None:
        return str(address.ipv4_mapped)
    return f"{IPv6Address(int(address) >> _NETWORK_BITS << _NETWORK_BITS)}/{_NETWORK_BITS}"


_AT_ONCE = 16
"""Requests that read, other than health, and are answered at the same time."""
_CONTROLS_AT_ONCE = 8
"""Control may wait for a batch to end: it must not keep others from reading."""
_REQUEST_SECONDS = 10.0
"""For the whole request, and for the whole answer."""
_POLL_SECONDS = 0.1
"""How often the idle server checks whether to stop."""
_LOOPBACK = {"0.0.0.0": "127.0.0.1", "::": "::1"}  # noqa: S104 - the loopback interface is one of all


class ControlServer:
    """Serves a surface in threads of its own until it is closed; also a context manager.

    `GET` `/metrics`, `/health/live`, `/health/ready`, `/status`; `POST` the routes of the surface.
    """

    def __init__(self, surface: Surface, access: Access, request_seconds: float = _REQUEST_SECONDS) -> None:
        self._surface = surface
        self._access = access
        self._request_seconds = request_seconds
        self._server: _Server | None = None

    @property
    def url(self) -> str:
        """Return the URL for programs on this machine; raises `RuntimeError` before `start`."""
        if self._server is None:
            raise RuntimeError("the endpoint was not started")
        host = _LOOPBACK.get(self._access.host, self._access.host)
        return f"http://{f'[{host}]' if ':' in host else host}:{self._server.server_address[1]}"

    def start(self) -> Self:
        """Listen and return; raises `ProblemsError` (InvalidConfig) if the address is not available."""
        try:
            self._server = _Server(self._surface, self._access, self._request_seconds)
        except OSError as error:
            raise ProblemsError([_unusable_address(self._access, error)]) from None
        Thread(target=self._server.serve_forever, args=(_POLL_SECONDS,), name="control", daemon=True).start()
        return self

    def close(self) -> None:
        if self._server is not None:
            self._server.shutdown()
            self._server.server_close()
            self._server = None

    def __enter__(self) -> Self:
        return self.start()

    def __exit__(self, *_: object) -> None:
        self.close()


class _Server(ThreadingHTTPServer):
    daemon_threads = True  # a slow request does not keep the client from ending
    block_on_close = False
    request_queue_size = 64

    def __init__(self, surface: Surface, access: Access, request_seconds: float) -> None:
        self.surface = surface
        self.access = access
        self.request_seconds = request_seconds
        self.connections = Connections()
        self.reading = BoundedSemaphore(_AT_ONCE)
        self.controlling = BoundedSemaphore(_CONTROLS_AT_ONCE)
        self.address_family = socket.AF_INET6 if ":" in access.host else socket.AF_INET
        super().__init__((access.host, access.port), _Handler)

    def server_bind(self) -> None:
        TCPServer.server_bind(self)  # HTTPServer's method sends a DNS request for its own name

    def process_request(self, request: Any, client_address: Any) -> None:  # noqa: ANN401 - as in the library
        self.connections.add(request, str(client_address[0]))
        super().process_request(request, client_address)

    def shutdown_request(self, request: Any) -> None:  # noqa: ANN401 - as in the library
        self.connections.remove(request)
        super().shutdown_request(request)

    def handle_error(self, request: Any, client_address: Any) -> None:  # noqa: ANN401 - as in the library
        """Ignore that the client closed the connection; `answer_request` logs its own errors."""


class _Handler(BaseHTTPRequestHandler):
    server: _Server
    server_version = "headwater"
    sys_version = ""

    def setup(self) -> None:
        super().setup()
        self._deadline = time.monotonic() + self.server.request_seconds
        self._slot: BoundedSemaphore | None = None
        self.rfile.close()
        self.rfile = BufferedReader(_DeadlineReader(self.connection, self._deadline))

    def finish(self) -> None:
        self._release()
        super().finish()

    def parse_request(self) -> bool:
        try:
            return super().parse_request()
        except TimeoutError:
            self.command, self.request_version = "", self.protocol_version
            self._send(answer_refusal(too_slow()))
            return False

    def do_GET(self) -> None:
        request = Request(
            self.command,
            self.path,
            _join_headers(self.headers.items()),
            self._read_body,
            str(self.client_address[0]),
            self._begin_answer,
        )
        self._send(answer_request(request, self.server.surface, self.server.access))

    def do_HEAD(self) -> None:
        self.do_GET()

    def do_POST(self) -> None:
        self.do_GET()

    def log_message(self, format: str, *args: object) -> None:  # noqa: A002 - the library's name
        """Log no requests: probes and scrapes arrive every few seconds."""

    def _read_body(self, size: int) -> bytes:
        try:
            body = self.rfile.read(size)
        except OSError:
            raise too_slow() from None
        if len(body) < size:
            raise too_slow()
        return body

    def _begin_answer(self) -> None:
        """Reserve one of a few threads. Health needs none: it is answered also when all others are busy."""
        slot = self.server.controlling if self.command == "POST" else self.server.reading
        if not slot.acquire(blocking=False):
            raise Refused("The client is busy. Try again.", HTTPStatus.SERVICE_UNAVAILABLE)
        self._slot = slot
        self.server.connections.begin_answer(self.connection)

    def _release(self) -> None:
        slot, self._slot = self._slot, None
        if slot is not None:
            slot.release()

    def _send(self, response: Answer) -> None:
        self._release()
        self.server.connections.end_answer(self.connection)
        self.connection.settimeout(self.server.request_seconds)
        self.send_response(response.status)
        self.send_header("Content-Type", response.kind)
        self.send_header("Content-Length", str(len(response.content)))
        self.send_header("Cache-Control", "no-store")
        if response.status is HTTPStatus.UNAUTHORIZED:
            self.send_header("WWW-Authenticate", "Bearer")
        self.end_headers()
        if self.command != "HEAD":
            self.wfile.write(response.content)


class _DeadlineReader(RawIOBase):
    """Reads until a deadline: with a timeout for each read, a client could send one byte at a time."""

    def __init__(self, connection: socket.socket, deadline: float) -> None:
        self._connection = connection
        self._deadline = deadline

    def readable(self) -> bool:
        return True

    def readinto(self, buffer: Any) -> int:  # noqa: ANN401 - any writable buffer, as in the library
        remaining = self._deadline - time.monotonic()
        if remaining <= 0:
            raise TimeoutError
        self._connection.settimeout(remaining)
        return self._connection.recv_into(buffer)


def _join_headers(headers: Iterable[tuple[str, str]]) -> Mapping[str, str]:
    """Return lower-case name → value; values of repeated headers are joined (RFC 9110, 5.3)."""
    joined: dict[str, str] = {}
    for name, value in headers:
        key = name.lower()
        joined[key] = f"{joined[key]}, {value}" if key in joined else value
    return joined


def _unusable_address(access: Access, error: OSError) -> Problem:
    return Problem(
        code=ProblemCode.INVALID_CONFIG,
        summary="The HTTP endpoint cannot listen on its address.",
        expected="an address of this machine and a port that is free",
        found=f"{access.host}:{access.port}: {error.strerror}",
        why="Metrics, health and status would not be served.",
        fix="Choose another address or port (0 is any free port), or stop the program that listens there.",
    )
