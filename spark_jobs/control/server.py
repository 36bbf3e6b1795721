"""The HTTP server of the endpoint: that of the standard library, with a limited number of threads."""

import socket
from http import HTTPStatus
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from socketserver import TCPServer
from threading import BoundedSemaphore, Thread
from typing import Any, Self

from infra.model.problems import Problem, ProblemCode, ProblemsError
from spark_jobs.control.access import Access
from spark_jobs.control.answers import Request, answer
from spark_jobs.control.surface import Surface

_AT_ONCE = 16
_SLOWEST_SECONDS = 10.0
_POLL_SECONDS = 0.5  # how often the idle server checks whether to stop
_LOOPBACK = {"0.0.0.0": "127.0.0.1", "::": "::1"}  # noqa: S104 - the loopback interface is one of all


class ControlServer:
    """Serves a surface in threads of its own until it is closed; also a context manager.

    `GET` `/metrics`, `/health/live`, `/health/ready`, `/status`; `POST` the routes of the surface.
    """

    def __init__(self, surface: Surface, access: Access) -> None:
        self._surface = surface
        self._access = access
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
            self._server = _Server(self._surface, self._access)
        except OSError as error:
            raise ProblemsError([_unusable(self._access, error)]) from None
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


def check_free(access: Access) -> None:
    """Check that the address is available, before a slow start; raises as `ControlServer.start` does."""
    try:
        with socket.socket(_family(access)) as probe:
            probe.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
            probe.bind((access.host, access.port))
    except OSError as error:
        raise ProblemsError([_unusable(access, error)]) from None


def _family(access: Access) -> socket.AddressFamily:
    return socket.AF_INET6 if ":" in access.host else socket.AF_INET


class _Server(ThreadingHTTPServer):
    daemon_threads = True  # a slow request does not keep the client from ending
    block_on_close = False
    request_queue_size = 64

    def __init__(self, surface: Surface, access: Access) -> None:
        self.surface = surface
        self.access = access
        self.address_family = _family(access)
        self._free = BoundedSemaphore(_AT_ONCE)
        super().__init__((access.host, access.port), _Handler)

    def server_bind(self) -> None:
        TCPServer.server_bind(self)  # that of HTTPServer sends a DNS request for its own name

    def process_request(self, request: Any, client_address: Any) -> None:  # noqa: ANN401 - as in the library
        """Serve in a new thread, or close the connection when all threads are busy."""
        if self._free.acquire(blocking=False):
            super().process_request(request, client_address)
        else:
            self.shutdown_request(request)

    def process_request_thread(self, request: Any, client_address: Any) -> None:  # noqa: ANN401 - same
        try:
            super().process_request_thread(request, client_address)
        finally:
            self._free.release()

    def handle_error(self, request: Any, client_address: Any) -> None:  # noqa: ANN401 - same
        """Ignore that the client closed the connection; `answer` logs its own errors."""


class _Handler(BaseHTTPRequestHandler):
    server: _Server
    timeout = _SLOWEST_SECONDS
    server_version = "headwater"
    sys_version = ""

    def do_GET(self) -> None:
        request = Request(
            self.command,
            self.path,
            {name.lower(): value for name, value in self.headers.items()},
            self.rfile.read,
            str(self.client_address[0]),
        )
        response = answer(request, self.server.surface, self.server.access)
        self.send_response(response.status)
        self.send_header("Content-Type", response.kind)
        self.send_header("Content-Length", str(len(response.content)))
        self.send_header("Cache-Control", "no-store")
        if response.status is HTTPStatus.UNAUTHORIZED:
            self.send_header("WWW-Authenticate", "Bearer")
        self.end_headers()
        if self.command != "HEAD":
            self.wfile.write(response.content)

    def do_HEAD(self) -> None:
        self.do_GET()

    def do_POST(self) -> None:
        self.do_GET()

    def log_message(self, format: str, *args: object) -> None:  # noqa: A002 - the library's name
        """Log no requests: probes and scrapes arrive every few seconds."""


def _unusable(access: Access, error: OSError) -> Problem:
    return Problem(
        code=ProblemCode.INVALID_CONFIG,
        summary="The HTTP endpoint cannot listen on its address.",
        expected="an address of this machine and a port that is free",
        found=f"{access.host}:{access.port}: {error.strerror}",
        why="Metrics, health and status would not be served.",
        fix="Choose another address or port (0 is any free port), or stop the program that listens there.",
    )
