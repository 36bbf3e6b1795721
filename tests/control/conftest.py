"""An endpoint with a client for it, and the log as a test reads it."""

import json
from collections.abc import Callable, Iterator, Mapping
from http.client import HTTPConnection
from typing import Any
from urllib.parse import urlsplit

import attrs
import pytest
from structlog.testing import capture_logs

from headwater.control import Access, ControlServer, Surface


@attrs.frozen
class HttpResponse:
    status: int
    headers: Mapping[str, str]
    text: str

    @property
    def json(self) -> Any:  # noqa: ANN401 - JSON
        return json.loads(self.text)


class HttpClient:
    """A plain HTTP client for one endpoint."""

    def __init__(self, url: str) -> None:
        self.url = url
        self._address = urlsplit(url).netloc

    def get(self, path: str, **headers: str) -> HttpResponse:
        return self.request("GET", path, None, headers)

    def post(self, path: str, body: object, headers: Mapping[str, str] | None = None) -> HttpResponse:
        text = body if isinstance(body, bytes) else json.dumps(body).encode()
        return self.request("POST", path, text, {"Content-Type": "application/json", **(headers or {})})

    def request(self, method: str, path: str, body: bytes | None, headers: Mapping[str, str]) -> HttpResponse:
        connection = HTTPConnection(self._address, timeout=60)
        try:
            connection.request(method, path, body, dict(headers))
            response = connection.getresponse()
            return HttpResponse(response.status, dict(response.getheaders()), response.read().decode())
        finally:
            connection.close()


@pytest.fixture(autouse=True)
def _logs_captured() -> Iterator[None]:
    """Capture the endpoints' log lines, so that they are not in the output of commands."""
    with capture_logs():
        yield


@pytest.fixture
def serve_endpoint() -> Iterator[Callable[..., HttpClient]]:
    """Serve a surface on a free port: `serve_endpoint(surface, token=...)`."""
    servers: list[ControlServer] = []

    def start(surface: Surface, *, host: str = "127.0.0.1", token: str | None = None) -> HttpClient:
        servers.append(ControlServer(surface, Access(host, 0, token)).start())
        return HttpClient(servers[-1].url)

    yield start
    for server in servers:
        server.close()
